"""When launches come to nothing, for whom must they stop: an owner's pods, a namespace's, or a whole NodePool?

Judged only by the cluster's objects and the pools' annotations, so that every worker reaches the same answer, also
after a restart. Launches whose nodes came up count first against each owner of their pods; those of owners that are not
stopped, against each namespace; what is then left, with nodes that never came up, against the NodePool, if pods of
three namespaces fail. Many such launches, or many dollars, stop an owner; twice as many over all pools stop every pool
with a part in it.

An owner or a namespace is held for some minutes after its last launch, twice as long after each further one that was of
no use; then one of its pods may have a node. No annotation records this: it follows from the remembered launches.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from dovetail.placement.earlier_claims import used_claims
from dovetail.placement.held_pools import trials
from dovetail.placement.settings import BrakeSettings, PlacementSettings
from dovetail.placement.unexplained_launches import Launch, launches_of
from dovetail.rules.brake.unused_launches import BRAKE, MANY_NAMESPACES, stop_of, whose_pods

OVER_ALL: Final = 2  # how many times one pool's limit all pools together may have


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStop:
    """A pool that must be stopped, and why."""

    pool: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """Why nothing is launched for pods, by UID. `trials`: of each owner and namespace whose rest is over the pods from
    the oldest on, of which the first that can have a node gets one."""

    why: Mapping[str, str] = field(default_factory=dict)
    trials: tuple[tuple[Pod, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brake:
    """An owner or a namespace with too many such launches, and when one more is tried."""

    why: str
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brakes:
    """The brakes by mark, and the launches that count against the pools."""

    owners: Mapping[str, _Brake]
    namespaces: Mapping[str, _Brake]
    rest: tuple[Launch, ...]


def pools_to_stop(snapshot: Snapshot, settings: BrakeSettings, well_known: frozenset[str]) -> tuple[PoolStop, ...]:
    """The pools that are not stopped yet and must be."""
    rest = _brakes(launches_of(snapshot, snapshot.pods_by_node, well_known), settings).rest
    together = _why(_of_many(rest), settings, OVER_ALL)
    stops = []
    for name, found in sorted(_grouped(rest, lambda launch: (launch.pool,)).items()):
        why = _why(_of_many(found), settings, 1)
        if not why and together and any(launch.unexplained for launch in found):
            why = f"over all NodePools, {together}"
        if why and stop_of(snapshot.pools[name]) is None:
            stops.append(PoolStop(pool=name, why=why))
    return tuple(stops)


def pools_to_resume(snapshot: Snapshot) -> tuple[str, ...]:
    """The stopped pools with a trial node that runs pods: what was wrong is over."""
    tried = {pool.name: trials(snapshot, pool) for pool in snapshot.pools.values()}
    if not any(tried.values()):
        return ()
    used = used_claims(snapshot, snapshot.pods_by_node)
    return tuple(name for name, claims in tried.items() if any(claim.name in used for claim in claims))


def pods_held_back(
    pods: Iterable[Pod], snapshot: Snapshot, on_node: Mapping[str, Sequence[Pod]], settings: PlacementSettings
) -> HeldBack:
    """Those of these pods for which nothing is launched, or no more than one node."""
    brakes = _brakes(launches_of(snapshot, on_node, settings.well_known), settings.brake)
    if not brakes.owners and not brakes.namespaces:
        return HeldBack()
    held: dict[str, str] = {}
    trials: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=lambda each: (each.created, each.uid)):
        whose = whose_pods([pod])
        [owner], [namespace] = whose.owners, whose.namespaces
        brake, mark = brakes.owners.get(owner), owner
        if brake is None:
            brake, mark = brakes.namespaces.get(namespace), namespace
        if brake is None:
            continue
        if snapshot.now >= brake.until:
            trials.setdefault(mark, []).append(pod)
        of = whose.name if mark == owner else f"namespace {pod.shape.namespace}"
        held[pod.uid] = f"nothing is launched for the pods of {of} until {format_time(brake.until)}: {brake.why}"
    return HeldBack(why=held, trials=tuple(map(tuple, trials.values())))


def _brakes(launches: Sequence[Launch], settings: BrakeSettings) -> _Brakes:
    owners = _held(_grouped(launches, lambda launch: launch.whose.owners), settings)
    rest = [launch for launch in launches if owners.keys().isdisjoint(launch.whose.owners)]
    namespaces = _held(_grouped(rest, lambda launch: launch.whose.namespaces), settings)
    left = tuple(launch for launch in rest if namespaces.keys().isdisjoint(launch.whose.namespaces))
    return _Brakes(owners=owners, namespaces=namespaces, rest=left)


def _of_many(launches: Sequence[Launch]) -> list[Launch]:
    """The launches with no more in vain of a namespace than of that with the third most: what one user's namespaces
    bring about is no fault of a NodePool. One for pods of three counts whatever they are."""
    spaces = [_few(launch.whose.namespaces) if launch.unexplained else () for launch in launches]
    third = [0, 0, 0, *sorted(Counter(filter(None, spaces)).values())][-3]
    seen: Counter[tuple[str, ...]] = Counter()
    kept = []
    for launch, space in zip(launches, spaces, strict=True):
        seen[space] += 1
        if not space or seen[space] <= third:
            kept.append(launch)
    return kept


def _few(namespaces: tuple[str, ...]) -> tuple[str, ...]:
    return namespaces[:1] if len(namespaces) < MANY_NAMESPACES else ()


def _held(groups: Mapping[str, Sequence[Launch]], settings: BrakeSettings) -> dict[str, _Brake]:
    found: dict[str, _Brake] = {}
    for mark, launches in groups.items():
        if why := _why(launches, settings, 1):
            in_vain = sum(launch.unexplained for launch in launches)
            until = BRAKE.until(max(launch.at for launch in launches), in_vain - settings.launches)
            found[mark] = _Brake(why=why, until=until)
    return found


def _grouped(launches: Iterable[Launch], keys: Callable[[Launch], Iterable[str]]) -> dict[str, list[Launch]]:
    found: dict[str, list[Launch]] = {}
    for launch in launches:
        for key in keys(launch):
            found.setdefault(key, []).append(launch)
    return found


def _why(launches: Sequence[Launch], settings: BrakeSettings, times: int) -> str:
    """Why so many launches are too many; empty if they are not."""
    most, dollars = settings.launches * times, settings.dollars * times
    in_vain = [launch for launch in launches if launch.unexplained]
    if most and replace(BRAKE, enough=most).holds(len(in_vain), len(launches)):
        return (
            f"{len(in_vain)} of {len(launches)} nodes launched within an hour were of no use to the pods they were for"
        ) + _named(in_vain)
    added = sum(launch.dollars for launch in launches)
    if dollars and added >= dollars:
        return f"${added:.2f} an hour were added within ten minutes that no pending pod explains" + _named(in_vain)
    return ""


def _named(launches: Iterable[Launch]) -> str:
    """The owners of the pods that the launches were for, as far as known."""
    known = dict.fromkeys(launch.whose.name for launch in launches if launch.whose.name)
    return f" ({', '.join(list(known)[:3])})" if known else ""
