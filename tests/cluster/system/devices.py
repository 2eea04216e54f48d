"""What a driver of devices does: it publishes what the nodes of a type have, once it may, in ResourceSlices.

Claims are made of templates by Kubernetes' own controller, and allocated by its own scheduler.
"""

import asyncio
from contextlib import suppress
from typing import Final

from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.ground import Ground

DRIVER: Final = "gpu.example.com"
API: Final = "/apis/resource.k8s.io/v1"
SLICES: Final = f"{API}/resourceslices"
DEVICE_CLASSES: Final = f"{API}/deviceclasses"
TEMPLATES: Final = f"{API}/namespaces/default/resourceclaimtemplates"
CLAIMS: Final = f"{API}/namespaces/default/resourceclaims"
_LOOK_SECONDS: Final = 0.2


def device(name: str) -> Json:
    """As a ResourceSlice has it, and the file of kwok's instance types."""
    return {"name": name, "attributes": {"model": {"string": "a"}}, "capacity": {"memory": {"value": "80Gi"}}}


def device_class(name: str) -> Json:
    """All devices of the driver."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }


def claim_template(name: str, of_class: str, count: int) -> Json:
    """Each pod gets so many devices of its own, of 40 GiB at least."""
    expression = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
    exactly = {"deviceClassName": of_class, "count": count, "selectors": [{"cel": {"expression": expression}}]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


class DeviceDriver:
    """The driver, while the context is open. `nodes_of`: which devices each instance type has, by its name."""

    def __init__(self, ground: Ground, nodes_of: dict[str, list[Json]]) -> None:
        self._ground, self._api, self._nodes_of = ground, ground.api, nodes_of
        self._publishes = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "DeviceDriver":
        self._work = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._work is not None
        self._work.cancel()
        with suppress(asyncio.CancelledError):
            await self._work

    def publish(self) -> None:
        """From now on its pods run on the nodes, old and new."""
        self._publishes.set()

    async def _serve(self) -> None:
        await self._publishes.wait()
        while True:
            for node in await self._ground.nodes():
                devices = self._nodes_of.get(node["metadata"]["labels"].get(names.INSTANCE_TYPE, ""))
                if devices:
                    await self._publish(node, devices)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _publish(self, node: Json, devices: list[Json]) -> None:
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": f"{name}-gpu",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True}],
            },
            "spec": {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
            },
        }
        answer = await self._api.post(SLICES, body)
        assert answer.status in {201, 409}, f"{answer.status} {answer.text[:300]}"
