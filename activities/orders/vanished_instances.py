"""Orphans, by the cloud's list of instances: claims whose instance has vanished, and instances without a claim.

The cloud is listed every 30 s, and every 10 s after a start, when a killed worker may have left things behind. A cloud
that hangs answers after minutes, and just then come its warnings: so the list is read beside the look, which waits for
it no longer than half a second, and is judged by the cluster as it was when the list began. A list
lags, so a claim is deleted only after the cloud was asked for that one instance, and an instance is terminated only
when two lists have shown it without a claim. An API server that was restored from a backup would make every instance an
orphan; then nothing is terminated until a person has looked, and the log and a notice on the pools say so. If half of
all or more are lost at once, in however small a cluster, every list of a whole minute must have shown it.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from dovetail.activities.shared.every_step.heartbeats import beside, part_failed, part_works
from dovetail.activities.shared.looks.look import Look
from dovetail.lifecycle import unfinished
from dovetail.lifecycle.unfinished import LaunchedInstance
from dovetail.messages.orders import DeleteClaim, Order
from dovetail.model.snapshot import Snapshot
from dovetail.notices.about import warnings_on_pools
from dovetail.ports.cloud import Cloud
from dovetail.ports.failures import Failure
from dovetail.ports.objects import Notices
from dovetail.telemetry.metrics.ours.outcomes import instances_without_claim

_log = logging.getLogger(__name__)

LIST_SECONDS = 30.0
FIRST_SECONDS = 10.0  # between the first lists of a process (AWS-109)
FIRST_LISTS = 20
PATIENCE_SECONDS = 0.5  # that a look waits for a list: most have come by then
SOON_SECONDS = 1.0  # until it is seen whether a slow list has come


class LostInstanceFinder:
    """The finder that reads the cloud's list. Its lengths of time are by `clock`: no correction of the time of day
    changes them."""

    def __init__(
        self, cloud: Cloud, notices: Notices, now: Callable[[], float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.cloud = cloud
        self.notices = notices
        self.now, self.clock = now, clock
        self.listed = float("-inf")
        self.lists = 0
        # Since when every list has shown them, whatever their age.
        self.unclaimed: dict[str, float] = {}  # instances without a claim
        self.vanished: dict[str, float] = {}  # claims without an instance
        self.logged = ""
        self.listing: asyncio.Task[list[Order]] | None = None  # while a list is under way
        self.found: list[Order] = []  # by the last list

    async def look(self, snapshot: Snapshot) -> Look[Order]:
        """Judge by the last list; a new one comes twice a minute, and every 10 s at first."""
        if self.listing is None and self._wait <= 0:
            self.listed = self.clock()
            self.lists += 1
            self.listing = asyncio.create_task(self._look_at_list(snapshot), context=beside())
            await asyncio.wait((self.listing,), timeout=PATIENCE_SECONDS)
        if self.listing is not None and self.listing.done():
            listed, self.listing = self.listing, None
            self.found = listed.result()
        again = self.now() + (self._wait if self.listing is None else SOON_SECONDS)
        return Look(due=[order for order in self.found if _is_needed(order, snapshot)], again=again)

    @property
    def _wait(self) -> float:
        """Until the next list."""
        return self.listed + (FIRST_SECONDS if self.lists < FIRST_LISTS else LIST_SECONDS) - self.clock()

    async def _look_at_list(self, snapshot: Snapshot) -> list[Order]:
        instances = await self._list()
        if instances is None:
            return []
        return [*await self._vanished(snapshot, instances), *await self._orphans(snapshot, instances)]

    async def _orphans(self, snapshot: Snapshot, instances: list[LaunchedInstance]) -> list[Order]:
        now, found = self.clock(), unfinished.orphans(snapshot, instances)
        before, count = self.unclaimed, f"{len(found)} of {len(instances)} instances have no NodeClaim"
        unclaimed = unfinished.unclaimed(snapshot, instances)
        instances_without_claim(len(unclaimed))
        self.unclaimed = {one.provider_id: before.get(one.provider_id, now) for one in unclaimed}
        if found and unfinished.lost_everything(snapshot):
            self._log_once(f"{count}, and there is no NodePool at all; none is terminated")
            return []
        if unfinished.too_many(len(found), len(instances)):
            words = f"{count}; none is terminated until a person has looked"
            await self._publish(snapshot, "InstanceCollectionStopped", words)
            return []
        least = unfinished.MASS_SECONDS if unfinished.is_mass(len(found), len(instances)) else 0.0
        return [*unfinished.collect(found, unfinished.seen_for(before, now, least))]

    async def _vanished(self, snapshot: Snapshot, instances: list[LaunchedInstance]) -> list[Order]:
        """Claims to delete. A cloud that returns an empty list for a moment must not cost half of a cluster."""
        now, found = self.clock(), unfinished.vanished(snapshot, instances)
        self.vanished = {each.claim.uid: self.vanished.get(each.claim.uid, now) for each in found}
        launched = sum(1 for claim in snapshot.claims.values() if claim.provider_id)
        if len(found) < 2 or not unfinished.is_mass(len(found), launched):
            return [*found]
        words = f"{len(found)} of {launched} NodeClaims have lost their instance at once"
        await self._publish(
            snapshot, "ManyInstancesGone", f"{words}; they are deleted once that has been so for a minute"
        )
        settled = unfinished.seen_for(self.vanished, now, unfinished.MASS_SECONDS)
        return [each for each in found if each.claim.uid in settled]

    async def _list(self) -> list[LaunchedInstance] | None:
        """The instances that are not being terminated; None while the cloud cannot be asked."""
        try:
            instances = await self.cloud.list_instances()
        except Failure as failure:
            _log.warning("cannot list instances now: %s", failure)
            part_failed("list of instances", failure)
            return None
        part_works("list of instances")
        return [
            LaunchedInstance(
                provider_id=one.provider_id, claim_uid=one.claim_uid, group=one.group, launched=one.launched
            )
            for one in instances
            if one.state != "terminating"
        ]

    async def _publish(self, snapshot: Snapshot, reason: str, words: str) -> None:
        """Publish on the pools, where a person looks first: they are all that is left when the claims are lost."""
        self._log_once(words)
        await self.notices.publish(*warnings_on_pools(snapshot.pools.values(), reason, words))

    def _log_once(self, words: str) -> None:
        if words != self.logged:
            self.logged = words
            _log.error("%s", words)


def _is_needed(order: Order, snapshot: Snapshot) -> bool:
    """Whether what the list showed still has to be done."""
    if not isinstance(order, DeleteClaim):
        return True
    claim = snapshot.claims.get(order.claim.name)
    return claim is not None and claim.uid == order.claim.uid and claim.deleting_since is None
