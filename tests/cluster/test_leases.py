"""Does a node's heartbeat end with the node?

A lease that is renewed for a node that has gone takes the place of heartbeats that count, and nodes that live fall to
NotReady. So nodes come and go here as briefly as an instance that is interrupted while it boots.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from testbed.plane import KUBELET_ALIVE, KUBELET_LABEL, KUBELET_SILENT, ApiClient, ApiResponse

pytestmark = pytest.mark.cluster

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
COMERS = 120


async def test_no_lease_outlives_its_node_and_a_new_node_has_one(api: ApiClient) -> None:
    names = [f"brief-{uuid.uuid4().hex[:8]}" for _ in range(COMERS)]
    at_once = asyncio.Semaphore(4)  # of more, most go before their lease is begun
    await asyncio.gather(*(_come_and_go(api, at_once, name, number) for number, name in enumerate(names)))

    await api.wait_for(LEASES, lambda leases: not _names(leases) & set(names))
    staying = [f"stays-{uuid.uuid4().hex[:8]}" for _ in range(10)]
    for name in staying:
        await _join(api, name)
    leases = await api.wait_for(LEASES, lambda leases: set(staying) <= _names(leases))

    nodes = {node["metadata"]["name"]: node["metadata"]["uid"] for node in (await api.get(NODES)).body["items"]}
    assert {lease["metadata"]["name"]: _owner(lease) for lease in leases.body["items"]} == nodes
    for name in staying:
        await api.delete(f"{NODES}/{name}")


async def _come_and_go(api: ApiClient, at_once: asyncio.Semaphore, name: str, number: int) -> None:
    """Every other one falls silent first, as the node of an instance that is terminated does."""
    async with at_once:
        await _join(api, name)
        if number % 2:
            await api.patch(f"{NODES}/{name}", {"metadata": {"labels": {KUBELET_LABEL: KUBELET_SILENT}}})
        gone = await api.delete(f"{NODES}/{name}")
        assert gone.status == 200, gone.text


async def _join(api: ApiClient, name: str) -> None:
    created = await api.post(NODES, {"metadata": {"name": name, "labels": {KUBELET_LABEL: KUBELET_ALIVE}}})
    assert created.status == 201, created.text


def _names(leases: ApiResponse) -> set[str]:
    return {lease["metadata"]["name"] for lease in leases.body["items"]}


def _owner(lease: dict[str, Any]) -> str:
    return str(lease["metadata"]["ownerReferences"][0]["uid"])
