"""Which nodes of a pool are at the target of its latest change, and which are on their way to it."""

from collections import Counter
from collections.abc import Collection, Iterable
from math import inf

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import OLD_IMAGES, memory_of
from dovetail.model.own.rollouts import PoolNodes, RolloutStatus
from dovetail.model.own.stable_images import is_changed
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Claims, Snapshot
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.rules.rollout.moves import SETTLED


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
        snapshot.split[key] = split_by(pool, snapshot.claims_by_pool.get(pool.name, ()))
    return snapshot.split[key]


def split_by(pool: NodePool, claims: Claims) -> tuple[Claims, Claims]:
    """The same of these claims."""
    sides: tuple[list[NodeClaim], list[NodeClaim]] = [], []
    for claim in claims:
        sides[not is_old(claim, pool)].append(claim)
    return tuple(sides[0]), tuple(sides[1])


def _counted(snapshot: Snapshot, pool: NodePool) -> PoolNodes:
    old, whole = split_of(snapshot, pool)
    # One that is deleted before anybody has asked whether it has drifted is nothing that a step has proved.
    target = [claim for claim in whole if claim.deleting_since is None]
    leaving: list[NodeClaim] = []
    staying: list[str] = []
    others = 0  # that leave for another reason than drift: they come to no target, and leave the pool's count
    changed, newest_old, newest_drift = 0, -inf, -inf
    for claim in old:
        drifted = claim.condition(names.DRIFTED)
        if _leaves_otherwise(claim):
            others += 1
        elif claim.deleting_since is not None or _is_taken(claim, snapshot):
            leaving.append(claim)
        else:
            staying.append(claim.uid)
            changed += is_changed(claim)
        if claim.created > newest_old and is_changed(claim) and not _has_older_image(claim):
            newest_old = claim.created
        if drifted is not None and drifted.changed > newest_drift:
            newest_drift = drifted.changed
    return PoolNodes(
        old=len(staying),
        at_target=len(target),
        leaving=_without_replacement(leaving, whole),
        draining=len(leaving) + others,
        newest_old=newest_old,
        ready=tuple(_known_from(claim) for claim in target if _is_ready(claim, snapshot)),
        unready=tuple(_not_ready_since(claim) for claim in target if _is_awaited(claim, snapshot)),
        refusable=sum(is_refused(claim, pool, snapshot) for claim in (*old, *whole)),
        staying=tuple(staying),
        changed=changed,
        newest_drift=newest_drift,
    )


def returned(status: RolloutStatus, old: Claims, target: Claims, now: float) -> bool:
    """Whether the target is what most nodes ran when the first change appeared, as far as they are still there: by
    nodes that had drifted from a target in between, and are at the target again. It needs no canary. One that was
    deleted before anybody asked whether it has drifted says nothing."""
    if now - status.begun < SETTLED:
        return False
    stable = {image.id for image in status.stable.images}
    before = (each for each in target if each.created < status.stable.since < status.begun)
    ran = [claim.image_id in stable for claim in before if claim.deleting_since is None]
    return 2 * sum(ran) > len(ran) + sum(claim.created < status.stable.since for claim in old)


def leaves_for_drift(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """Whether drift should replace it: a claim that has drifted or, if a roll-out goes back, one that is at its
    target."""
    pool = snapshot.pools.get(claim.labels.get(names.NODE_POOL, ""))
    if pool is None or pool.name not in snapshot.going_back:
        return claim.is_true(names.DRIFTED)
    return is_refused(claim, pool, snapshot)


def is_refused(claim: NodeClaim, pool: NodePool, snapshot: Snapshot) -> bool:
    """Whether a roll-out that goes back replaces it: a claim at the target, or one that was made of it and has drifted
    since. One that was launched with an older image stays: the target may be that image again, and claims are judged
    one by one. Where no older image suited it, it has the target's."""
    since = snapshot.refused_since.get(pool.name, inf)
    return was_made_of(claim, pool, since, snapshot.stable_images.get(pool.name, ()))


def was_made_of(claim: NodeClaim, pool: NodePool, since: float, stable: Collection[str]) -> bool:
    """Whether it was made of the target that is there since that moment, and has no image of before."""
    is_made = not is_old(claim, pool) or (claim.image_id and claim.created >= since)
    return bool(is_made) and not _has_older_image(claim) and claim.image_id not in stable


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


def _is_taken(claim: NodeClaim, snapshot: Snapshot) -> bool:
    return bool(claim.annotations.get(names.OWNER)) or claim.name in snapshot.taken


def _leaves_otherwise(claim: NodeClaim) -> bool:
    """Whether something other than drift takes it: a person, the cloud, or a disruption for another reason."""
    reason = claim.condition(names.DISRUPTION_REASON)
    if reason is None or reason.status != "True":
        return claim.deleting_since is not None and not claim.annotations.get(names.OWNER)
    return reason.reason != DisruptionReason.DRIFTED


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
