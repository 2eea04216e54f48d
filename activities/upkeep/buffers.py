"""What each CapacityBuffer's status should say: whether it can be used, and for how many pods (PLC-211).

Whether its room exists is known after a pass, and written by the step that planned it.
"""

from collections.abc import Callable
from functools import partial

from dovetail.activities.shared.looks.look import Look, Write
from dovetail.model.snapshot import Snapshot
from dovetail.placement.buffers.status import resolved_status
from dovetail.placement.buffers.virtual_pods import ours, resolve, within_all
from dovetail.ports.objects import CapacityBuffers


class BufferUpkeep:
    """Finds what differs in the status of buffers."""

    def __init__(self, buffers: CapacityBuffers, now: Callable[[], float]) -> None:
        self.buffers, self.now = buffers, now

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due; time alone changes nothing."""
        writes: list[Write] = []
        for buffer, found in within_all([(buffer, resolve(buffer, snapshot)) for buffer in ours(snapshot)]):
            wanted = resolved_status(buffer, found, self.now())
            if wanted != buffer.status:
                writes.append(partial(self.buffers.patch_status, buffer, wanted))
        return Look(due=writes)
