"""When must launching stop for a NodePool until a person has looked?

Judged from what stands in the cluster and in the pools' annotations alone, so that every worker and every restart comes
to the same answer. A launch is unexplained where pods that it was made for are still pending, and either its node has
stood for a minute and runs none, or claims that came before it are for the same pods. A deployment, a wave of drift, a
static pool and a shortage leave none behind: their pods run, or are gone, or nothing was launched. A pool is stopped
for many unexplained launches or for many dollars of them, and all such pools are for twice as much over all.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from dovetail.model import names
from dovetail.model.kept_places import planned_pods
from dovetail.model.nodes import NodeClaim
from dovetail.model.pod_rules import is_active
from dovetail.model.pods import Expression, Pod
from dovetail.model.pools import Catalogue, InstanceType
from dovetail.model.requirements import from_expressions
from dovetail.model.snapshot import Snapshot
from dovetail.model.unused_launches import REMEMBERED_SECONDS, remembered_launches, resumed_at, stop_of
from dovetail.placement.earlier_claims import used_claims
from dovetail.placement.prices import worst_launch_price

UNUSED_AFTER: Final = 60.0  # from initialisation; the kube-scheduler binds thousands of pods in less
DOLLARS_SECONDS: Final = 600.0  # the launches whose dollars an hour are added up
OVER_ALL: Final = 2  # all pools together may have so many times what one may have


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeSettings:
    """From when on a pool is stopped; 0 turns that off."""

    launches: int = 10  # unexplained ones within an hour, where they are half of all launches
    dollars: float = 100.0  # an hour, added within ten minutes by unexplained launches


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStop:
    """A pool that must be stopped, and why."""

    pool: str
    why: str


@dataclass(slots=True)
class _Launches:
    """What was launched for a pool within the hour."""

    all: int = 0
    unexplained: int = 0
    dollars: float = 0.0

    def add(self, other: "_Launches") -> None:
        self.all += other.all
        self.unexplained += other.unexplained
        self.dollars += other.dollars


def pools_to_stop(snapshot: Snapshot, settings: BrakeSettings, well_known: frozenset[str]) -> tuple[PoolStop, ...]:
    """The pools that are not stopped yet and must be."""
    launches = _launches(snapshot, well_known)
    over_all = _Launches()
    for found in launches.values():
        over_all.add(found)
    together = _why(over_all, settings, OVER_ALL)
    stops = []
    for name, found in sorted(launches.items()):
        why = _why(found, settings, 1)
        if not why and together and found.unexplained:
            why = f"over all NodePools, {together}"
        if why and stop_of(snapshot.pools[name]) is None:
            stops.append(PoolStop(pool=name, why=why))
    return tuple(stops)


def _why(found: _Launches, settings: BrakeSettings, times: int) -> str:
    """Why so many launches are too many; empty where they are not."""
    most, dollars = settings.launches * times, settings.dollars * times
    if most and found.unexplained >= most and 2 * found.unexplained >= found.all:
        return (
            f"{found.unexplained} of {found.all} nodes launched within an hour were of no use to the pods they were for"
        )
    if dollars and found.dollars >= dollars:
        return f"${found.dollars:.2f} an hour were added within ten minutes that no pending pod explains"
    return ""


def _launches(snapshot: Snapshot, well_known: frozenset[str]) -> dict[str, _Launches]:
    found = {name: _Launches() for name in snapshot.pools}
    for name, pool in snapshot.pools.items():
        ended = sum(launch.claim not in snapshot.claims for launch in remembered_launches(pool, snapshot.now))
        found[name].add(_Launches(all=ended, unexplained=ended))
    claims = list(_recent(snapshot))
    unexplained = frozenset(_unexplained(claims, snapshot)) if claims else frozenset[str]()
    for claim in claims:
        launches = found[claim.labels[names.NODE_POOL]]
        launches.all += 1
        if claim.name in unexplained:
            launches.unexplained += 1
            if snapshot.now - claim.created <= DOLLARS_SECONDS:
                launches.dollars += _dollars(claim, snapshot.catalogues, well_known)
    return found


def _recent(snapshot: Snapshot) -> Iterator[NodeClaim]:
    """The claims that were made for pods within the hour, since their pools were last resumed, by age."""
    since = {n: max(snapshot.now - REMEMBERED_SECONDS, resumed_at(p)) for n, p in snapshot.pools.items()}
    for claim in sorted(snapshot.claims.values(), key=attrgetter("created", "name")):
        begun = since.get(claim.labels.get(names.NODE_POOL, ""))
        if begun is not None and claim.created >= begun and claim.annotations.get(names.PLANNED_PODS):
            yield claim


def _unexplained(claims: Iterable[NodeClaim], snapshot: Snapshot) -> Iterator[str]:
    """The names of the claims that no pending pod explains; a pod explains the first claim that was made for it."""
    on_node = _by_node(snapshot)
    used = used_claims(snapshot, on_node)
    explained: set[str] = set()
    for claim in claims:
        pending = {uid for uid in planned_pods(claim) if _is_pending(snapshot.pods.get(uid))}
        if not pending or claim.name in used:
            continue
        if pending <= explained or _stands_unused(claim, snapshot.now):
            yield claim.name
        explained |= pending


def _by_node(snapshot: Snapshot) -> Mapping[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in snapshot.pods.values():
        if pod.node_name:
            found.setdefault(pod.node_name, []).append(pod)
    return found


def _is_pending(pod: Pod | None) -> bool:
    return pod is not None and not pod.node_name and is_active(pod)


def _stands_unused(claim: NodeClaim, now: float) -> bool:
    initialized = claim.condition(names.INITIALIZED_CONDITION)
    return initialized is not None and initialized.status == "True" and now - initialized.changed > UNUSED_AFTER


def _dollars(claim: NodeClaim, catalogues: Mapping[str, Catalogue], well_known: frozenset[str]) -> float:
    """What the claim's instance costs an hour; nothing where it is not launched or its type is not listed any more."""
    types = catalogues.get(claim.labels[names.NODE_POOL], Catalogue()).types
    own = next((t for t in types if t.name == claim.labels.get(names.INSTANCE_TYPE)), None)
    price = _price(own, claim, well_known) if own is not None else 0.0
    return price if price != float("inf") else 0.0


def _price(own: InstanceType, claim: NodeClaim, well_known: frozenset[str]) -> float:
    place = {k: v for k, v in claim.labels.items() if k in (names.ZONE, names.CAPACITY_TYPE)}
    wanted = from_expressions(tuple(Expression(key=k, operator="In", values=(v,)) for k, v in place.items()))
    return worst_launch_price([(from_expressions(o.requirements), o.price) for o in own.offerings], wanted, well_known)
