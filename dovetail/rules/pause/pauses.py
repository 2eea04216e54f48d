"""What a person has paused, for one NodePool or for all: until when, by whom and why.

A pause is a few annotations, on the NodePool or, for all pools, on the Namespace kube-system, so that it outlasts
workers, Temporal and its database, and can be set with kubectl before anything of ours runs. A Freeze in force is a
pause for all pools as well. An annotation that somebody has spoilt is read in the safe sense, and named: an unknown
word holds everything voluntary, and a time that cannot be read is no end.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dovetail.model import names
from dovetail.model.objects.workloads import Namespace
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.pools import NodePool
from dovetail.model.values.time import format_time, time_or_none

if TYPE_CHECKING:  # an order reads no policies
    from dovetail.model.own.policies import Freeze
    from dovetail.model.snapshot import Snapshot


VOLUNTARY: Final = frozenset({Activity.DISRUPTION, Activity.EXPIRY})
EVERYTHING: Final = VOLUNTARY | {Activity.LAUNCHES}  # "all": drains that run are paused only where that is asked for
ALL_WORD: Final = "all"
EVERY_POOL: Final = ""

MOST_CHARACTERS: Final = 300  # of a name or a reason: an annotation may hold more than an Event or a plan should

_YES: Final = frozenset({"", "true"})  # the annotation alone: everything voluntary
_NO: Final = "false"


def pause_in(annotations: Mapping[str, str], pool: str, now: float) -> Pause | None:
    """The pause in these annotations; None if there is none, or if it has ended."""
    text = annotations.get(names.PAUSED)
    if text is None or text.strip().lower() == _NO:
        return None
    faults: list[str] = []
    until = _until(annotations.get(names.PAUSED_UNTIL), faults)
    if until is not None and until <= now:
        return None
    return Pause(
        pool=pool,
        what=_what(text, faults),
        until=until,
        by=annotations.get(names.PAUSED_BY, "")[:MOST_CHARACTERS],
        reason=annotations.get(names.PAUSED_REASON, "")[:MOST_CHARACTERS],
        faults=tuple(faults),
    )


def _until(text: str | None, faults: list[str]) -> float | None:
    """The end; none if it cannot be read, so that the pause holds."""
    if text is None:
        return None
    moment = time_or_none(text)
    if moment is None:
        faults.append(f"{names.PAUSED_UNTIL}: {text[:60]!r} is no time like 2030-01-31T12:00:00Z: the pause has no end")
    return moment


def _what(text: str, faults: list[str]) -> frozenset[Activity]:
    """What the words name, and everything voluntary as well if a word is unknown."""
    if text.strip().lower() in _YES:
        return VOLUNTARY
    found: frozenset[Activity] = frozenset()
    for word in (each.strip().lower() for each in text.split(",")):
        named = named_activities(word)
        if named is None:
            known = ", ".join((*Activity, ALL_WORD))
            faults.append(f"{names.PAUSED}: {word[:60]!r} is none of {known}: everything voluntary is paused")
        found |= VOLUNTARY if named is None else named
    return found


def named_activities(word: str) -> frozenset[Activity] | None:
    """What one word names; None for a word that is not known."""
    if word == ALL_WORD:
        return EVERYTHING
    return frozenset({Activity(word)}) if word in frozenset(Activity) else None


def pause_of_pool(pool: NodePool, now: float) -> Pause | None:
    return pause_in(pool.annotations, pool.name, now)


def pause_of_all(system: Namespace | None, now: float) -> Pause | None:
    """The pause for all pools, from the Namespace kube-system."""
    return pause_in(system.annotations, EVERY_POOL, now) if system is not None else None


def pause_of_freeze(freeze: "Freeze", now: float) -> Pause | None:
    """The pause that a Freeze is; None if it is not in force. One that cannot be understood holds from its creation."""
    if not freeze.holds(now):
        return None
    what = frozenset[Activity]().union(*(named_activities(word) or VOLUNTARY for word in freeze.what))
    return Pause(
        pool=EVERY_POOL,
        what=what or VOLUNTARY,
        until=freeze.until,
        by=f"Freeze {freeze.name}",
        reason=freeze.reason,
        faults=(f"Freeze {freeze.name}: {freeze.fault}",) if freeze.fault else (),
        freeze=freeze.name,
    )


def undoing_freeze(freezes: Iterable["Freeze"], activity: Activity, now: float) -> "Freeze | None":
    """The Freeze in force that calls off disruptions of that kind that have begun."""
    found = (
        freeze
        for freeze in freezes
        if freeze.undoes and (pause := pause_of_freeze(freeze, now)) is not None and activity in pause.what
    )
    return next(found, None)


def pauses(snapshot: "Snapshot") -> tuple[Pause, ...]:
    """All pauses that hold now, those for all pools first."""
    general = pauses_of_all(snapshot.namespaces.get(names.SYSTEM_NAMESPACE), snapshot.freezes, snapshot.now)
    own = (pause_of_pool(pool, snapshot.now) for _, pool in sorted(snapshot.pools.items()))
    return (*general, *(pause for pause in own if pause is not None))


def pauses_of_all(system: Namespace | None, freezes: Mapping[str, "Freeze"], now: float) -> tuple[Pause, ...]:
    found = (pause_of_all(system, now), *(pause_of_freeze(freezes[name], now) for name in sorted(freezes)))
    return tuple(pause for pause in found if pause is not None)


def holding(found: Iterable[Pause | None], activity: Activity) -> Pause | None:
    """The pause that holds the activity; of several, the one that ends last, so that nobody waits for an end that
    changes nothing."""
    held = [pause for pause in found if pause is not None and activity in pause.what]
    return max(held, key=lambda pause: math.inf if pause.until is None else pause.until, default=None)


def pause_on(snapshot: "Snapshot", pool: str, activity: Activity) -> Pause | None:
    general = pauses_of_all(snapshot.namespaces.get(names.SYSTEM_NAMESPACE), snapshot.freezes, snapshot.now)
    found = snapshot.pools.get(pool)
    own = pause_of_pool(found, snapshot.now) if found is not None else None
    return holding((*general, own), activity)


def without_pauses(snapshot: "Snapshot") -> "Snapshot":
    """The snapshot as if people held nothing: what would be decided then is what is held back."""
    spaces = {name: replace(space, annotations={}) for name, space in snapshot.namespaces.items()}
    pools = {name: replace(pool, annotations=_unpaused(pool)) for name, pool in snapshot.pools.items()}
    return replace(snapshot, namespaces=spaces, pools=pools, freezes={}, policies={}, rollouts={})


def _unpaused(pool: NodePool) -> dict[str, str]:
    return {key: text for key, text in pool.annotations.items() if key not in names.PAUSE_ANNOTATIONS}


def next_end(snapshot: "Snapshot") -> float | None:
    """When the first of the pauses ends by itself."""
    return min((pause.until for pause in pauses(snapshot) if pause.until is not None), default=None)


def annotations_of(pause: Pause | None) -> dict[str, str | None]:
    """The annotations that say it, and nothing else."""
    if pause is None:
        return dict.fromkeys(names.PAUSE_ANNOTATIONS)
    return {
        names.PAUSED: ",".join(sorted(pause.what)),
        names.PAUSED_UNTIL: format_time(pause.until) if pause.until is not None else None,
        names.PAUSED_BY: pause.by or None,
        names.PAUSED_REASON: pause.reason or None,
    }


def joined(known: Pause | None, new: Pause) -> Pause:
    """Both: a person who pauses one thing more resumes nothing. It lasts for the longer of the two."""
    if known is None:
        return new
    ends = (known.until, new.until)
    until = None if None in ends else max(end for end in ends if end is not None)
    return Pause(pool=new.pool, what=known.what | new.what, until=until, by=new.by, reason=new.reason)


def without(known: Pause, what: frozenset[Activity]) -> Pause | None:
    """What is left when that is resumed; None if nothing is."""
    left = known.what - what
    if not left:
        return None
    return Pause(pool=known.pool, what=left, until=known.until, by=known.by, reason=known.reason)
