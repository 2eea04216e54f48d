"""What is wrong with a node, by the cloud's repair policies, and what is to be done about it.

A condition is judged by those policies of its type and status whose expression its reason matches, and where none does
by the one that has none. Of what is due now, the most thorough remedy is taken, and the shortest time to drain.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, RepairPolicy
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.durations import DAY

SHARE: Final = 20  # percent of a pool's nodes, rounded up (GCR-14)
AGING_SECONDS: Final = 1800.0  # so long after its toleration a fault counts as one priority more
REBOOTS: Final = 2  # of a node within a day; then it is replaced

Policies = tuple[RepairPolicy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFault:
    """What is due now. `grace`: how long its drain may last by the policies; None if they do not say."""

    condition: Condition
    reboots: bool
    score: float
    grace: float | None = None

    def bound(self, claim: NodeClaim) -> float | None:
        """How long its drain may last; None without end."""
        known = [grace for grace in (self.grace, claim.termination_grace) if grace is not None]
        return min(known, default=None)


@dataclass(frozen=True, slots=True)
class _Match:
    policy: RepairPolicy
    condition: Condition
    due: float

    @property
    def order(self) -> tuple[bool, int, float, str]:
        """The most thorough first, then by priority, age and name."""
        return self.policy.reboots, -self.policy.priority, self.due, self.condition.type


def matching(node: Node, policies: Iterable[RepairPolicy]) -> list[tuple[RepairPolicy, Condition]]:
    """The policies by which the node is unhealthy, whatever their toleration."""
    known, found = _by_condition(tuple(policies)), list[tuple[RepairPolicy, Condition]]()
    for condition in node.conditions:
        own = known.get((condition.type, condition.status), ())
        special = [policy for policy in own if policy.reason and re.search(policy.reason, condition.reason)]
        found += [(policy, condition) for policy in special or [policy for policy in own if not policy.reason]]
    return found


def fault_of(node: Node, claim: NodeClaim, policies: Policies, now: float) -> NodeFault | None:
    """What is due now; None if nothing is."""
    due = [match for match in _matches(node, claim, policies) if match.due <= now]
    if not due:
        return None
    first = min(due, key=lambda match: match.order)
    ranks = {priority: rank for rank, priority in enumerate(sorted({policy.priority for policy in policies}))}
    return NodeFault(
        condition=first.condition,
        reboots=first.policy.reboots and len(recent_reboots(claim, now)) < REBOOTS,
        score=max(ranks[match.policy.priority] + (now - match.due) / AGING_SECONDS for match in due),
        grace=min((match.policy.grace for match in due if match.policy.grace is not None), default=None),
    )


def next_faults(node: Node, claim: NodeClaim, policies: Policies) -> Iterator[float]:
    """The ends of the tolerations of what is wrong with the node."""
    return (match.due for match in _matches(node, claim, policies))


def recent_reboots(claim: NodeClaim, now: float) -> tuple[float, ...]:
    """When its instance was rebooted for a repair within the last day."""
    return tuple(moment for moment in memory_of(claim.annotations).reboots if moment > now - DAY)


def is_kept_from_repair(node: Node, claim: NodeClaim) -> bool:
    """Whether a person has said on the node or its claim that it is not to be repaired."""
    return "true" in (node.annotations.get(names.DO_NOT_REPAIR), claim.annotations.get(names.DO_NOT_REPAIR))


def too_many(snapshot: Snapshot, pool: str, policies: Iterable[RepairPolicy]) -> bool:
    """GCR-14: whether more than a fifth of the pool's nodes, or of all where none is named, are unhealthy now, whatever
    the toleration."""
    known = tuple(policies)
    group = [node for node in snapshot.nodes.values() if not pool or node.labels.get(names.NODE_POOL) == pool]
    return sum(bool(matching(node, known)) for node in group) > -(-len(group) * SHARE // 100)


def _matches(node: Node, claim: NodeClaim, policies: Policies) -> list[_Match]:
    """No condition is older than its Node, nor than the end of its last reboot."""
    last = claim.condition(names.REBOOTING)
    since = max(node.created, last.changed if last is not None and last.status == "False" else 0.0)
    return [_Match(p, c, max(c.changed, since) + p.toleration) for p, c in matching(node, policies)]


@cache
def _by_condition(policies: Policies) -> dict[tuple[str, str], Policies]:
    """Those for each condition and status, the one without an expression among all."""
    general = tuple(policy for policy in policies if not policy.reason)
    found = {(each.condition, each.status): general for each in policies}
    for each in policies:
        if each.reason:
            found[each.condition, each.status] += (each,)
    return found
