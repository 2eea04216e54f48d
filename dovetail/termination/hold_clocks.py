"""Since when has each kind of blocker held a drain?

Each has a clock of its own on the NodeClaim, which stands still while its blocker is away: an annotation that is put on
a pod and taken off again begins nothing anew. `dovetail.sh/held-since` names the first of those that are there, and is
all that an older version reads and writes; `dovetail.sh/held-clocks` has all, once one of them is not that one.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.drain_rules import Blocker, Level
from dovetail.model.values.time import format_time, time_or_none

HELD_AFTER: Final = 60.0  # seconds for which a blocker must have been there, or away, before its clock knows


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSince:
    """What holds the drain, since when, what has been said of that, and how long a person has asked to wait. `left`:
    since when the blocker is away."""

    blocker: Blocker
    since: float
    levels: frozenset[Level] = frozenset()
    waits_until: float = 0.0
    left: float | None = None

    @property
    def asks(self) -> bool:
        """Whether a person is asked, and has not answered."""
        return Level.ASK in self.levels and Level.FORCE not in self.levels

    @property
    def _text(self) -> str:
        left = "" if self.left is None else format_time(self.left)
        return f"{self.blocker}@{format_time(self.since)}@{'+'.join(_in_order(self.levels))}@{left}"


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
    """The clock of the first blocker; None where there is none that can be read, or where it tells of an earlier
    time."""
    levels = claim.annotations.get(names.HELD_LEVELS, "").replace(",", "+")
    return _read(f"{claim.annotations.get(names.HELD_SINCE, '')}@{levels}", claim, began)


def clocks_of(claim: NodeClaim, began: float | None) -> dict[Blocker, HeldSince]:
    """All clocks. That of the first is as an older version may have written it meanwhile."""
    texts = claim.annotations.get(names.HELD_CLOCKS, "").split(",")
    found = {clock.blocker: clock for text in texts if (clock := _read(text, claim, began)) is not None}
    first = clock_of(claim, began)
    if first is not None:
        noted = found.get(first.blocker)
        is_same = noted is not None and noted.since == first.since
        found[first.blocker] = replace(first, left=noted.left) if noted is not None and is_same else first
    return found


def _read(text: str, claim: NodeClaim, began: float | None) -> HeldSince | None:
    kind, moment, levels, left = (text.split("@") + [""] * 4)[:4]
    since, blocker = time_or_none(moment), next((each for each in Blocker if each == kind), None)
    if blocker is None or since is None or began is None or since < began:
        return None
    said = frozenset(level for level in Level if level in levels.split("+"))
    return HeldSince(blocker=blocker, since=since, levels=said, waits_until=waits_until(claim), left=time_or_none(left))


def waits_until(claim: NodeClaim) -> float:
    """Until when a person has asked to wait."""
    return time_or_none(claim.annotations.get(names.HELD_WAIT, "")) or 0.0


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


def written(clocks: Clocks) -> dict[str, str | None]:
    """The annotations that say it."""
    there = [clocks[each] for each in Blocker if each in clocks and clocks[each].left is None]
    first = there[0] if there else max(clocks.values(), key=lambda each: each.left or 0.0, default=None)
    if first is None:
        return dict.fromkeys((names.HELD_SINCE, names.HELD_LEVELS, names.HELD_CLOCKS))
    is_all = len(clocks) == 1 and first.left is None
    return {
        names.HELD_SINCE: f"{first.blocker}@{format_time(first.since)}",
        names.HELD_LEVELS: ",".join(_in_order(first.levels)) or None,
        names.HELD_CLOCKS: None if is_all else ",".join(each._text for each in clocks.values()),
    }


def _in_order(levels: Iterable[Level]) -> list[Level]:
    return sorted(levels, key=list(Level).index)
