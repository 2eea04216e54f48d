"""The notices that something is stopped for a NodePool because it did not help."""

from dovetail.model.pools import NodePool
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice


def launches_stopped(pool: NodePool, why: str) -> Notice:
    """Published once, when the pool is stopped."""
    message = f"Launches are stopped: {why}. Mend the cause, then: dovetail resume --pool {pool.name}"
    return notice_about(pool, "LaunchesStopped", message, "Warning", distinct=message)


def replacements_held(pool: NodePool, says: str) -> Notice:
    """Published when a replacement has failed and the pool's breaker is open."""
    return notice_about(pool, "ReplacementsHeld", says, "Warning", distinct=says)


def consolidation_slowed(pool: NodePool, says: str) -> Notice:
    """Published when nodes that consolidation took have come back once more."""
    return notice_about(pool, "ConsolidationSlowed", f"Consolidation moves no pods: {says}", distinct=says)
