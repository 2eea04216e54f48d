"""What stands before the API server answers in its place while it starts or has no route: by such an answer nothing is
gone, done or absent."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.karpenter_lease import KarpenterLease
from dovetail.adapters.kube.objects.claims import KubeNodeClaims
from dovetail.adapters.kube.objects.namespaces import KubeNamespaces
from dovetail.adapters.kube.objects.pods import KubePods
from dovetail.adapters.kube.objects.pools import KubeNodePools
from dovetail.adapters.kube.objects.time_objects import KubeTimeObjects
from dovetail.adapters.kube.raw import server_version
from dovetail.adapters.kubernetes_json.kinds import DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.model.values.json import Json
from dovetail.ports.failures import Unreachable
from tests.adapters.kube.fake_server import GONE, Reply, says, talking
from tests.adapters.kube.test_karpenter_lease import NOW, PATH, a_lease, items
from tests.ports.objects import a_pod

POD = parse_pod(a_pod("web", "n"))
POD_PATH = "/api/v1/namespaces/default/pods/web"
EMPTY: Json = {"kind": "List", "metadata": {"resourceVersion": "9"}, "items": []}
PAGES: dict[str, Reply] = {
    "page": says(200, b"<html>We will be back soon</html>"),
    "nothing": says(200, b""),
    "text": says(200, b'"ok"'),
    "object": says(200, b'{"status": "ok"}'),
}
NO_ROUTE: dict[str, Reply] = {
    "page": says(404, b"<html>no route</html>"),
    "text": says(404, b"404 page not found"),
    "object": says(404, {"error": "no route"}),
}


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_does_not_empty_a_node(tmp_path: Path, page: str) -> None:
    """Else a drain would be complete, and the instance end under its pods."""
    async with talking(tmp_path) as (server, client):
        server.on("/api/v1/pods", PAGES[page], says(200, EMPTY))
        with pytest.raises(Unreachable, match="Pods on n"):
            await KubePods(client).list_on("n")
        assert await KubePods(client).list_on("n") == ()


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_opens_no_freeze(tmp_path: Path, page: str) -> None:
    async with talking(tmp_path) as (server, client):
        for kind in (DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT):
            server.on(kind.path, PAGES[page] if kind is FREEZE else says(200, EMPTY), says(200, EMPTY))
        times = KubeTimeObjects(client, lambda _: True)
        with pytest.raises(Unreachable, match="Freeze"):
            await times.read()
        assert (await times.read()).freezes == {}


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_ends_no_karpenter(tmp_path: Path, page: str) -> None:
    async with talking(tmp_path) as (server, client):
        server.on(PATH, items(a_lease()), PAGES[page], items())
        lease, found = KarpenterLease(client, lambda: NOW), []
        for _ in range(3):
            await lease.look()
            found.append(bool(lease.trouble()))
    assert found == [True, True, False]


READS: dict[str, tuple[str, Callable[[Client], Awaitable[object]]]] = {
    "pause of all": ("/api/v1/namespaces/kube-system", lambda client: KubeNamespaces(client).read("kube-system")),
    "pause of a pool": ("/apis/karpenter.sh/v1/nodepools/web", lambda client: KubeNodePools(client).read("web")),
    "claim": ("/apis/karpenter.sh/v1/nodeclaims/web", lambda client: KubeNodeClaims(client).read("web")),
    "pod": (POD_PATH, lambda client: KubePods(client).read(POD)),
}


@pytest.mark.parametrize("page", NO_ROUTE)
@pytest.mark.parametrize("read", READS)
async def test_an_object_is_gone_only_if_the_api_server_says_so(tmp_path: Path, read: str, page: str) -> None:
    """Else a pause would be over, and a claim that stands would leave its instance to be collected."""
    path, look = READS[read]
    async with talking(tmp_path) as (server, client):
        server.on(path, NO_ROUTE[page], says(404, GONE))
        with pytest.raises(Unreachable, match="not an answer of the API server"):
            await look(client)
        assert await look(client) is None


@pytest.mark.parametrize("page", NO_ROUTE)
async def test_the_version_is_asked_again_where_a_gateway_has_no_route(tmp_path: Path, page: str) -> None:
    """Else a worker's start would end with it."""
    async with talking(tmp_path) as (server, client):
        server.on("/version", NO_ROUTE[page], says(200, b'{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}'))
        with pytest.raises(Unreachable, match="not an answer of the API server"):
            await server_version(client)
        assert await server_version(client) == "1.36"


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_has_evicted_and_deleted_nothing(tmp_path: Path, page: str) -> None:
    async with talking(tmp_path) as (server, client):
        claim = "/apis/karpenter.sh/v1/nodeclaims/web"
        for each in (PAGES[page], NO_ROUTE["page"]):
            server.on(f"{POD_PATH}/eviction", each)
            server.on(claim, each)
            with pytest.raises(Unreachable):
                await KubePods(client).evict(POD)
            with pytest.raises(Unreachable):
                await KubeNodeClaims(client).delete("web", "u")
        server.on(f"{POD_PATH}/eviction", says(404, GONE))
        server.on(claim, says(404, GONE))
        assert (await KubePods(client).evict(POD)).outcome == "gone"
        assert await KubeNodeClaims(client).delete("web", "u") == 0
