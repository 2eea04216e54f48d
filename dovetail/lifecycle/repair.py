"""Which nodes have been unhealthy for so long that they must be replaced?

What counts as unhealthy, and for how long, is the cloud's to say (CLD-7). A repaired node leaves at once: its deadline
is now, whatever its pods ask for. Where more than a fifth of the nodes are unhealthy at once, none is repaired: that is
more likely a fault of the network.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dovetail.lifecycle.unfinished import is_ours, reference
from dovetail.messages.orders import DeleteClaim
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, RepairPolicy
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import time_or_none

SHARE: Final = 20  # percent of a pool's nodes, rounded up (GCR-14)
BLOCKED_SECONDS: Final = 300.0


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
    blocked: tuple[Blocked, ...] = ()
    next_due: float | None = None


def find_repairs(snapshot: Snapshot, policies: Iterable[RepairPolicy]) -> Repairs:
    known = tuple(policies)
    orders, blocked, moments = [], [], []
    for node in sorted(snapshot.nodes.values(), key=lambda node: node.name):
        claim = _only_claim(snapshot, node)
        fault = _fault(node, known)
        if claim is None or fault is None:
            continue
        condition, due = fault
        if due > snapshot.now:
            moments.append(due)
            continue
        if "true" in (node.annotations.get(names.DO_NOT_REPAIR), claim.annotations.get(names.DO_NOT_REPAIR)):
            blocked.append(Blocked(node=node.name))
            moments.append(snapshot.now + BLOCKED_SECONDS)
            continue
        where = _too_many(snapshot, claim, known)
        if where:
            blocked.append(Blocked(node=node.name, where=where))
            moments.append(snapshot.now + BLOCKED_SECONDS)
        elif claim.deleting_since is None or not _is_deadline_over(claim, snapshot.now):
            message = f"Node {node.name}: {condition.type} is {condition.status}"
            orders.append(
                DeleteClaim(
                    claim=reference(claim),
                    reason="unhealthy",
                    message=message,
                    at_once=True,
                    condition=condition.type,
                )
            )
    return Repairs(orders=tuple(orders), blocked=tuple(blocked), next_due=min(moments, default=None))


def _is_deadline_over(claim: NodeClaim, now: float) -> bool:
    """GCR-15: its deadline has passed; one that is deleted with more time than that is ordered as well."""
    written = time_or_none(claim.annotations.get(names.TERMINATION_DEADLINE, ""))
    return written is not None and written <= now


def _only_claim(snapshot: Snapshot, node: Node) -> NodeClaim | None:
    """The managed claim of the node's instance; none where two name it (GCR-10)."""
    managed = [claim for claim in snapshot.pairing.claims_of(node) if is_ours(snapshot, claim)]
    return managed[0] if len(managed) == 1 else None


def _fault(node: Node, policies: tuple[RepairPolicy, ...]) -> tuple[Condition, float] | None:
    """GCR-12: of the policies that match, the one that ends first, with that moment."""
    matches = [
        (condition.changed + policy.toleration, condition)
        for policy in policies
        if (condition := node.condition(policy.condition)) is not None and condition.status == policy.status
    ]
    if not matches:
        return None
    due, condition = min(matches, key=lambda match: (match[0], match[1].type))
    return condition, due


def _too_many(snapshot: Snapshot, claim: NodeClaim, policies: tuple[RepairPolicy, ...]) -> str:
    """GCR-14: unhealthy now, whatever the toleration, among the pool's nodes, or all nodes for a claim without a
    pool."""
    pool = claim.labels.get(names.NODE_POOL, "")
    group = [node for node in snapshot.nodes.values() if not pool or node.labels.get(names.NODE_POOL) == pool]
    unhealthy = sum(_fault(node, policies) is not None for node in group)
    allowed = -(-len(group) * SHARE // 100)
    if unhealthy <= allowed:
        return ""
    return "nodepool" if pool else "cluster"
