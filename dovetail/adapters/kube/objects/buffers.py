"""CapacityBuffers, read live; their status, the only part of a buffer that is ours, is written."""

from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.requests import Caller
from dovetail.adapters.kubernetes_json.kinds import CAPACITY_BUFFER
from dovetail.adapters.kubernetes_json.parsing.buffers import parse_capacity_buffer
from dovetail.adapters.kubernetes_json.rendering.buffers import render_status
from dovetail.model.objects.buffers import BufferStatus, CapacityBuffer


class KubeCapacityBuffers:
    def __init__(self, client: Caller) -> None:
        self._client = client

    async def read(self, buffer: CapacityBuffer) -> CapacityBuffer | None:
        return await self._in(buffer.namespace).read(buffer.name)

    async def patch_status(self, buffer: CapacityBuffer, status: BufferStatus) -> CapacityBuffer | None:
        return await self._in(buffer.namespace).patch(buffer, {"status": render_status(status)}, "status")

    def _in(self, namespace: str) -> Collection[CapacityBuffer]:
        group, _, plural = CAPACITY_BUFFER.path.rpartition("/")
        path = f"{group}/namespaces/{namespace}/{plural}"
        return Collection(self._client, CAPACITY_BUFFER.name, path, parse_capacity_buffer)
