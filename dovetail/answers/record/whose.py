"""Savings by namespace: the dollars of each move, divided by the namespaces' shares in its plan.

Each move is divided as a whole, with what was launched for it and what came back later, so the parts add up.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dovetail.answers.record.entries import Entry
from dovetail.answers.shown.tables import Column
from dovetail.messages.plans import NOBODY, OTHERS

Whose = Literal["namespace", "others", "nobody", "unknown"]

COLUMNS: Final = (
    Column(head="NAMESPACE", cut=True),
    Column(head="PREDICTED $/H", right=True),
    Column(head="SAVED $", right=True),
)
UNKNOWN_NOTE: Final = "not known: the record of moves by versions before 0.2.0 has no namespaces"
_ORDER: Final[tuple[Whose, ...]] = ("namespace", "others", "nobody", "unknown")
_NO_NAMESPACE: Final[dict[str, Whose]] = {NOBODY: "nobody", OTHERS: "others"}
LABELS: Final[dict[Whose, str]] = {
    "others": "other namespaces",
    "nobody": "nobody's: it was empty",
    "unknown": "not known",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSavings:
    """The savings of one namespace, or, if `whose` says so, of none that is named here."""

    whose: Whose
    namespace: str
    predicted: float  # dollars an hour
    saved: float  # dollars

    @property
    def label(self) -> str:
        return LABELS.get(self.whose, self.namespace)


def by_namespace(dollars: Iterable[tuple[Entry, float]]) -> tuple[NamespaceSavings, ...]:
    """Savings by namespace, from disruptions with what each has saved."""
    predicted: dict[tuple[Whose, str], float] = {}
    saved: dict[tuple[Whose, str], float] = {}
    for move, amount in dollars:
        promised = (move.saved or 0.0) if move.outcome == "done" else 0.0
        if amount or promised:
            for key, share in _shares(move):
                predicted[key] = predicted.get(key, 0.0) + promised * share
                saved[key] = saved.get(key, 0.0) + amount * share
    return tuple(
        NamespaceSavings(whose=key[0], namespace=key[1], predicted=predicted[key], saved=saved[key])
        for key in sorted(saved, key=lambda key: (_ORDER.index(key[0]), key[1]))
    )


def _shares(move: Entry) -> Iterator[tuple[tuple[Whose, str], float]]:
    """Each namespace's share. Shares were rounded when they were made: what they lack of 1 is divided in proportion."""
    whole = sum(each.share for each in move.shares)
    if whole <= 0:
        yield ("unknown" if move.pods else "nobody", ""), 1.0
        return
    for each in move.shares:
        if each.namespace in _NO_NAMESPACE:
            yield (_NO_NAMESPACE[each.namespace], ""), each.share / whole
        else:
            yield ("namespace", each.namespace), each.share / whole


def namespace_rows(found: Sequence[NamespaceSavings], predicted: float, saved: float) -> list[tuple[str, ...]]:
    """A row for each namespace, and one for their sum."""
    parts = (*((each.label, each.predicted, each.saved) for each in found), ("all", predicted, saved))
    return [(label, f"{rate:.4f}", dollars_text(dollars)) for label, rate, dollars in parts]


def dollars_text(dollars: float) -> str:
    """Dollars, without a sign if they round to zero."""
    return f"{round(dollars, 2) + 0.0:.2f}"
