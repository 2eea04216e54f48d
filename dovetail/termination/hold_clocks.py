"""Since when has each kind of blocker held a drain?

Each has a clock of its own on the NodeClaim, which stands still while its blocker is away: an annotation that is put on
a pod and taken off again begins nothing anew.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.own.drain_rules import Blocker, Level
from dovetail.model.own.held_drains import HeldSince

HELD_AFTER: Final = 60.0  # seconds for which a blocker must have been there, or away, before its clock knows


Clocks = Mapping[Blocker, HeldSince]


@dataclass(slots=True)
class Sightings:
    """Since when one attempt of a step has seen each blocker, but for less than a minute in between, and missed it."""

    there: dict[Blocker, float] = field(default_factory=dict)
    away: dict[Blocker, float] = field(default_factory=dict)

    def look(self, blockers: Collection[Blocker], now: float) -> None:
        """Note what is there. Nobody tries to evict during a pause, so it tells nothing of the others."""
        for each in (Blocker.PAUSED,) if Blocker.PAUSED in blockers else Blocker:
            if each in blockers:
                self.there.setdefault(each, now)
                self.away.pop(each, None)
            elif now - self.away.setdefault(each, now) >= HELD_AFTER:
                self.there.pop(each, None)


def clock_of(claim: NodeClaim, began: float | None) -> HeldSince | None:
    """The clock of the first blocker that is there, or else of the last that was; None where there is none, or where it
    tells of an earlier time."""
    clocks = clocks_of(claim, began)
    there = (clocks[each] for each in Blocker if each in clocks and clocks[each].left is None)
    return next(there, None) or max(clocks.values(), key=lambda each: each.left or 0.0, default=None)


def clocks_of(claim: NodeClaim, began: float | None) -> dict[Blocker, HeldSince]:
    return {
        each.blocker: each
        for each in memory_of(claim.annotations).held.clocks
        if began is not None and each.since >= began
    }


def settled(clocks: Clocks, seen: Sightings, began: float, now: float) -> dict[Blocker, HeldSince]:
    """The clocks by what has been there or away for a minute. In whole seconds, such that nothing comes before its
    time.

    A hook that comes after another one has gone is another question, and has its whole time."""
    found = _without_pause(clocks, seen, now)
    for blocker, there in seen.there.items():
        known = found.get(blocker)
        if blocker in seen.away or now - there < HELD_AFTER or (known is not None and known.left is None):
            continue
        since = math.ceil(max(there, began))
        if known is None or known.left is None or blocker is Blocker.HOOK_WAITS:
            found[blocker] = HeldSince(blocker=blocker, since=since)
        else:
            found[blocker] = replace(known, since=known.since + max(0.0, since - known.left), left=None)
    for blocker, away in seen.away.items():
        known = found.get(blocker)
        if known is not None and known.left is None and now - away >= HELD_AFTER:
            found[blocker] = replace(known, left=math.floor(away))
    return found


def _without_pause(clocks: Clocks, seen: Sightings, now: float) -> dict[Blocker, HeldSince]:
    """Once a pause is over all clocks have stood still for as long as it has lasted."""
    paused, ended = clocks.get(Blocker.PAUSED), seen.away.get(Blocker.PAUSED, now)
    if paused is None or now - ended < HELD_AFTER:
        return dict(clocks)
    lasted = math.ceil(max(0.0, ended - paused.since))
    return {
        blocker: replace(each, since=each.since + lasted, left=None if each.left is None else each.left + lasted)
        if each.since <= paused.since
        else each
        for blocker, each in clocks.items()
        if blocker is not Blocker.PAUSED
    }


def with_level(clocks: Clocks, blocker: Blocker, level: Level) -> dict[Blocker, HeldSince]:
    """The clocks once that has been said of this blocker."""
    return {**clocks, blocker: replace(clocks[blocker], levels=clocks[blocker].levels | {level})}
