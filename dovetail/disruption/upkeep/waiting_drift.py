"""Which nodes have drifted for a week without beginning to leave, and what keeps them?

The ladder of drains begins with the mark. The wait before it is only published: nobody is asked, and nothing is forced.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.said import Cause

OVERDUE: Final = 7 * 86_400.0  # seconds since it was found to have drifted


def overdue_drift(snapshot: Snapshot) -> Mapping[str, tuple[NodeClaim, ...]]:
    """The claims by NodePool, the longest wait first; every pool of ours has an entry."""
    found: dict[str, list[NodeClaim]] = {
        name: [] for name, pool in snapshot.pools.items() if snapshot.is_ours(pool.template.node_class)
    }
    for claim, since in _waiting(snapshot):
        if snapshot.now >= since + OVERDUE:
            found[claim.labels[names.NODE_POOL]].append(claim)
    return {name: tuple(sorted(claims, key=_since)) for name, claims in found.items()}


def next_overdue(snapshot: Snapshot) -> float | None:
    """When the next one will have waited that long."""
    coming = (since + OVERDUE for _, since in _waiting(snapshot) if since + OVERDUE > snapshot.now)
    return min(coming, default=None)


def why_waiting(snapshot: Snapshot, pool: str) -> str:
    """The rule set by people that keeps the pool's drifted nodes from leaving; empty if none does."""
    held = hold_of(said_in(snapshot, pool), Cause.DRIFTED, replaced=True)
    return "" if held is None else held.message


def _waiting(snapshot: Snapshot) -> Iterator[tuple[NodeClaim, float]]:
    """What has drifted and stays, and since when."""
    for claim in snapshot.claims.values():
        drifted, pool = claim.condition(names.DRIFTED), snapshot.pools.get(claim.labels.get(names.NODE_POOL, ""))
        if drifted is None or drifted.status != "True" or pool is None or not _stays(claim, snapshot):
            continue
        if snapshot.is_ours(pool.template.node_class):
            yield claim, drifted.changed


def _stays(claim: NodeClaim, snapshot: Snapshot) -> bool:
    leaves = claim.deleting_since is not None or claim.is_true(names.DISRUPTION_REASON)
    return not leaves and claim.name not in snapshot.taken


def _since(claim: NodeClaim) -> tuple[float, str]:
    drifted = claim.condition(names.DRIFTED)
    return (drifted.changed if drifted is not None else 0.0), claim.name
