"""A Karpenter that runs in the same cluster is seen by its Lease, and so is its end."""

from pathlib import Path
from typing import Any

import pytest

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.karpenter_lease import KarpenterLease
from dovetail.model.values.json import Json
from tests.adapters.kube.fake_server import Reply, fake_server, says

PATH = "/apis/coordination.k8s.io/v1/leases"
NOW = 1_790_000_100.0  # 2026-09-21T14:15:00Z


def a_lease(**spec: Any) -> Json:
    meta = {"name": "karpenter-leader-election", "namespace": "karpenter"}
    given = {
        "holderIdentity": "karpenter-abc_1",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-09-21T14:14:58.123456Z",
    }
    return {"metadata": meta, "spec": {**given, **spec}}


async def holder(tmp_path: Path, *replies: Reply) -> list[str]:
    """Who is seen to lead, look by look."""
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        server.on(PATH, *replies)
        lease, found = KarpenterLease(client, lambda: NOW), []
        for _ in replies:
            await lease.look()
            found.append(lease.holder)
        assert server.asked[0][2] == {"fieldSelector": "metadata.name=karpenter-leader-election"}
        await client.close()
    return found


def items(*leases: Json) -> Reply:
    return says(200, {"items": list(leases)})


async def test_a_leader_is_named_until_it_gives_its_lease_up(tmp_path: Path) -> None:
    given_up = a_lease(holderIdentity="", leaseDurationSeconds=1)
    who = "karpenter-abc_1 in namespace karpenter"
    assert await holder(tmp_path, items(), items(a_lease()), items(given_up)) == ["", who, ""]


@pytest.mark.parametrize(
    ("spec", "leads"),
    [
        ({"renewTime": "2026-09-21T14:14:31.000000Z"}, True),  # it has missed a renewal or two
        ({"renewTime": "2026-09-21T14:14:29.000000Z"}, False),  # it was killed
        ({"renewTime": None}, False),
        ({"renewTime": "soon"}, False),
        ({"holderIdentity": None}, False),
        ({"leaseDurationSeconds": None}, True),
    ],
)
async def test_a_lease_that_has_run_out_or_cannot_be_read_is_nobodys(
    tmp_path: Path, spec: dict[str, Any], leads: bool
) -> None:
    [found] = await holder(tmp_path, items(a_lease(**spec)))
    assert bool(found) is leads


async def test_what_cannot_be_asked_counts_as_it_was(tmp_path: Path) -> None:
    refused, away = says(403, {"message": "may not"}), says(503, {"message": "away"})
    who = "karpenter-abc_1 in namespace karpenter"
    assert await holder(tmp_path, refused, items(a_lease()), away) == ["", who, who]


@pytest.mark.parametrize(("expected", "stands_aside"), [(False, True), (True, False)])
async def test_only_a_worker_that_acts_stands_aside(tmp_path: Path, expected: bool, stands_aside: bool) -> None:
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        server.on(PATH, items(a_lease()))
        lease = KarpenterLease(client, lambda: NOW, expected=expected)
        await lease.look()
        await client.close()

    assert lease.holder == "karpenter-abc_1 in namespace karpenter"
    assert bool(lease.trouble()) is stands_aside
