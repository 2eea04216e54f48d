"""The notice that a NodePool is stopped, since its nodes were of no use."""

from dovetail.model.notice import Notice
from dovetail.model.pools import NodePool
from dovetail.notices.about import notice_about


def launches_stopped(pool: NodePool, why: str) -> Notice:
    """Published once, when the pool is stopped."""
    message = f"Launches are stopped: {why}. Mend the cause, then: dovetail resume --pool {pool.name}"
    return notice_about(pool, "LaunchesStopped", message, "Warning", distinct=message)
