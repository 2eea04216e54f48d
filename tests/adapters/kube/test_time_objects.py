"""Freezes, policies and roll-outs are read live, and what cannot be read is not taken for absent."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.objects.time_objects import KubeTimeObjects
from dovetail.adapters.kubernetes_json.kinds import DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT
from dovetail.ports.failures import Unreachable
from tests.adapters.kube.fake_server import FakeServer, fake_server, says

KINDS = (DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT)
NONE = {"metadata": {"resourceVersion": "9"}, "items": []}
PEAK = {
    "metadata": {"name": "peak", "uid": "f", "resourceVersion": "5", "creationTimestamp": "2026-11-01T00:00:00Z"},
    "spec": {"reason": "peak season"},
}


@asynccontextmanager
async def reading(
    folder: Path, was_listed: Callable[[str], bool] = lambda _: False
) -> AsyncIterator[tuple[FakeServer, KubeTimeObjects]]:
    async with fake_server(folder) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        yield server, KubeTimeObjects(client, was_listed)
        await client.close()


async def test_kinds_that_discovery_does_not_name_have_no_objects(tmp_path: Path) -> None:
    async with reading(tmp_path) as (server, times):
        server.serves()
        found = await times.read()
        assert (found.policies, found.freezes, found.rollouts) == ({}, {}, {})
        server.on(FREEZE.path, says(200, {**NONE, "items": [PEAK]}))
        assert list((await times.read()).freezes) == ["peak"], "it is asked for each time"


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
@pytest.mark.parametrize("how", ["discovery is not to be had", "discovery names it", "it has been listed"])
async def test_a_404_is_not_taken_for_there_are_none(tmp_path: Path, kind: str, how: str) -> None:
    """Else a proxy's page would open a Freeze."""
    async with reading(tmp_path, lambda name: how == "it has been listed") as (server, times):
        if how != "discovery is not to be had":
            server.serves(*[each.path for each in KINDS if how == "discovery names it"])
        for each in KINDS:
            server.on(each.path, says(404, b"<html>no route</html>") if each.name == kind else says(200, NONE))
        with pytest.raises(Unreachable, match=f"{kind}: it is not known which there are"):
            await times.read()
