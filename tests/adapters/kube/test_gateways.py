"""What stands before the API server answers in its place while it starts or has no route: by such an answer nothing is
gone, done or absent."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dovetail.activities.disruption.give_back import GiveBack
from dovetail.activities.shared.every_step.temporal_errors import translate
from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.karpenter_lease import KarpenterLease
from dovetail.adapters.kube.objects.claims import KubeNodeClaims
from dovetail.adapters.kube.objects.namespaces import KubeNamespaces
from dovetail.adapters.kube.objects.pods import KubePods
from dovetail.adapters.kube.objects.pools import KubeNodePools
from dovetail.adapters.kube.objects.time_objects import KubeTimeObjects
from dovetail.adapters.kube.raw import KubeRawObjects, server_version, user_of
from dovetail.adapters.kubernetes_json.kinds import DISRUPTION_POLICY, FREEZE, NODE_ROLLOUT
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.messages.requests import GiveBackRequest
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure, Unreachable
from tests.adapters.kube.fake_server import GONE, Reply, says, talking
from tests.adapters.kube.test_karpenter_lease import NOW, PATH, a_lease, items
from tests.ports.objects import a_least_pod
from worlds.disruption import a_pair
from worlds.fakes import FakeClaims, World, breaker_memory
from worlds.made_claims import made_by

POD = parse_pod(a_least_pod("web", "n"))
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
    "object": says(404, b'{"error": "no route"}'),
}
# What gateways refuse in the API server's place: a login, a limit of theirs, a method that they do not know.
REFUSED_BY_A_GATEWAY = (400, 401, 403, 404, 405, 409, 410, 413, 422)


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_does_not_empty_a_node(tmp_path: Path, page: str) -> None:
    """Else a drain would be complete, and the instance end under its pods."""
    async with talking(tmp_path) as (server, client):
        server.on("/api/v1/pods", PAGES[page], says(200, EMPTY))
        with pytest.raises(Unreachable, match="Pods on n"):
            await KubePods(client, clock=time.time).list_on("n")
        assert await KubePods(client, clock=time.time).list_on("n") == ()


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
        lease, found = KarpenterLease(client, lambda: NOW, expected=False, own=()), []
        for _ in range(3):
            await lease.look()
            found.append(bool(lease.trouble()))
    assert found == [True, True, False]


READS: dict[str, tuple[str, Callable[[Client], Awaitable[object]]]] = {
    "pause of all": ("/api/v1/namespaces/kube-system", lambda client: KubeNamespaces(client).read("kube-system")),
    "pause of a pool": ("/apis/karpenter.sh/v1/nodepools/web", lambda client: KubeNodePools(client).read("web")),
    "claim": ("/apis/karpenter.sh/v1/nodeclaims/web", lambda client: KubeNodeClaims(client).read("web")),
    "pod": (POD_PATH, lambda client: KubePods(client, clock=time.time).read(POD)),
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
                await KubePods(client, clock=time.time).evict(POD)
            with pytest.raises(Unreachable):
                await KubeNodeClaims(client).delete("web", "u")
        server.on(f"{POD_PATH}/eviction", says(404, GONE))
        server.on(claim, says(404, GONE))
        assert (await KubePods(client, clock=time.time).evict(POD)).outcome == "gone"
        assert await KubeNodeClaims(client).delete("web", "u") == 0


@pytest.mark.parametrize("status", REFUSED_BY_A_GATEWAY)
async def test_what_a_gateway_refuses_is_tried_again(tmp_path: Path, status: int) -> None:
    """Else the undo of a disruption or a drain would end with it, for good, and nothing would take it up again."""
    page, world = says(status, b"<html>not here</html>"), World()
    new = a_pair("new", claim={"annotations": made_by("plan-1")})
    world.put(new.claim, new.node)
    request = GiveBackRequest(plan_id=new.claim.plan, names=(new.claim.name,), why="cancelled")
    async with talking(tmp_path) as (server, client):
        server.on("/api/v1/pods", page, says(200, EMPTY))
        giving = GiveBack(FakeClaims(world), KubePods(client, clock=time.time), breaker_memory(world))
        with pytest.raises(Unreachable, match=f"not an answer of the API server about it .{status}.: <html>") as raised:
            await giving.give_back(request)
        told = translate(raised.value)
        assert getattr(told, "non_retryable", None) is False
        await giving.give_back(request)
    assert new.claim.name not in world.claims


@pytest.mark.parametrize("status", REFUSED_BY_A_GATEWAY)
async def test_by_what_a_gateway_refuses_nothing_is_there_already_and_nothing_has_changed(
    tmp_path: Path, status: int
) -> None:
    """A 409 of its own, believed, would be an object that somebody else has made, or a pod that is replaced."""
    page = says(status, b'{"reason": "AlreadyExists", "message": "conflict"}')
    async with talking(tmp_path) as (server, client):
        kinds = KubeRawObjects(client, "ConfigMap", "/api/v1/configmaps", "kube-system")
        for path in ("/api/v1/namespaces/kube-system/configmaps", f"{POD_PATH}/eviction", POD_PATH):
            server.on(path, page)
        with pytest.raises(Unreachable):
            await kinds.create("c", {})
        with pytest.raises(Unreachable):
            await KubePods(client, clock=time.time).evict(POD)
        with pytest.raises(Unreachable):
            await KubePods(client, clock=time.time).delete(POD, 30)


async def test_a_person_s_name_is_unknown_only_if_the_api_server_gives_none(tmp_path: Path) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    async with talking(tmp_path) as (server, client):
        server.on(path, *NO_ROUTE.values(), says(403, {"reason": "Forbidden", "message": "may not"}))
        for _ in NO_ROUTE:
            with pytest.raises(Failure, match="not an answer of the API server"):
                await user_of(client)
        assert await user_of(client) == ""
        server.on(path, NO_ROUTE["text"])
        server.serves("/apis/authentication.k8s.io/v1/tokenreviews")
        assert await user_of(client) == "", "a server before 1.28"
