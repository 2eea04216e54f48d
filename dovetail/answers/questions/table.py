"""The table of questions, by their paths below /api/v1/ at a worker.

A worker serves all of them. A command without a worker loads only the one that it asks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from dovetail.answers.questions.asking import Ask


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question is answered: a module of this package and its function. `parameters`: in a request's query, and
    under the same names among the command's arguments. `waits`: for Temporal, without which there is no answer, or for
    other services; `waits_with`: for others if it has this parameter. The rest is answered from what a worker knows."""

    function: str
    parameters: tuple[str, ...] = ()
    waits: Literal["", "Temporal", "others"] = ""
    waits_with: str = ""


# The order is that of the message about an unknown path.
QUESTIONS: Final[Mapping[str, Place]] = {
    "status": Place("fleet.status"),
    "nodes": Place("fleet.nodes"),
    "pods": Place("fleet.pods"),
    "trend": Place("fleet.trend"),
    "plan": Place("ahead.plan", ("file", "called", "for", "diff"), waits_with="file"),
    "forecast": Place("ahead.forecast", ("for", "pool")),
    "explain/node": Place("decisions.node", ("at",), waits_with="at"),
    "explain/pod": Place("decisions.pod", ("at",), waits_with="at"),
    "history": Place("record.history", waits="Temporal"),
    "log": Place("record.log", ("since", "until", "pool", "reason", "pod", "kind"), waits="Temporal"),
    "savings": Place("record.savings", ("since", "until", "by"), waits="Temporal"),
    "doctor": Place("checks.doctor", waits="others"),
    "names": Place("fleet.names"),
    "version": Place("checks.version", waits="others"),
    "shadow": Place("decisions.shadow"),
    "replay": Place("decisions.replay", waits="others"),
}
CARRIED: Final = "file"  # the parameter that is a whole text: it is packed when sent to a worker, and may be empty


def question(route: str) -> "Ask":
    """The function that answers it. Loading it takes longer than a heartbeat may wait."""
    module, _, function = QUESTIONS[route].function.partition(".")
    found: Ask = getattr(import_module(f"{__package__}.{module}"), function)
    return found
