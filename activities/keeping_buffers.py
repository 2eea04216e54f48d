"""What should stand in each CapacityBuffer's status: whether it can be used, and for how many pods (S-211).

Asked by upkeep where the feature gate is open. Whether the room stands is known after a pass, and written by the
planner that made it.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from core.model.snapshot import Snapshot
from core.scheduling.buffer_status import resolved_status
from core.scheduling.buffers import ours, resolve
from ports.objects import CapacityBuffers


class BufferKeeper:
    """Finds what differs in the status of buffers."""

    def __init__(self, buffers: CapacityBuffers, now: Callable[[], float]) -> None:
        self.buffers, self.now = buffers, now

    async def differences(self, snapshot: Snapshot) -> tuple[list[Callable[[], Awaitable[object]]], float]:
        """The writes that are due; nothing changes by itself."""
        writes: list[Callable[[], Awaitable[object]]] = []
        for buffer in ours(snapshot):
            wanted = resolved_status(buffer, resolve(buffer, snapshot), self.now())
            if wanted != buffer.status:
                writes.append(partial(self.buffers.patch_status, buffer, wanted))
        return writes, self.now() + 3600.0
