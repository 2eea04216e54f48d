"""What a NodePool remembers about launches in vain, and whether it has been stopped because of them.

Kept as annotations of the NodePool, so that they survive restarts and the loss of the database. The pods are kept as
short marks, because their UIDs would fill an annotation. An unreadable annotation is ignored.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final
from zlib import crc32

from dovetail.model import names
from dovetail.model.pods import Pod, controller_of
from dovetail.model.pools import NodePool
from dovetail.model.values.time import format_time, time_or_none

REMEMBERED_SECONDS: Final = 3600.0
MOST_LAUNCHES: Final = 40  # of the newest; more than a brake waits for
MOST_PODS: Final = 200  # of one launch
MOST_OWNERS: Final = 20  # of one launch, those with most of its pods
MANY_NAMESPACES: Final = 3  # what fails for so many at once is the fault of none of them

_ENTRY: Final = re.compile(r"([a-z0-9][-a-z0-9.]{0,252})@(\d{1,12})=([0-9a-f.]*)(?:/([0-9a-f.]*)(?::([0-9a-f.]*))?)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Who owns pods: the marks of their owners and of their namespaces; none if nobody is blamed."""

    owners: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    name: str = field(default="", compare=False)  # for people; not remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedLaunch:
    """A claim that was launched and was of no use to what it was made for: pods that were still pending as it ended, or
    the room of a CapacityBuffer."""

    claim: str
    at: float
    pods: tuple[str, ...]  # their marks, and those of buffers
    whose: Whose = Whose()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Since when nothing is launched for a NodePool, and why."""

    since: str
    why: str


def pod_mark(uid: str) -> str:
    """A pod in eight characters: the API server makes its UID."""
    return f"{crc32(uid.encode()):08x}"


def _mark(*names_of: str) -> str:
    """What users name themselves, so that nobody finds a name with the mark of another."""
    return sha256("/".join(names_of).encode()).hexdigest()[:16]


def whose_pods(pods: Iterable[Pod]) -> Whose:
    """Who owns these pods: nobody in particular where they are of many namespaces. A pod without a controller is its
    own owner."""
    found = Counter((pod.shape.namespace, *_owner_of(pod)) for pod in pods)
    spaces = sorted({space for space, _, _ in found})
    if len(spaces) >= MANY_NAMESPACES:
        return Whose()
    called = [f"{space}/{name}" for space, _, name in found]
    return Whose(
        owners=tuple(_mark(space, uid) for (space, uid, _), _ in found.most_common(MOST_OWNERS)),
        namespaces=tuple(_mark(space) for space in spaces),
        name=called[0] if len(called) == 1 else ", ".join(f"namespace {space}" for space in spaces),
    )


def _owner_of(pod: Pod) -> tuple[str, str]:
    owner = controller_of(pod.owners)
    return (owner.uid, f"{owner.kind} {owner.name}") if owner is not None else (pod.uid, f"Pod {pod.name}")


def unused_launch(claim: str, at: float, uids: Iterable[str], whose: Whose | None = None) -> UnusedLaunch:
    marks = tuple(sorted({pod_mark(uid) for uid in uids}))[:MOST_PODS]
    return UnusedLaunch(claim=claim, at=at, pods=marks, whose=whose or Whose())


def remembered_launches(pool: NodePool, now: float) -> tuple[UnusedLaunch, ...]:
    """The launches in vain of the last hour, since a person last resumed the pool."""
    text = pool.annotations.get(names.UNUSED_LAUNCHES, "")
    since = max(now - REMEMBERED_SECONDS, resumed_at(pool))
    found = [_read(entry) for entry in text.split(",")] if text else []
    return tuple(launch for launch in found if launch is not None and launch.at >= since)


def _read(entry: str) -> UnusedLaunch | None:
    match = _ENTRY.match(entry)
    if match is None:
        return None
    claim, at, *marks = match.groups(default="")
    pods, owners, namespaces = (tuple(filter(None, each.split("."))) for each in marks)
    return UnusedLaunch(claim=claim, at=float(at), pods=pods, whose=Whose(owners=owners, namespaces=namespaces))


def remembered_text(known: Sequence[UnusedLaunch], new: UnusedLaunch) -> str:
    """The annotation with one more launch; of one that is known only what it was made for is added."""
    found = {launch.claim: launch for launch in known}
    before = found.get(new.claim, new)
    pods = tuple(sorted({*before.pods, *new.pods}))[:MOST_PODS]
    found[new.claim] = replace(before, pods=pods, whose=before.whose if before.whose.owners else new.whose)
    return ",".join([_entry(launch) for launch in found.values()][-MOST_LAUNCHES:])


def _entry(launch: UnusedLaunch) -> str:
    whose = launch.whose
    of = f"/{'.'.join(whose.owners)}:{'.'.join(whose.namespaces)}" if whose.owners else ""
    return f"{launch.claim}@{launch.at:.0f}={'.'.join(launch.pods)}{of}"


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
    """The annotation that stops a pool."""
    return f"{format_time(now)} {why}"


def resumed_annotations(now: float) -> dict[str, str | None]:
    """What ends a stop: earlier launches no longer count, or they would stop the pool again at once."""
    return {names.LAUNCHES_STOPPED: None, names.UNUSED_LAUNCHES: None, names.LAUNCHES_RESUMED: format_time(now)}
