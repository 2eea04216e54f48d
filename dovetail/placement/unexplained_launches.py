"""The launches for pods within the last hour, and which of them no pending pod explains.

A launch is unexplained if pods that it was made for are still pending, and either its node has been initialised for a
minute and runs none, or it has lacked a resource that they ask for during a quarter of an hour, or earlier claims are
for the same pods. A deployment, a wave of drift, a static pool and a shortage leave no such launch: their pods run, or
are gone, or nothing was launched.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_active
from dovetail.model.places.kept_places import planned_pods
from dovetail.model.pods import Expression, Pod
from dovetail.model.pools import Catalogue, InstanceType
from dovetail.model.scheduling.requirements import from_expressions
from dovetail.model.snapshot import Snapshot
from dovetail.placement.earlier_claims import JOINING_SECONDS, lacks_what_pods_ask_for, up_for, used_claims
from dovetail.placement.prices import worst_launch_price
from dovetail.rules.brake.unused_launches import Whose, remembered_launches, remembered_since, whose_pods

LACKING_AFTER: Final = 900.0  # a device's driver is built on some nodes
UNUSED_AFTER: Final = 60.0  # after initialisation; the kube-scheduler binds thousands of pods in less
DOLLARS_SECONDS: Final = 600.0  # how recent the launches are whose dollars an hour are added up


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch. `whose`: who owns its pods; nobody if its node did not come up, which no pod explains."""

    pool: str
    at: float
    whose: Whose
    unexplained: bool
    dollars: float = 0.0  # an hour, if it is unexplained and from the last ten minutes


def launches_of(
    snapshot: Snapshot, on_node: Mapping[str, Sequence[Pod]], well_known: frozenset[str]
) -> tuple[Launch, ...]:
    """All launches of the last hour, since their pools were last resumed; none where no launch is unexplained, which is
    seen without a look at every claim: nothing is braked then, however many there were."""
    ended = tuple(_ended(snapshot))
    if not ended and not any(_is_pending(pod) for pod in snapshot.unbound_pods):
        return ()
    return (*ended, *_standing(snapshot, on_node, well_known))


def _ended(snapshot: Snapshot) -> Iterator[Launch]:
    for name, pool in snapshot.pools.items():
        for launch in remembered_launches(pool, snapshot.now):
            if launch.claim not in snapshot.claims:
                yield Launch(pool=name, at=launch.at, whose=launch.whose, unexplained=True)


def _standing(snapshot: Snapshot, on_node: Mapping[str, Sequence[Pod]], well_known: frozenset[str]) -> Iterator[Launch]:
    claims = list(_recent(snapshot))
    unexplained = frozenset(_unexplained(claims, snapshot, on_node)) if claims else frozenset[str]()
    for claim in claims:
        no_use = claim.name in unexplained
        pods = [pod for uid in planned_pods(claim) if (pod := snapshot.pods.get(uid)) is not None]
        counted = [pod for pod in pods if _is_pending(pod)] if no_use else pods
        counts_dollars = no_use and snapshot.now - claim.created <= DOLLARS_SECONDS
        yield Launch(
            pool=claim.labels[names.NODE_POOL],
            at=claim.created,
            whose=Whose() if no_use and _has_failed_to_join(claim, snapshot.now) else whose_pods(counted),
            unexplained=no_use,
            dollars=_dollars(claim, snapshot.catalogues, well_known) if counts_dollars else 0.0,
        )


def _recent(snapshot: Snapshot) -> Iterator[NodeClaim]:
    """The claims that were made for pods or buffers within the hour, since their pools were last resumed, by age; where
    a pool does not remember the whole hour, those of the time that it remembers."""
    since = {n: remembered_since(p, snapshot.now) for n, p in snapshot.pools.items()}
    for claim in sorted(snapshot.claims.values(), key=attrgetter("created", "name")):
        begun = since.get(claim.labels.get(names.NODE_POOL, ""))
        planned = names.PLANNED_PODS in claim.annotations or names.PLANNED_BUFFERS in claim.annotations
        if begun is not None and claim.created >= begun and planned:
            yield claim


def _unexplained(
    claims: Iterable[NodeClaim], snapshot: Snapshot, on_node: Mapping[str, Sequence[Pod]]
) -> Iterator[str]:
    """The names of the claims that no pending pod explains; a pod explains the first claim that was made for it."""
    used = used_claims(snapshot, on_node)
    explained: set[str] = set()
    for claim in claims:
        pending = {uid for uid in planned_pods(claim) if _is_pending(snapshot.pods.get(uid))}
        if not pending or claim.name in used:
            continue
        if pending <= explained or _stands_unused(claim, snapshot.now):
            yield claim.name
        explained |= pending


def _has_failed_to_join(claim: NodeClaim, now: float) -> bool:
    if lacks_what_pods_ask_for(claim):
        return False
    return not claim.is_true(names.INITIALIZED_CONDITION) and now - claim.created > JOINING_SECONDS


def _is_pending(pod: Pod | None) -> bool:
    return pod is not None and not pod.node_name and is_active(pod)


def _stands_unused(claim: NodeClaim, now: float) -> bool:
    if lacks_what_pods_ask_for(claim):
        return now - claim.created > LACKING_AFTER
    up = up_for(claim, now)
    return up is not None and up > UNUSED_AFTER


def _dollars(claim: NodeClaim, catalogues: Mapping[str, Catalogue], well_known: frozenset[str]) -> float:
    """What the claim's instance costs an hour; 0 if it is not launched or its type is no longer listed."""
    types = catalogues.get(claim.labels[names.NODE_POOL], Catalogue()).types
    own = next((t for t in types if t.name == claim.labels.get(names.INSTANCE_TYPE)), None)
    price = _price(own, claim, well_known) if own is not None else 0.0
    return price if price != float("inf") else 0.0


def _price(own: InstanceType, claim: NodeClaim, well_known: frozenset[str]) -> float:
    place = {k: v for k, v in claim.labels.items() if k in (names.ZONE, names.CAPACITY_TYPE)}
    wanted = from_expressions(tuple(Expression(key=k, operator="In", values=(v,)) for k, v in place.items()))
    return worst_launch_price([(from_expressions(o.requirements), o.price) for o in own.offerings], wanted, well_known)
