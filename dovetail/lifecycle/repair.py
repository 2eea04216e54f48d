"""Which nodes have been unhealthy for so long that they must be deleted? The way until 1.14, with LEGACY_NODE_REPAIR.

What counts as unhealthy, and for how long, is the cloud's to say (CLD-7). A repaired node leaves at once: its deadline
is now, whatever its pods ask for. Where more than a fifth of the nodes are unhealthy at once, none is repaired: that is
more likely a fault of the network. A reboot that was begun is continued either way (GCR-19).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dovetail.lifecycle.faults import is_kept_from_repair, matching, too_many
from dovetail.lifecycle.unfinished import is_ours, reference
from dovetail.messages.orders import DeleteClaim, RebootNode
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, RepairPolicy
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import time_or_none

BLOCKED_SECONDS: Final = 300.0
REBOOT_LOOKS_SECONDS: Final = 15.0  # between two looks at a node that is being rebooted


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


def find_repairs(snapshot: Snapshot, policies: Iterable[RepairPolicy], *, of: Iterable[Node] | None = None) -> Repairs:
    """All repairs by one snapshot, or those of some nodes."""
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
        fault = _fault(node, known)
        if fault is None:
            continue
        due, condition = fault
        if due > snapshot.now:
            moments.append(due)
            continue
        why_not = _why_not(snapshot, node, claim, known)
        if why_not is not None:
            blocked.append(why_not)
            moments.append(snapshot.now + BLOCKED_SECONDS)
        elif claim.deleting_since is None or not _is_deadline_over(claim, snapshot.now):
            orders.append(_replacement(claim, node, condition))
    return Repairs(
        orders=tuple(orders),
        reboots=tuple(rebooted),
        blocked=tuple(blocked),
        next_due=min(moments, default=None),
    )


def _why_not(snapshot: Snapshot, node: Node, claim: NodeClaim, policies: tuple[RepairPolicy, ...]) -> Blocked | None:
    """GCR-14, GCR-18."""
    pool = claim.labels.get(names.NODE_POOL, "")
    if is_kept_from_repair(node, claim):
        return Blocked(node=node.name)
    if not too_many(snapshot, pool, policies):
        return None
    return Blocked(node=node.name, where="nodepool" if pool else "cluster")


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


def _fault(node: Node, policies: tuple[RepairPolicy, ...]) -> tuple[float, Condition] | None:
    """GCR-12: of the policies that match, the one that ends first, with that moment."""
    found = [(condition.changed + policy.toleration, condition) for policy, condition in matching(node, policies)]
    return min(found, key=lambda each: (each[0], each[1].type), default=None)
