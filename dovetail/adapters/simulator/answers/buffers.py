"""The port CapacityBuffers over the simulated cluster."""

from dataclasses import dataclass

from dovetail.adapters.kubernetes_json.parsing.buffers import parse_capacity_buffer
from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.rendering.buffers import render_status
from dovetail.adapters.simulator.answers.patching import status_patched
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.calls import Calls
from dovetail.model.objects.buffers import BufferStatus, CapacityBuffer

KIND = "CapacityBuffer"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """An object with a namespace, by its key in the world."""

    name: str
    uid: str
    resource_version: str


class SimulatedCapacityBuffers:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def read(self, buffer: CapacityBuffer) -> CapacityBuffer | None:
        body = await self._calls.read(lambda connection: objects.read(connection, KIND, buffer.key))
        return None if body is None else parsed(parse_capacity_buffer, body)

    async def patch_status(self, buffer: CapacityBuffer, status: BufferStatus) -> CapacityBuffer | None:
        subject = _Subject(name=buffer.key, uid=buffer.uid, resource_version=buffer.resource_version)
        body = await status_patched(self._calls, KIND, subject, render_status(status))
        return None if body is None else parsed(parse_capacity_buffer, body)
