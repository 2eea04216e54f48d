"""The adapter as a whole: what it waits for when it starts, and what it goes on without."""

import time
from email.utils import formatdate
from pathlib import Path

import pytest

from dovetail.adapters.kube import adapter as adapters
from dovetail.adapters.kube.adapter import KubeAdapter
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.watching import watch
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.written_kinds import NODE_POOL
from dovetail.model.objects.watched_kinds import PLACEMENT
from dovetail.model.values.time import format_time
from dovetail.ports.failures import Failure, NotReadable, NotSeenYet, Permanent
from tests.adapters.kube.fake_server import FakeServer, fake_server, says, streams
from tests.adapters.kube.test_karpenter_lease import PATH as KARPENTERS
from tests.ports.objects import a_least_pod
from tests.waiting import until


def serve(server: FakeServer, refused: str, status: int) -> None:
    """An empty cluster in which one kind cannot be read."""
    server.on("/version", says(200, {"gitVersion": "v1.36.3"}))
    for kind in CLUSTER_KINDS:
        server.on(kind.path, says(200, {"metadata": {"resourceVersion": "10"}, "items": []}))
        server.on(f"{kind.path}?watch", streams())
        if kind.name == refused:
            server.on(kind.path, says(status, {"message": f"{kind.name} is forbidden"}))


async def only_refused(adapter: KubeAdapter, kind: str) -> None:
    """Until all other kinds are listed, and the server has refused this one."""

    def is_so() -> bool:
        stale = adapter.view.stale()
        return set(stale) == {kind} and "is forbidden" in stale[kind]

    await until(is_so, words=f"the server has refused {kind} alone")


@pytest.mark.parametrize(("status", "failure"), [(403, Permanent), (500, NotSeenYet)])
@pytest.mark.parametrize("refused", ["CSINode", "Service", "NodePool"])
async def test_a_kind_that_only_some_objects_need_holds_up_the_start_but_does_not_prevent_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str, status: int, failure: type[Failure]
) -> None:
    monkeypatch.setattr(adapters, "REFUSED_SECONDS", 0.5)
    async with fake_server(tmp_path) as server:
        serve(server, refused, status)
        adapter = await KubeAdapter.connect(ClusterAddress(kubeconfig=server.kubeconfig()))
        try:
            if refused in PLACEMENT:
                await only_refused(adapter, refused)
                if status == 500:
                    monkeypatch.setattr(adapters, "READY_SECONDS", 0.5)
                with pytest.raises(failure, match="NodePool is forbidden"):
                    await adapter.ready()
            else:
                await adapter.ready()
                # What only some objects need may still be listed then: the start does not wait for it.
                await until(lambda: list(adapter.view.stale()) == [refused], words=f"all but {refused} are listed")
                assert adapter.view.snapshot(PLACEMENT).pools == {}
        finally:
            await adapter.close()


async def test_a_kind_that_was_refused_counts_as_late_once_the_server_says_that_it_is_overloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapters, "READY_SECONDS", 0.1)
    monkeypatch.setattr(adapters, "REFUSED_SECONDS", 0.1)
    monkeypatch.setattr(watch, "_REFUSED_SECONDS", 0.1)
    async with fake_server(tmp_path) as server:
        serve(server, "NodePool", 403)
        server.on(NODE_POOL.path, says(403), says(503, {"message": "overloaded"}))
        adapter = await KubeAdapter.connect(ClusterAddress(kubeconfig=server.kubeconfig()))
        try:
            await until(lambda: "overloaded" in adapter.view.stale().get("NodePool", ""), words="it is overloaded")
            with pytest.raises(NotSeenYet, match="overloaded"):
                await adapter.ready()
        finally:
            await adapter.close()


async def test_whose_end_is_overdue_is_judged_by_the_api_servers_time(tmp_path: Path) -> None:
    """A pod that ends within its grace holds its node, though it cannot be read, and by this machine's clock should be
    gone."""
    ago = time.time() - 3600.0
    dated = {"Date": formatdate(ago, usegmt=True)}
    pod = a_least_pod("web", "n")
    pod["spec"]["tolerations"] = 7
    pod["metadata"] |= {"deletionTimestamp": format_time(ago + 30.0), "deletionGracePeriodSeconds": 30}
    async with fake_server(tmp_path) as server:
        serve(server, "", 200)
        server.on("/version", says(200, {"gitVersion": "v1.36.3"}, dated))
        server.on(KARPENTERS, says(200, {"metadata": {"resourceVersion": "10"}, "items": []}, dated))
        server.on("/api/v1/pods", says(200, {"metadata": {"resourceVersion": "10"}, "items": [pod]}, dated))
        adapter = await KubeAdapter.connect(ClusterAddress(kubeconfig=server.kubeconfig()))
        try:
            with pytest.raises(NotReadable, match="tolerations"):
                await adapter.pods.list_on("n")
        finally:
            await adapter.close()
