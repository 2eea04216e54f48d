"""Roll-outs for people: a bar of the nodes, the steps, the gates' verdicts, what they wait for, and the commands.

Like everything that shows answers, it does not load the engines.
"""

from collections.abc import Iterator
from typing import Final

from dovetail.answers.rollouts.answer import RolloutShown, StepShown
from dovetail.answers.shown.screen import GOES_ON, NEEDS_PERSON, WAITS, Screen
from dovetail.answers.wording import age_text, duration_text
from dovetail.model.values.time import format_time

MARKS: Final = {"done": "✓", "now": "▸", "to come": "·"}
CELLS: Final = 20


def rollout_lines(shown: RolloutShown, now: float, cells: int = CELLS) -> Iterator[str]:
    """All lines of one roll-out; commands are on lines of their own, to be copied."""
    yield f"{shown.name}  {progress_bar(shown, cells)}  {counts_words(shown)}"
    if shown.steps:
        yield f"  {'   '.join(step_words(step) for step in shown.steps)}"
    yield f"  {state_words(shown, now)}"
    for gate in shown.gates:
        if gate.result != "Passing" or (gate.name == "nodes" and gate.message):
            yield f"  gate {gate.name}: {gate.result}{f', {gate.message}' if gate.message else ''}"
    if shown.waits_for:
        yield f"  waits for {waits_words(shown, now)}"
    yield from (f"  {command}" for command in shown.commands)


def progress_bar(shown: RolloutShown, cells: int = CELLS) -> str:
    return bar_of(shown.target, shown.leaving, shown.total, cells)


def bar_of(target: int, leaving: int, total: int, cells: int = CELLS) -> str:
    """A bar of the nodes at the target, those that are being replaced, and the others."""
    if not total:
        return "░" * cells
    full = min(cells, cells * target // total)  # never full before the last node is there
    on_way = min(cells - full, -(-cells * leaving // total))
    return "▇" * full + "▒" * on_way + "░" * (cells - full - on_way)


def counts_words(shown: RolloutShown) -> str:
    leaving = f", {shown.leaving} leaving" if shown.leaving else ""
    of = f" (NodePool {shown.pool})" if shown.pool else ""
    return f"{shown.target} of {shown.total} at the target{leaving}{of}"


def step_words(step: StepShown) -> str:
    """The step's mark, name and nodes."""
    asks = ", then asks" if step.asks else ""
    return f"{MARKS.get(step.place, ' ')} {step.name} {step.nodes}{asks}"


def state_words(shown: RolloutShown, now: float) -> str:
    """Its state, the step, since when."""
    step = next((each.name for each in shown.steps if each.place == "now"), "")
    since = f" for {duration_text(round(now - shown.since))}" if shown.since is not None else ""
    gates = [gate.name for gate in shown.gates if gate.result == "Passing"]
    passing = f", gate{'' if len(gates) == 1 else 's'} {', '.join(gates)}: Passing" if gates else ""
    return f"{shown.state}{f' at step {step}' if step else ''}{since}{passing}"


def waits_words(shown: RolloutShown, now: float) -> str:
    """What it waits for, and until when if known."""
    if shown.until is None:
        return shown.waits_for
    left = f"in {age_text(shown.until - now)}" if shown.until > now else "due"
    return f"{shown.waits_for}, until {format_time(shown.until)} ({left})"


def one_line(shown: RolloutShown, now: float, cells: int = 10) -> str:
    step = next((each for each in shown.steps if each.place == "now"), None)
    number = shown.steps.index(step) + 1 if step is not None else 0
    place = f"step {step.name} ({number} of {len(shown.steps)}), " if step is not None else ""
    command = f" · {shown.commands[0]}" if shown.needs_person and shown.commands else ""
    waits = f", waits for {waits_words(shown, now)}" if shown.waits_for else ""
    return f"{progress_bar(shown, cells)} {shown.target}/{shown.total}, {place}{shown.state}{command}{waits}"


def rollout_colour(shown: RolloutShown) -> str:
    return NEEDS_PERSON if shown.needs_person else WAITS if shown.state in ("Judging", "Paused") else GOES_ON


def rollouts_block(found: tuple[RolloutShown, ...], now: float, screen: Screen) -> list[str]:
    """All roll-outs below their heading; only a line with a command may be wider than the screen."""
    if not found:
        return []
    lines = ["ROLL-OUTS"]
    for each in found:
        first, *rest = rollout_lines(each, now, CELLS if (screen.width or 120) >= 100 else 10)
        name, gap, words = first.partition("  ")
        lines += _painted(each, name, gap + words, screen)
        lines += [part for line in rest for part in _wrapped(line, screen.width)]
    return lines


def _painted(shown: RolloutShown, name: str, words: str, screen: Screen) -> list[str]:
    first, *rest = _wrapped(name + words, screen.width)
    return [screen.paint(name, rollout_colour(shown)) + first[len(name) :], *rest]


def _wrapped(line: str, width: int | None) -> list[str]:
    if width is None or len(line) <= width or line.lstrip().startswith("dovetail "):
        return [line]
    import textwrap

    return textwrap.wrap(line, width, subsequent_indent="    ", break_on_hyphens=False)
