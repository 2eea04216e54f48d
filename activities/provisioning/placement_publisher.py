"""Publishes the results of a pass: notices for pods and pools, a condition for each CapacityBuffer.

A failure never fails the step: it is logged, and everything is published again after the next pass. If upkeep has
written a buffer's status meanwhile, the condition is set on the buffer as it is now.
"""

import asyncio
import logging
from collections.abc import Callable

from dovetail.model.objects.buffers import CapacityBuffer
from dovetail.model.places.placements import Placement
from dovetail.model.snapshot import Snapshot
from dovetail.notices.placements import placement_notices
from dovetail.placement.buffers.status import judged_status
from dovetail.placement.buffers.verdicts import BufferVerdict, for_real_pods, verdicts, why_held
from dovetail.ports.failures import Conflict, Failure
from dovetail.ports.objects import CapacityBuffers, Notices

_log = logging.getLogger(__name__)


class PlacementPublisher:
    """`buffers` is None where the feature gate is closed."""

    def __init__(self, notices: Notices, buffers: CapacityBuffers | None, now: Callable[[], float]) -> None:
        self.notices, self.buffers, self.now = notices, buffers, now
        self.next: tuple[Snapshot, Placement] | None = None
        self.publishing: asyncio.Task[None] | None = None

    def publish_beside(self, snapshot: Snapshot, placement: Placement) -> None:
        """Publish while the plan is carried out: claims never wait for it.

        A pass that ends while an earlier one is still being published waits; of several, only the latest is published.
        """
        self.next = snapshot, placement
        if self.publishing is None or self.publishing.done():
            self.publishing = asyncio.create_task(self._publish_next(), name="notices of a pass")

    async def _publish_next(self) -> None:
        while self.next is not None:
            (snapshot, placement), self.next = self.next, None
            try:
                await self.publish(snapshot, placement)
            except Exception:
                _log.exception("the results of a pass could not be published")

    async def publish(self, snapshot: Snapshot, placement: Placement) -> None:
        """PLC-225 to PLC-227 for real pods, PLC-214 for buffers."""
        # In a thread: the words for ten thousand pods take a while, and the event loop has heartbeats to send.
        notices = await asyncio.to_thread(lambda: tuple(placement_notices(snapshot, for_real_pods(placement))))
        await self.notices.publish(*notices)
        if self.buffers is None or not snapshot.buffers:
            return
        held = why_held(placement)
        await asyncio.gather(
            *[
                self._write_verdict(self.buffers, snapshot.buffers[key], verdict, held.get(key, ""))
                for key, verdict in sorted(verdicts(snapshot, placement).items())
            ]
        )

    async def _write_verdict(
        self, buffers: CapacityBuffers, buffer: CapacityBuffer, verdict: BufferVerdict, held: str
    ) -> None:
        try:
            try:
                await self._write(buffers, buffer, verdict, held)
            except Conflict:
                live = await buffers.read(buffer)
                if live is not None and live.uid == buffer.uid:
                    await self._write(buffers, live, verdict, held)
        except Failure as failure:
            _log.warning("CapacityBuffer %s: could not write whether its room exists: %s", buffer.key, failure)

    async def _write(self, buffers: CapacityBuffers, buffer: CapacityBuffer, verdict: BufferVerdict, held: str) -> None:
        wanted = judged_status(buffer, verdict, self.now(), held)
        if wanted != buffer.status:
            await buffers.patch_status(buffer, wanted)
