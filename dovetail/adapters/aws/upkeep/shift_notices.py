"""Publishes an Event on each NodePool concerned when a zone is shifted away from, and when it is used again (AWS-155,
AWS-168).

A pool is concerned if its class has a subnet in the zone and its own requirements allow the zone. One that is created
during a shift also gets an Event (upstream's appear only on pools that exist when it begins).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from dovetail.adapters.aws.node_class.node_class import NodeClass, NodeClasses
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.requirements import from_expressions
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice
from dovetail.ports.objects import Notices

LOOK_SECONDS: Final = 30.0  # as often as shifts are read
ACTIVE: Final = "ZonalShiftActive"
CLEARED: Final = "ZonalShiftCleared"


class ShiftNotices:
    def __init__(
        self,
        shifted: Callable[[], frozenset[str]],
        classes: NodeClasses,
        pools: Callable[[], Iterable[NodePool]],
        notices: Notices,
        clock: Callable[[], float],
    ) -> None:
        self._shifted, self._classes, self._pools = shifted, classes, pools
        self._notices, self._clock = notices, clock
        self._published: set[tuple[str, str]] = set()  # (UID of the pool, zone)

    async def keep(self, claims: Sequence[NodeClaim]) -> float:
        zones, pools = self._shifted(), {pool.uid: pool for pool in self._pools()}
        now = {(uid, zone) for uid, pool in pools.items() for zone in zones if self._concerns(pool, zone)}
        cleared = {(uid, zone) for uid, zone in self._published if uid in pools and zone not in zones}
        due = [_active(pools[uid], zone) for uid, zone in sorted(now - self._published)]
        due += [_cleared(pools[uid], zone) for uid, zone in sorted(cleared)]
        self._published = now
        if due:
            await self._notices.publish(*due)
        return self._clock() + LOOK_SECONDS

    def _concerns(self, pool: NodePool, zone: str) -> bool:
        node_class = self._classes.get(pool.template.node_class.name)
        if not isinstance(node_class, NodeClass) or zone not in {s.zone for s in node_class.status.subnets or ()}:
            return False
        wanted = from_expressions(pool.template.requirements).get(core.ZONE)
        return wanted is None or wanted.has(zone)


def _active(pool: NodePool, zone: str) -> Notice:
    text = f"Traffic is shifted away from zone {zone}: nothing is launched into it, and its instances are left alone"
    return notice_about(pool, ACTIVE, text, "Warning", distinct=zone)


def _cleared(pool: NodePool, zone: str) -> Notice:
    return notice_about(pool, CLEARED, f"Traffic is no longer shifted away from zone {zone}", distinct=zone)
