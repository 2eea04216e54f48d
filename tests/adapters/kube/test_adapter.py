"""The adapter as a whole: what it waits for when it starts, and what it goes on without."""

from pathlib import Path

import pytest

from dovetail.adapters.kube import adapter as adapters
from dovetail.adapters.kube.adapter import KubeAdapter
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.model.objects.watched_kinds import PLACEMENT
from dovetail.ports.failures import NotSeenYet
from tests.adapters.kube.fake_server import FakeServer, fake_server, says, streams
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


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("refused", ["CSINode", "Service", "NodePool"])
async def test_a_kind_that_only_some_objects_need_holds_up_the_start_but_does_not_prevent_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str, status: int
) -> None:
    monkeypatch.setattr(adapters, "REFUSED_SECONDS", 0.5)
    async with fake_server(tmp_path) as server:
        serve(server, refused, status)
        adapter = await KubeAdapter.connect(ClusterAddress(kubeconfig=server.kubeconfig()))
        try:
            if refused in PLACEMENT:
                await only_refused(adapter, refused)
                with pytest.raises(NotSeenYet, match="NodePool is forbidden"):
                    await adapter.ready(0.1)
            else:
                await adapter.ready(30.0)  # not that long
                # What only some objects need may still be listed then: the start does not wait for it.
                await until(lambda: list(adapter.view.stale()) == [refused], words=f"all but {refused} are listed")
                assert adapter.view.snapshot(PLACEMENT).pools == {}
        finally:
            await adapter.close()
