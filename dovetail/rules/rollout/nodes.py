"""Which nodes of a pool are at the target of its latest change, and which are on their way to it."""

from collections import Counter
from collections.abc import Collection, Iterable
from math import inf
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.own.claim_memory import OLD_IMAGES, memory_of
from dovetail.model.own.rollouts import PoolNodes
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Claims, Snapshot
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM

_NOBODYS: Final = "InstanceTypeNotFound"  # the drift that nobody's change causes: a type that is no longer sold


def nodes_of(snapshot: Snapshot, pool: NodePool) -> PoolNodes:
    """The snapshot's nodes of the pool, each counted once."""
    key = (pool.name, pool.hash)
    if key not in snapshot.counted:
        snapshot.counted[key] = _counted(snapshot, pool)
    return snapshot.counted[key]


def split_of(snapshot: Snapshot, pool: NodePool) -> tuple[Claims, Claims]:
    """Its claims that are not at the target, and those that are."""
    key = (pool.name, pool.hash)
    if key not in snapshot.split:
        sides: tuple[list[NodeClaim], list[NodeClaim]] = [], []
        for claim in snapshot.claims_by_pool.get(pool.name, ()):
            sides[not is_old(claim, pool)].append(claim)
        snapshot.split[key] = tuple(sides[0]), tuple(sides[1])
    return snapshot.split[key]


def _counted(snapshot: Snapshot, pool: NodePool) -> PoolNodes:
    old, target = split_of(snapshot, pool)
    leaving: list[NodeClaim] = []
    staying: list[str] = []
    changed, newest_old, newest_drift = 0, -inf, -inf
    stable = snapshot.stable_images.get(pool.name, ())
    for claim in old:
        drifted = claim.condition(names.DRIFTED)
        if claim.deleting_since is not None or _is_taken(claim, snapshot):
            leaving.append(claim)
        else:
            staying.append(claim.uid)
            changed += _is_change(drifted)
        if claim.created > newest_old and _is_change(drifted) and not _has_older_image(claim):
            newest_old = claim.created
        if drifted is not None and drifted.changed > newest_drift:
            newest_drift = drifted.changed
    return PoolNodes(
        old=len(old) - len(leaving),
        at_target=len(target),
        leaving=_without_replacement(leaving, target),
        draining=len(leaving),
        newest_old=newest_old,
        ready=tuple(_known_from(claim) for claim in target if _is_ready(claim, snapshot)),
        unready=tuple(_not_ready_since(claim) for claim in target if _is_awaited(claim, snapshot)),
        refusable=sum(_is_refusable(claim, stable) for claim in target),
        staying=tuple(staying),
        changed=changed,
        newest_drift=newest_drift,
    )


def leaves_for_drift(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """Whether drift should replace it: a claim that has drifted or, if a roll-out goes back, one that is at its
    target."""
    pool = snapshot.pools.get(claim.labels.get(names.NODE_POOL, ""))
    if pool is None or pool.name not in snapshot.going_back:
        return claim.is_true(names.DRIFTED)
    return not is_old(claim, pool) and _is_refusable(claim, snapshot.stable_images.get(pool.name, ()))


def _is_refusable(claim: NodeClaim, stable: Collection[str]) -> bool:
    """Whether a roll-out that goes back replaces a claim that is at the target. One that was launched with an older
    image stays: the target may be that image again, and claims are judged one by one. Where no older image suited it,
    it has the target's."""
    return not _has_older_image(claim) and claim.image_id not in stable


def is_old(claim: NodeClaim, pool: NodePool) -> bool:
    """Whether it is not at the target. Its hash is compared as well, because the condition is written some moments
    after the change."""
    annotations = claim.annotations
    same = annotations.get(names.NODE_POOL_HASH_VERSION) == NODE_POOL_HASH_ALGORITHM
    return claim.is_true(names.DRIFTED) or (same and annotations.get(names.NODE_POOL_HASH) != pool.hash)


def _has_older_image(claim: NodeClaim) -> bool:
    return memory_of(claim.annotations).roll_out.how in OLD_IMAGES


def _known_from(claim: NodeClaim) -> float:
    """When it was made; of one with an older image it is not known at once whether that is the target again."""
    return -inf if _has_older_image(claim) else claim.created


def _is_change(drifted: Condition | None) -> bool:
    """Whether somebody's change is the cause, of a NodePool, of its NodeClass or of what this selects."""
    return drifted is None or drifted.status != "True" or drifted.reason != _NOBODYS


def _is_taken(claim: NodeClaim, snapshot: Snapshot) -> bool:
    return bool(claim.annotations.get(names.OWNER)) or claim.name in snapshot.taken


def _without_replacement(leaving: Iterable[NodeClaim], target: Iterable[NodeClaim]) -> int:
    """How many of them have none yet: a mark names the disruption, whose id ends in its plan's; a replacement carries
    that from the start."""
    plans = Counter(claim.annotations.get(names.OWNER, "").rpartition("/")[2] for claim in leaving)
    made = Counter(claim.plan for claim in target)
    return sum(max(0, number - (made[plan] if plan else 0)) for plan, number in plans.items())


def _is_awaited(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """Whether it is not ready and should be. One that is leaving, or has an older image, proves nothing."""
    proves_nothing = claim.deleting_since is not None or _has_older_image(claim)
    return not proves_nothing and not _is_ready(claim, snapshot)


def _not_ready_since(claim: NodeClaim) -> float:
    return -inf if claim.is_true(names.INITIALIZED_CONDITION) else claim.created


def _is_ready(claim: NodeClaim, snapshot: Snapshot) -> bool:
    node = snapshot.nodes.get(claim.node_name)
    ready = node.condition(names.READY) if node is not None else None
    return claim.is_true(names.INITIALIZED_CONDITION) and ready is not None and ready.status == "True"
