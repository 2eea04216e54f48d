"""A proposed node to which the pass may still add pods."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail.model.pods import HostPort, Pod
from dovetail.placement.constraints.reservations import NONE, Held
from dovetail.placement.facts.states import State
from dovetail.placement.facts.templates import Template


@dataclass(slots=True, kw_only=True, eq=False)
class NodeDraft:
    """A node under construction: its pods so far, and the types that it may still be, as rows of its template."""

    number: int
    template: Template
    state: State
    rows: int  # those that may hold all its pods: exact when last settled, perhaps too many since
    used: list[int]
    witness: int = 0  # one row that holds all its pods; while it has room, the others need no look
    room: Sequence[int] = ()  # what the witness has room for
    held: Held = NONE
    pods: list[Pod] = field(default_factory=list)
    ports: list[tuple[str, HostPort]] = field(default_factory=list)
    min_values_relaxed: bool = False
    start: State | None = None  # what it required before its first pod, if more than its template does

    def settle(self, rows: int) -> None:
        """Remember the exact rows."""
        self.rows = rows
        self.witness = rows.bit_length() - 1
        self.room = self.template.fit.room[self.witness]

    def settled_rows(self) -> int:
        self.settle(self.template.fit.holding(self.used, self.rows))
        return self.rows
