"""Which nodes have been unhealthy for so long that they must be replaced?

What counts as unhealthy, and for how long, is the cloud's to say (CLD-7). A repaired node leaves at once: its deadline
is now, whatever its pods ask for. Where more than a fifth of the nodes are unhealthy at once, none is repaired: that is
more likely a fault of the network.

Where that is wanted, a fault that a reboot clears has its instance rebooted first (GCR-19): once for each fault, and
not again within an hour. What the reboot did not clear is replaced.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dovetail.lifecycle.unfinished import is_ours, reference
from dovetail.messages.orders import DeleteClaim, RebootNode
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, RepairPolicy
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import time_or_none

SHARE: Final = 20  # percent of a pool's nodes, rounded up (GCR-14)
BLOCKED_SECONDS: Final = 300.0
REBOOT_LOOKS_SECONDS: Final = 15.0  # between two looks at a node that is being rebooted
REBOOTED_RECENTLY_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """An unhealthy node that stays: too many are (`where` names the pool, or the cluster), or empty, a person wants
    it so."""

    node: str
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What to do now, what is held back, and the next moment at which a toleration ends."""

    orders: tuple[DeleteClaim, ...] = ()
    reboots: tuple[RebootNode, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    next_due: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    """What is wrong with a node, when something is to be done about it, and what."""

    condition: Condition
    due: float
    reboots: bool = False


def find_repairs(
    snapshot: Snapshot, policies: Iterable[RepairPolicy], *, reboots: bool = False, of: Iterable[Node] | None = None
) -> Repairs:
    """All repairs by one snapshot, or those of some nodes. `reboots`: whether a fault that a reboot clears has its
    instance rebooted."""
    known = tuple(policies)
    orders, rebooted, blocked, moments = [], [], [], []
    for node in sorted(snapshot.nodes.values() if of is None else of, key=lambda node: node.name):
        claim = _only_claim(snapshot, node)
        if claim is None:
            continue
        if claim.is_rebooting and claim.deleting_since is None:
            turn = int(snapshot.now // REBOOT_LOOKS_SECONDS)
            rebooted.append(RebootNode(claim=reference(claim), node=node.name, turn=turn))
            moments.append(snapshot.now + REBOOT_LOOKS_SECONDS)
            continue
        fault = _fault(node, claim, known, snapshot.now if reboots else None)
        if fault is None:
            continue
        if fault.due > snapshot.now:
            moments.append(fault.due)
            continue
        why_not = _why_not(snapshot, node, claim, known)
        if why_not is not None:
            blocked.append(why_not)
            moments.append(snapshot.now + BLOCKED_SECONDS)
        elif fault.reboots:
            rebooted.append(RebootNode(claim=reference(claim), node=node.name))
        elif claim.deleting_since is None or not _is_deadline_over(claim, snapshot.now):
            orders.append(_replacement(claim, node, fault.condition))
    return Repairs(
        orders=tuple(orders),
        reboots=tuple(rebooted),
        blocked=tuple(blocked),
        next_due=min(moments, default=None),
    )


def reboots_for(node: Node, claim: NodeClaim, policies: Iterable[RepairPolicy], now: float) -> Condition | None:
    """The condition for which its instance is to be rebooted now."""
    fault = _fault(node, claim, tuple(policies), now)
    return fault.condition if fault is not None and fault.reboots and fault.due <= now else None


def is_kept_from_repair(node: Node, claim: NodeClaim) -> bool:
    """Whether a person has said on the node or its claim that it is not to be repaired."""
    return "true" in (node.annotations.get(names.DO_NOT_REPAIR), claim.annotations.get(names.DO_NOT_REPAIR))


def _why_not(snapshot: Snapshot, node: Node, claim: NodeClaim, policies: tuple[RepairPolicy, ...]) -> Blocked | None:
    if is_kept_from_repair(node, claim):
        return Blocked(node=node.name)
    where = _too_many(snapshot, claim, policies)
    return Blocked(node=node.name, where=where) if where else None


def _replacement(claim: NodeClaim, node: Node, condition: Condition) -> DeleteClaim:
    return DeleteClaim(
        claim=reference(claim),
        reason="unhealthy",
        message=f"Node {node.name}: {condition.type} is {condition.status}",
        at_once=True,
        condition=condition.type,
    )


def _is_deadline_over(claim: NodeClaim, now: float) -> bool:
    """GCR-15: its deadline has passed; one that is deleted with more time than that is ordered as well."""
    written = time_or_none(claim.annotations.get(names.TERMINATION_DEADLINE, ""))
    return written is not None and written <= now


def _only_claim(snapshot: Snapshot, node: Node) -> NodeClaim | None:
    """The managed claim of the node's instance; none where two name it (GCR-10)."""
    managed = [claim for claim in snapshot.pairing.claims_of(node) if is_ours(snapshot, claim)]
    return managed[0] if len(managed) == 1 else None


def _fault(
    node: Node, claim: NodeClaim, policies: tuple[RepairPolicy, ...], now_if_reboots: float | None
) -> _Fault | None:
    """GCR-12: of the policies that match, the one that ends first, with that moment."""
    found = [_of_policy(policy, condition, claim, now_if_reboots) for policy, condition in _matching(node, policies)]
    return min(found, key=lambda fault: (fault.due, fault.condition.type), default=None)


def _of_policy(policy: RepairPolicy, condition: Condition, claim: NodeClaim, now_if_reboots: float | None) -> _Fault:
    """GCR-19: a fault that was there when its instance came up again is not rebooted for a second time, and one that
    comes soon after a reboot is replaced without another."""
    due = condition.changed + policy.toleration
    if now_if_reboots is None or condition.reason not in policy.reboot_reasons:
        return _Fault(condition=condition, due=due)
    replaced = condition.changed + policy.replaced_after
    last = claim.condition(names.REBOOTING)
    last = last if last is not None and last.status == "False" else None  # one that ended
    if last is not None and condition.changed <= last.changed:
        return _Fault(condition=condition, due=replaced)
    if last is not None and condition.changed <= last.changed + REBOOTED_RECENTLY_SECONDS:
        return _Fault(condition=condition, due=due)
    if now_if_reboots >= replaced or not claim.is_true(names.INITIALIZED_CONDITION):
        return _Fault(condition=condition, due=replaced)
    return _Fault(condition=condition, due=due, reboots=True)


def _matching(node: Node, policies: tuple[RepairPolicy, ...]) -> list[tuple[RepairPolicy, Condition]]:
    """The policies by which the node is unhealthy, whatever their toleration."""
    return [
        (policy, condition)
        for policy in policies
        if (condition := node.condition(policy.condition)) is not None and condition.status == policy.status
    ]


def _too_many(snapshot: Snapshot, claim: NodeClaim, policies: tuple[RepairPolicy, ...]) -> str:
    """GCR-14: unhealthy now, whatever the toleration, among the pool's nodes, or all nodes for a claim without a
    pool."""
    pool = claim.labels.get(names.NODE_POOL, "")
    group = [node for node in snapshot.nodes.values() if not pool or node.labels.get(names.NODE_POOL) == pool]
    unhealthy = sum(bool(_matching(node, policies)) for node in group)
    allowed = -(-len(group) * SHARE // 100)
    if unhealthy <= allowed:
        return ""
    return "nodepool" if pool else "cluster"
