"""How many nodes does a pool with a fixed number of replicas lack, and which are too many?

Claims are counted as they are, so a look whose orders were half carried out is finished by the next (DUR-21); they are
created under names that follow from their numbers (dovetail/lifecycle/numbering.py). Budgets are not asked: the number
is what a person wants. A node that is marked counts, because the disruption that marked it creates its replacement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.lifecycle.numbering import numbering_of, static_plan
from dovetail.lifecycle.unfinished import reference
from dovetail.messages.orders import DeleteClaim
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_daemon, is_protected
from dovetail.model.own.pauses import Activity
from dovetail.model.places.reservations import reserved_room
from dovetail.model.pods import Pod
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.pause.pauses import pause_on
from dovetail.rules.said import Cause

MOST_LACKING: Final = 1000  # of a pool in one look: the definition admits 2**63 - 1 replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """The claims to create straight from the pool's template, by number. `waiting`: how many come later, as nothing is
    launched into a capacity reservation that is full (NPL-45)."""

    pool: str
    numbers: tuple[int, ...]
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    running: tuple[NodeClaim, ...]
    marked: int


def shortfalls(snapshot: Snapshot, well_known: frozenset[str] = names.WELL_KNOWN_LABELS) -> tuple[Shortfall, ...]:
    """NPL-40 to NPL-43: pools that are ready and have fewer nodes than replicas, within their limit of nodes. Where the
    instance types of a pool are not known, its launches find out."""
    found = []
    for pool in _static(snapshot):
        counted = _count(snapshot, pool)
        running = len(counted.running)
        if not pool.is_true(names.READY) or running + counted.marked >= (pool.replicas or 0):
            continue
        if pause_on(snapshot, pool.name, Activity.LAUNCHES) is not None:
            continue
        # What is marked has its replacement on the way: upstream counts it as missing (NPL-42) and creates one too
        # many.
        wanted = (pool.replicas or 0) - running - counted.marked
        numbers = numbering_of(pool, snapshot.claims.values())
        missing = min(numbers.room(wanted), MOST_LACKING)
        types = snapshot.catalogues.get(pool.name, Catalogue()).types
        reserved = reserved_room(pool, types, snapshot.claims.values(), well_known)
        lacking = numbers.lowest(missing if reserved is None else min(missing, reserved.left))
        if missing:
            found.append(Shortfall(pool=pool.name, numbers=lacking, waiting=missing - len(lacking)))
    return tuple(found)


def surplus(snapshot: Snapshot, costs: Mapping[str, float]) -> tuple[DeleteClaim, ...]:
    """NPL-44: the claims to delete. `costs`: node name -> what its pods' eviction costs, times its remaining
    lifetime."""
    pods = _pods_by_node(snapshot)
    found: list[DeleteClaim] = []
    for pool in _static(snapshot):
        if hold_of(said_in(snapshot, pool.name), Cause.SCALED_DOWN) is not None:
            continue
        running = _count(snapshot, pool).running
        excess = len(running) - (pool.replicas or 0)
        ranks = {
            claim.name: (
                _rank(claim, pods, snapshot.now),
                costs.get(claim.node_name, 0.0),
                claim.plan in ("", static_plan(pool)),  # a replacement first: who undoes its disruption deletes it too
                claim.name,
            )
            for claim in running
        }
        ranked = sorted(running, key=lambda claim: ranks[claim.name])
        message = f"NodePool {pool.name} has {len(running)} nodes and wants {pool.replicas}"
        found += [
            DeleteClaim(claim=reference(claim), reason="static_scale_down", message=message)
            for claim in ranked[: max(0, excess)]
        ]
    return tuple(found)


def _rank(claim: NodeClaim, pods: Mapping[str, tuple[Pod, ...]], now: float) -> int:
    """Those without an instance come first, then empty ones, then others, those with protected pods last."""
    mine = pods.get(claim.node_name, ()) if claim.node_name else ()
    if not claim.provider_id:
        return 0
    protected = any(is_protected(pod, now) for pod in mine)
    if not protected and all(is_daemon(pod) for pod in mine):
        return 1
    return 3 if protected else 2


def _static(snapshot: Snapshot) -> tuple[NodePool, ...]:
    supported = snapshot.supported_node_classes
    return tuple(
        pool
        for name, pool in sorted(snapshot.pools.items())
        if pool.replicas is not None
        and pool.deleting_since is None
        and (not supported or (pool.template.node_class.group, pool.template.node_class.kind) in supported)
    )


def _count(snapshot: Snapshot, pool: NodePool) -> _Count:
    mine = [c for _, c in sorted(snapshot.claims.items()) if c.labels.get(names.NODE_POOL) == pool.name]
    deleting = [c for c in mine if c.deleting_since is not None]
    marked = [c for c in mine if c.deleting_since is None and names.OWNER in c.annotations]
    gone = {c.name for c in (*deleting, *marked)}
    return _Count(running=tuple(c for c in mine if c.name not in gone), marked=len(marked))


def _pods_by_node(snapshot: Snapshot) -> dict[str, tuple[Pod, ...]]:
    found: dict[str, list[Pod]] = {}
    for pod in snapshot.pods.values():
        if pod.node_name and pod.phase not in ("Succeeded", "Failed"):
            found.setdefault(pod.node_name, []).append(pod)
    return {node: tuple(pods) for node, pods in found.items()}
