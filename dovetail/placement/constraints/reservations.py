"""Is there reserved capacity for this draft?

Asked once the types of a draft have been filtered (PLC-70, PLC-183 to PLC-188). A draft holds every reservation that it
might launch into, and gives back those that it can no longer use. "None left" differs from "does not suit": a pod for
which none is left waits instead of falling back to more expensive capacity (PLC-186).
"""

from collections.abc import Iterable

from dovetail.placement.facts.states import State
from dovetail.placement.facts.templates import Template

Held = frozenset[str]
NONE: Held = frozenset()


def starting_reservations(templates: Iterable[Template]) -> dict[str, int]:
    """Per reservation, the smallest count that any pool reports (PLC-70)."""
    counts: dict[str, int] = {}
    for template in templates:
        for item in template.table.types:
            for reservation, count in item.listed:
                counts[reservation] = min(count, counts.get(reservation, count))
    return counts


class Reservations:
    def __init__(self, counts: dict[str, int], strict: bool, enabled: bool) -> None:
        self._left = dict(counts)
        self._strict = strict
        self._enabled = enabled
        self._suiting: dict[State, list[tuple[int, str, str]]] = {}

    def _of_state(self, template: Template, state: State) -> list[tuple[int, str, str]]:
        """The suitable reserved offerings of a state: the rows of the type, the reservation, what it launches with."""
        known = self._suiting.get(state)
        if known is None:
            known = self._suiting[state] = [
                (template.table.type_rows[number], offering.reservation, offering.source.launched_with)
                for number, item in enumerate(template.table.types)
                for offering in item.offerings
                if offering.reservation is not None and state.accepts(offering.requirements)
            ]
        return known

    def _suitable(self, template: Template, state: State, rows: int) -> Held:
        return frozenset(reservation for mask, reservation, _ in self._of_state(template, state) if mask & rows)

    def available(self, template: Template, state: State, rows: int, held: Held) -> Held | None:
        """What the draft would hold; None: its pod must wait for reserved capacity (PLC-183, PLC-184)."""
        if not self._enabled or not template.reserved_rows:
            return NONE
        suitable = self._suitable(template, state, rows)
        found = frozenset(r for r in suitable if r in held or self._left.get(r, 0) > 0)
        if self._strict and not found and (suitable or held):
            return None
        return found

    def launchable(self, template: Template, state: State, rows: int, held: Held) -> list[tuple[Held, int]]:
        """The parts of what is held that one launch may go into, each with those of the rows that have some of it."""
        parts: dict[str, tuple[Held, int]] = {}
        for mask, reservation, launched_with in self._of_state(template, state):
            if reservation in held and mask & rows:
                part, its = parts.get(launched_with, (NONE, 0))
                parts[launched_with] = part | {reservation}, its | mask & rows
        return list(parts.values())

    def worth_waiting_for(self, template: Template, state: State, rows: int) -> Held:
        """All that would suit if no other draft of the pass held it; nothing where no pod waits."""
        return self._suitable(template, state, rows) if self._strict else NONE

    def exchange(self, before: Held, after: Held) -> None:
        """Hold what is new and give back the rest (PLC-185)."""
        for reservation in after - before:
            if self._left[reservation] <= 0:
                raise AssertionError(f"reservation {reservation} is held too often")
            self._left[reservation] -= 1
        for reservation in before - after:
            self._left[reservation] += 1
