"""What consolidation would still save in the cluster as it is, for `dovetail plan`: its figures and its one line."""

from dataclasses import dataclass, replace
from typing import Final

from dovetail.answers.look.sources import Look
from dovetail.answers.wording import HOURS_IN_MONTH, dollars_text, plural
from dovetail.disruption.outlook.left_to_save import left_to_save
from dovetail.settings.deciding import disruption_settings

_HEAD: Final = "Consolidation: "


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAnswer:
    """Dollars a month, including what is held. `at_least`: the search was cut short, so there may be more; `says`: all
    of it as one line."""

    month: float
    nodes: int  # that would leave
    pods: int  # that would move
    held: float = 0.0
    held_pods: int = 0
    held_by: tuple[str, ...] = ()
    at_least: bool = False
    says: str = ""


def left_now(look: Look) -> LeftAnswer:
    """What is left to save, by the planner's settings."""
    found = left_to_save(look.snapshot, disruption_settings(look.settings))
    free, held = found.free, found.held
    answer = LeftAnswer(
        month=round((free.savings + held.savings) * HOURS_IN_MONTH, 2),
        nodes=free.nodes + held.nodes,
        pods=free.pods + held.pods,
        held=round(held.savings * HOURS_IN_MONTH, 2),
        held_pods=held.pods,
        held_by=found.held_by,
        at_least=found.cut,
    )
    return replace(answer, says=left_text(answer))


def left_text(left: LeftAnswer) -> str:
    if left.month <= 0:
        return _HEAD + ("nothing was found to save before time was up" if left.at_least else "nothing is left to save")
    least = "at least " if left.at_least else ""
    moves = f"{plural(left.pods, 'pod')} would move" if left.pods else "no pod would move"
    return f"{_HEAD}{least}{_dollars(left.month)} a month left; {moves}{_held(left)}"


def _held(left: LeftAnswer) -> str:
    if left.held <= 0:
        return ""
    part = "all of it" if left.held >= left.month else f"of it {_dollars(left.held)}"
    *others, last = left.held_by
    return f"; {part} held by {', '.join(others)}{' and ' if others else ''}{last}"


def _dollars(amount: float) -> str:
    return dollars_text(amount) if amount >= 1 else "less than $1"
