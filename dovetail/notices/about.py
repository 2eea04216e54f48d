"""Makes a notice about an object of the cluster, whose kind, name and UID it takes from the object."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.workloads import DaemonSet, Deployment
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.notices.notice import Notice

STANDING_WINDOW: Final = 900.0  # for a lasting state: repeated each quarter of an hour


def notice_about(
    subject: Pod | Node | NodeClaim | NodePool | Deployment | DaemonSet,
    reason: str,
    message: str,
    type: Literal["Normal", "Warning"] = "Normal",
    *,
    distinct: str = "",
) -> Notice:
    """A notice that is not repeated for the usual two minutes; `distinct` as in `Notice`."""
    return Notice(
        kind=subject.__class__.__name__,
        namespace=subject.namespace if isinstance(subject, Pod | Deployment | DaemonSet) else "",
        name=subject.name,
        uid=subject.uid,
        type=type,
        reason=reason,
        message=message,
        distinct=distinct,
    )


def warnings_on_pools(pools: Iterable[NodePool], reason: str, message: str) -> list[Notice]:
    """Warnings that concern the whole cluster: on each NodePool, where people look when their pods stay pending."""
    return [
        replace(notice_about(pool, reason, message, "Warning"), window=STANDING_WINDOW)
        for pool in sorted(pools, key=lambda pool: pool.name)
    ]
