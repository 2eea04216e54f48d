"""Which disruption an entry is part of, and which of several claims of one name it is about: a number of a static pool
names one node after another.

The workflow of a claim is named after it, so entries of one name never overlap, and their order tells them apart where
an entry of an older version has no UID.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Final

from dovetail.answers.record.entries import Entry

_CLOCKS: Final = 10.0  # seconds by which two servers of Temporal may differ


def distinct(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The same entries, in which each claim but the last of its name has a name that no other has."""
    lives = _Lives(entries)
    return tuple(lives.distinct(entry) for entry in entries)


def joined(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries in order, launches and terminations with the disruption that they belong to."""
    launched_for: dict[str, Entry] = {}
    taken_by: dict[str, Entry] = {}
    ordered = sorted(entries, key=lambda entry: (entry.began, entry.workflow, entry.run))
    apart = distinct(ordered)
    for entry in apart:
        if entry.kind == "disruption":
            launched_for.update(dict.fromkeys(entry.replacements, entry))
            if entry.outcome in ("done", "running"):
                taken_by.update(dict.fromkeys(entry.claims, entry))
    found = []
    for entry, own in zip(ordered, apart, strict=True):
        owners = {"launch": launched_for, "termination": taken_by}.get(entry.kind, {})
        owner = owners.get(own.claims[0]) if own.claims else None
        if owner is None:
            found.append(entry)
        elif entry.kind == "launch":
            found.append(replace(entry, disruption=owner.workflow, reason=owner.reason))
        else:
            found.append(replace(entry, disruption=owner.workflow))
    return tuple(found)


class _Lives:
    """When each claim of a name first shows."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._begins: dict[str, list[float]] = {}
        last: dict[str, Entry] = {}
        for entry in sorted(entries, key=lambda each: each.began):
            for name in entry.claims if entry.kind != "disruption" else ():
                if name not in last or _is_another(last[name], entry):
                    self._begins.setdefault(name, []).append(_beginning(entry))
                last[name] = entry

    def distinct(self, entry: Entry) -> Entry:
        claims = tuple(self._name(name, self._number(name, entry.began)) for name in entry.claims)
        made = tuple(self._name(name, self._made(name, entry)) for name in entry.replacements)
        same = (claims, made) == (entry.claims, entry.replacements)
        return entry if same else replace(entry, claims=claims, replacements=made)

    def _number(self, name: str, at: float) -> int:
        """The claim that was there at that moment, counted from 1."""
        return max(1, bisect_right(self._begins.get(name, ()), at))

    def _made(self, name: str, move: Entry) -> int:
        """The first that came while the move lasted, or it may be; 0 if none did."""
        begins = self._begins.get(name, [])
        if begins in ([], [-inf]):
            return len(begins)
        first, last = move.began - _CLOCKS, inf if move.ended is None else move.ended + _CLOCKS
        return next((number for number, at in enumerate(begins, 1) if first <= at <= last), 0)

    def _name(self, name: str, number: int) -> str:
        return name if number >= len(self._begins.get(name, ())) else f"{name}/{number}"


def _beginning(entry: Entry) -> float:
    """When the claim came, as its first entry has it; minus infinity where none says so."""
    if entry.kind == "launch":
        return entry.began
    return -inf if entry.launched is None else entry.launched


def _is_another(before: Entry, entry: Entry) -> bool:
    """Whether this entry, the next one of the name, is about another claim."""
    if before.uid and entry.uid:
        return before.uid != entry.uid
    if before.kind == "launch":
        return False
    return entry.kind == "launch" or (entry.launched is not None and entry.launched > before.began)
