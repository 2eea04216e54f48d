"""Publishes what a pass came to: notices for pods and pools, a condition for each CapacityBuffer.

What cannot be published never fails the step: it is logged, and published again after the next pass. Where upkeep has
written a buffer's status meanwhile, the condition is set on the buffer as it is now.
"""

import asyncio
import logging
from collections.abc import Callable

from dovetail.model.buffers import CapacityBuffer
from dovetail.model.placements import Placement
from dovetail.model.snapshot import Snapshot
from dovetail.notices.placements import placement_notices
from dovetail.placement.buffers.status import judged_status
from dovetail.placement.buffers.verdicts import BufferVerdict, for_real_pods, verdicts
from dovetail.ports.failures import Conflict, Failure
from dovetail.ports.objects import CapacityBuffers, Notices

_log = logging.getLogger(__name__)


class PlacementPublisher:
    """`buffers` is None where the feature gate is closed."""

    def __init__(self, notices: Notices, buffers: CapacityBuffers | None, now: Callable[[], float]) -> None:
        self.notices, self.buffers, self.now = notices, buffers, now

    async def publish(self, snapshot: Snapshot, placement: Placement) -> None:
        """PLC-225 to PLC-227 for real pods, PLC-214 for buffers."""
        await self.notices.publish(*placement_notices(snapshot, for_real_pods(placement)))
        if self.buffers is None or not snapshot.buffers:
            return
        judged = [(snapshot.buffers[key], verdict) for key, verdict in sorted(verdicts(snapshot, placement).items())]
        await asyncio.gather(*[self._write_verdict(self.buffers, buffer, verdict) for buffer, verdict in judged])

    async def _write_verdict(self, buffers: CapacityBuffers, buffer: CapacityBuffer, verdict: BufferVerdict) -> None:
        try:
            try:
                await self._write(buffers, buffer, verdict)
            except Conflict:
                live = await buffers.read(buffer)
                if live is not None and live.uid == buffer.uid:
                    await self._write(buffers, live, verdict)
        except Failure as failure:
            _log.warning("whether the room of CapacityBuffer %s stands could not be written: %s", buffer.key, failure)

    async def _write(self, buffers: CapacityBuffers, buffer: CapacityBuffer, verdict: BufferVerdict) -> None:
        wanted = judged_status(buffer, verdict, self.now())
        if wanted != buffer.status:
            await buffers.patch_status(buffer, wanted)
