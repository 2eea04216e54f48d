"""What a NodePool remembers about launches in vain, and whether it has been stopped because of them.

Kept as annotations of the NodePool, so that they survive restarts and the loss of the database. An unreadable
annotation is ignored.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.model import before_0_2, names
from dovetail.model.pods import Pod, controller_of
from dovetail.model.pools import NodePool
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.brake import Brake
from dovetail.model.values.memory import Memory, mark
from dovetail.model.values.time import format_time, time_or_none

BRAKE: Final = Brake(enough=10, share=0.5, window=3600.0, rests=Backoff(first=300.0, longest=2400.0))
MOST_PODS: Final = 200  # of one launch
MOST_OWNERS: Final = 20  # of one launch, those with most of its pods; and as many namespaces
MANY_NAMESPACES: Final = 3  # what fails for so many at once, and is not too much of one, is the fault of none of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Who owns pods: the marks of their owners and of their namespaces; none for a node that never came up."""

    owners: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    name: str = field(default="", compare=False)  # for people


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedLaunch:
    """A claim that was launched and was of no use to what it was made for: pods that were still pending as it ended, or
    the room of a CapacityBuffer."""

    claim: str
    at: float
    pods: tuple[str, ...]  # their marks, and those of buffers
    whose: Whose = Whose()
    forgotten: int = 0  # launches just before it that an annotation had no room for


_MEMORY: Final = Memory(names.UNUSED_LAUNCHES, UnusedLaunch, before_0_2.unused_launches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Since when nothing is launched for a NodePool, and why."""

    since: str
    why: str


def whose_pods(pods: Iterable[Pod]) -> Whose:
    """Who owns these pods. A pod without a controller is its own owner."""
    counts = Counter((pod.shape.namespace, *_owner_of(pod)) for pod in pods)
    found = [owner for owner, _ in counts.most_common(MOST_OWNERS)]
    spaces = sorted({space for space, _, _ in counts})[:MOST_OWNERS]
    called = [f"{space}/{name}" for space, _, name in found]
    return Whose(
        owners=tuple(mark(f"{space}/{uid}") for space, uid, _ in found),
        namespaces=tuple(mark(space) for space in spaces),
        name=called[0] if len(called) == 1 else ", ".join(f"namespace {space}" for space in spaces[:MANY_NAMESPACES]),
    )


def _owner_of(pod: Pod) -> tuple[str, str]:
    owner = controller_of(pod.owners)
    return (owner.uid, f"{owner.kind} {owner.name}") if owner is not None else (pod.uid, f"Pod {pod.name}")


def unused_launch(claim: str, at: float, uids: Iterable[str], whose: Whose | None = None) -> UnusedLaunch:
    marks = tuple(sorted({mark(uid) for uid in uids}))[:MOST_PODS]
    return UnusedLaunch(claim=claim, at=at, pods=marks, whose=whose or Whose())


def remembered_launches(pool: NodePool, now: float) -> tuple[UnusedLaunch, ...]:
    """The launches in vain of the last hour, since a person last resumed the pool."""
    since = max(now - BRAKE.window, resumed_at(pool))
    return tuple(launch for launch in _MEMORY.read(pool) if launch.at >= since)


def remembered_since(pool: NodePool, now: float) -> float:
    """Since when not one of them is forgotten: only what was launched since then is compared with them."""
    cut = [launch.at for launch in remembered_launches(pool, now) if launch.forgotten]
    return max(now - BRAKE.window, resumed_at(pool), *cut)


def with_unused_launch(pool: NodePool, new: UnusedLaunch, now: float) -> NodePool:
    """The pool that remembers one more launch; of one that is known only what it was made for is added."""
    found = {launch.claim: launch for launch in remembered_launches(pool, now)}
    before = found.get(new.claim, new)
    pods = tuple(sorted({*before.pods, *new.pods}))[:MOST_PODS]
    found[new.claim] = replace(before, pods=pods, whose=before.whose if before.whose.owners else new.whose)
    written = _MEMORY.write(pool, found.values())
    kept = _MEMORY.read(written)
    if not kept or len(kept) == len(found):
        return written
    return _MEMORY.write(pool, [replace(kept[0], forgotten=len(found) - len(kept)), *kept[1:]])


def resumed_at(pool: NodePool) -> float:
    """When a person last resumed the pool: what was launched before does not count. 0: never."""
    return time_or_none(pool.annotations.get(names.LAUNCHES_RESUMED, "")) or 0.0


def stop_of(pool: NodePool) -> Stop | None:
    """Why nothing is launched for the pool now; None if it is not stopped."""
    text = pool.annotations.get(names.LAUNCHES_STOPPED)
    if text is None:
        return None
    since, _, why = text.partition(" ")
    return Stop(since=since, why=why) if time_or_none(since) is not None else Stop(since="", why=text)


def stop_text(now: float, why: str) -> str:
    return f"{format_time(now)} {why}"


def resumed_annotations(now: float) -> dict[str, str | None]:
    """What ends a stop: earlier launches no longer count, or they would stop the pool again at once."""
    return {names.LAUNCHES_STOPPED: None, names.UNUSED_LAUNCHES: None, names.LAUNCHES_RESUMED: format_time(now)}
