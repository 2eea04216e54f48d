"""Every status is looked at, and becomes the failure that says what can be done about it."""

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress, user_agent
from dovetail.adapters.kube.failures import Expired
from dovetail.adapters.kube.objects.pods import KubePods
from dovetail.adapters.kube.requests import Request, object_path
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.ports.failures import (
    Conflict,
    Failure,
    Forbidden,
    Misconfigured,
    Refused,
    Retryable,
    Taken,
    Throttled,
    Unauthenticated,
    Unreachable,
)
from testbed.faults.certificates import Authority, Pair
from tests.adapters.kube.fake_server import FakeServer, fake_server, says, streams
from tests.ports.objects import a_least_pod

GET = Request(method="GET", path="/x", subject="Pod/shop/web")


@asynccontextmanager
async def connected(server: FakeServer, token: str = "") -> AsyncIterator[Client]:
    client = Client(ClusterAddress(kubeconfig=server.kubeconfig(token)))
    await client.open()
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_client_that_only_looks_sends_nothing_that_writes(tmp_path: Path, method: str) -> None:
    """What we may do is a question, although it is put by POST."""
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig(), read_only=True))
        await client.open()
        server.on("/x", says(200, {}))
        server.on(review, says(201, {"status": {"allowed": True}}))
        with pytest.raises(Forbidden, match="Pod/shop/web: not written"):
            await client.call(replace(GET, method=method))
        await client.call(GET)
        await client.call(replace(GET, method="POST", path=review))
        await client.close()

        assert [(asked[0], asked[1]) for asked in server.asked] == [("GET", "/x"), ("POST", review)]


@pytest.mark.parametrize(
    ("status", "reason", "failure"),
    [
        (400, "BadRequest", Refused),
        (401, "Unauthorized", Unauthenticated),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", Refused),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", Taken),
        (410, "Expired", Expired),
        (422, "Invalid", Refused),
        (429, "TooManyRequests", Throttled),
        (500, "InternalError", Unreachable),
        (503, "ServiceUnavailable", Unreachable),
        (504, "Timeout", Unreachable),
        (507, "", Unreachable),
        (529, "", Unreachable),  # what only a gateway says
    ],
)
async def test_a_status_becomes_the_failure_that_names_its_object(
    tmp_path: Path, status: int, reason: str, failure: type[Failure]
) -> None:
    async with fake_server(tmp_path) as server, connected(server) as client:
        server.on("/x", says(status, {"kind": "Status", "reason": reason, "message": "because"}))

        with pytest.raises(Failure) as raised:
            await client.call(GET)

    assert type(raised.value) is failure or (status == 404 and isinstance(raised.value, Refused))
    assert str(raised.value) == "Pod/shop/web: because"


async def test_an_expected_status_is_an_answer(tmp_path: Path) -> None:
    async with fake_server(tmp_path) as server, connected(server) as client:
        request = Request(method="GET", path="/x", subject="s", expected=frozenset({404}))

        assert (await client.call(request)).status == 404


@pytest.mark.parametrize("status", [429, 503])
async def test_the_wait_that_the_server_asks_for_is_kept(tmp_path: Path, status: int) -> None:
    async with fake_server(tmp_path) as server, connected(server) as client:
        server.on("/x", says(status, {"message": "later"}, {"Retry-After": "7"}))

        with pytest.raises(Retryable) as raised:
            await client.call(GET)

    assert raised.value.after == 7.0


async def test_a_refusal_names_the_fields(tmp_path: Path) -> None:
    body = {"message": "is invalid", "details": {"causes": [{"field": "spec.taints[0].key", "message": "bad"}]}}
    async with fake_server(tmp_path) as server, connected(server) as client:
        server.on("/x", says(422, body))

        with pytest.raises(Refused, match=r"is invalid \(spec\.taints\[0\]\.key\)"):
            await client.call(GET)


async def test_what_an_admission_policy_refuses_needs_a_person_whatever_is_written(tmp_path: Path) -> None:
    """By default a policy answers 422, as for a value that is wrong; but it names no field."""
    said = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: ask us"
    body = {"message": f"is forbidden: {said}", "reason": "Invalid", "details": {"causes": [{"message": said}]}}
    async with fake_server(tmp_path) as server, connected(server) as client:
        server.on("/x", says(422, body))
        with pytest.raises(Forbidden, match="denied request: ask us"):
            await client.call(GET)


@pytest.mark.parametrize("details", ["busy", ["busy"], {"causes": "busy"}, {"causes": 7}, {"causes": ["busy", {}]}])
async def test_details_in_a_form_of_a_gateway_s_own_hide_no_failure(tmp_path: Path, details: object) -> None:
    body = {"message": "because", "details": details}
    async with fake_server(tmp_path) as server, connected(server) as client:
        server.on("/x", says(400, body))
        with pytest.raises(Refused, match=r"^Pod/shop/web: because$"):
            await client.call(GET)
        server.on("/api/v1/namespaces/default/pods/web/eviction", says(429, body))
        with pytest.raises(Throttled, match="because"):
            await KubePods(client, clock=time.time).evict(parse_pod(a_least_pod("web", "n")))


async def test_a_page_of_a_proxy_is_no_mystery(tmp_path: Path) -> None:
    async with fake_server(tmp_path) as server, connected(server) as client:
        server.on("/x", says(502, b"<html>Bad Gateway</html>"))

        with pytest.raises(Unreachable, match="Bad Gateway"):
            await client.call(GET)


async def test_no_server_is_unreachable(tmp_path: Path) -> None:
    async with fake_server(tmp_path) as server:
        kubeconfig = server.kubeconfig()
    client = Client(ClusterAddress(kubeconfig=kubeconfig))
    await client.open()

    with pytest.raises(Unreachable, match="Pod/shop/web: "):
        await client.call(GET)
    await client.close()


async def test_every_call_carries_our_name_and_our_token(tmp_path: Path) -> None:
    async with fake_server(tmp_path) as server, connected(server, token="secret") as client:
        server.on("/x", says(200))

        await client.call(GET)

    headers = server.asked[0][4]
    assert headers["User-Agent"] == user_agent() and user_agent().startswith("dovetail/")
    assert headers["Authorization"] == "Bearer secret"


async def test_credentials_that_have_expired_are_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.adapters.kube.client._RELOAD_SECONDS", -1.0)
    async with fake_server(tmp_path) as server, connected(server, token="old") as client:
        server.on("/x", says(401, {"message": "Unauthorized"}), says(200, {"kind": "Pod"}))
        server.kubeconfig("new")

        answer = await client.call(GET)

    assert answer.body == {"kind": "Pod"}
    assert [asked[4]["Authorization"] for asked in server.asked] == ["Bearer old", "Bearer new"]


def kubeconfig_of(folder: Path, url: str, **files: Path) -> Path:
    """A kubeconfig that names its certificates as files, as those of a service account are."""
    path = folder / "with-files"
    cluster = f"{{server: '{url}', certificate-authority: '{files['authority']}'}}"
    user = f"{{client-certificate: '{files['client']}', client-key: '{files['key']}'}}" if "client" in files else "{}"
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], "
        f"clusters: [{{name: c, cluster: {cluster}}}], users: [{{name: u, user: {user}}}]}}"
    )
    return path


def tls_of(pair: Pair, clients_of: Path | None = None) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    if clients_of is not None:
        tls.verify_mode = ssl.CERT_OPTIONAL
        tls.load_verify_locations(clients_of)
    return tls


async def watched(client: Client) -> bool:
    async with client.stream(replace(GET, query={"watch": "1"}), 5.0):
        return True


async def test_an_authority_that_has_changed_is_read_anew_by_calls_and_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read at a start alone: only that every worker was killed after ten minutes healed a cluster whose
    authority was exchanged."""
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(old.certificate.read_bytes())
    async with fake_server(tmp_path, tls=tls_of(old.server())) as server:
        address = ClusterAddress(kubeconfig=kubeconfig_of(tmp_path, server.url, authority=trusted))
        port = int(server.url.rpartition(":")[2])
        client, watching = Client(address), Client(address)
        await client.open()
        await watching.open()
        server.on("/x", says(200))
        assert (await client.call(GET)).status == 200
    monkeypatch.setattr("dovetail.adapters.kube.client._RELOAD_SECONDS", -1.0)
    async with fake_server(tmp_path, port, tls_of(new.server())) as server:
        server.on("/x", says(200))
        server.on("/x?watch", streams())
        with pytest.raises(Unreachable, match="certificate"):
            await client.call(GET)
        trusted.write_bytes(new.certificate.read_bytes())

        assert (await client.call(GET)).status == 200
        with pytest.raises(Unreachable, match="certificate"):
            await watched(watching)
        assert await watched(watching), "a watch that breaks is opened again and again"
        await client.close()
        await watching.close()


async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Its content is asked for at the start, where credentials are renewed, and for the user data of nodes."""
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(Authority(tmp_path / "ca").certificate.read_bytes())
    client = Client(ClusterAddress(kubeconfig=kubeconfig_of(tmp_path, "https://127.0.0.1:1", authority=trusted)))
    await client.open()
    trusted.unlink()
    with pytest.raises(Misconfigured, match=f"{trusted}: it cannot be read: No such file"):
        assert client.authority
    with pytest.raises(Misconfigured, match=f"{trusted}"):
        await client.open()
    await client.close()


async def test_a_client_certificate_that_is_renewed_in_its_file_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dovetail.adapters.kube.client._RELOAD_SECONDS", -1.0)
    authority = Authority(tmp_path / "ca")
    first, second = authority.client("first"), authority.client("second")
    shown: list[int] = []

    async def knows_the_second(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        shown.append(int(request.transport.get_extra_info("peercert")["serialNumber"], 16))
        return web.Response(status=200 if shown[-1] == renewed else 401, body=b'{"kind": "Status"}')

    renewed, tls = second.serial, tls_of(authority.server(), clients_of=authority.certificate)
    async with fake_server(tmp_path, tls=tls) as server:
        server.on("/x", knows_the_second)
        files = {"authority": authority.certificate, "client": first.certificate, "key": first.key}
        client = Client(ClusterAddress(kubeconfig=kubeconfig_of(tmp_path, server.url, **files)))
        await client.open()
        before = first.serial
        second.put_over(first)

        answer = await client.call(GET)
        await client.close()

    assert (answer.status, shown) == (200, [before, renewed])


async def test_in_a_pod_a_token_that_is_refused_is_read_anew_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library reads it again after a minute, and until then wrote the one that was refused over the new one."""
    monkeypatch.setattr("dovetail.adapters.kube.client._RELOAD_SECONDS", -1.0)
    authority, token = Authority(tmp_path / "ca"), tmp_path / "token"
    token.write_text("first")

    async def knows_the_second(request: web.Request) -> web.StreamResponse:
        known = request.headers["Authorization"] == "bearer second"
        return web.Response(status=200 if known else 401, body=b'{"kind": "Status"}')

    async with fake_server(tmp_path, tls=tls_of(authority.server())) as server:
        server.on("/x", knows_the_second)
        in_a_pod(monkeypatch, server.url, token, authority.certificate)
        client = Client(ClusterAddress())
        await client.open()
        with pytest.raises(Unauthenticated):
            await client.call(GET)
        token.write_text("second")

        assert (await client.call(GET)).status == 200
        await client.close()


def in_a_pod(monkeypatch: pytest.MonkeyPatch, url: str, token: Path, authority: Path) -> None:
    """As if these were the files and variables of a pod's service account."""
    _, _, place = url.partition("://")
    host, _, port = place.partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    loader = "kubernetes.aio.config.incluster_config"
    monkeypatch.setattr(f"{loader}.SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(f"{loader}.SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setattr("dovetail.adapters.kube.connection._SERVICE_ACCOUNT", token)


async def test_an_authority_that_is_half_written_is_named_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dovetail.adapters.kube.client._RELOAD_SECONDS", -1.0)
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(old.certificate.read_bytes())
    async with fake_server(tmp_path, tls=tls_of(new.server())) as server:
        server.on("/x", says(200))
        client = Client(ClusterAddress(kubeconfig=kubeconfig_of(tmp_path, server.url, authority=trusted)))
        await client.open()
        trusted.write_bytes(new.certificate.read_bytes()[:100])
        with pytest.raises(Misconfigured, match="certificates cannot be used"):
            await client.call(GET)
        trusted.write_bytes(new.certificate.read_bytes())

        assert (await client.call(GET)).status == 200
        await client.close()


@pytest.mark.parametrize("content", [None, "{", "apiVersion: v1\nkind: Config\ncurrent-context: none\ncontexts: []\n"])
async def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "broken"
    if content is not None:
        file.write_text(content)

    with pytest.raises(Misconfigured, match=str(file)):
        await Client(ClusterAddress(kubeconfig=file)).open()


async def test_outside_a_cluster_a_kubeconfig_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dovetail.adapters.kube.connection._SERVICE_ACCOUNT", tmp_path / "token")

    with pytest.raises(Misconfigured, match="neither a kubeconfig was named"):
        await Client(ClusterAddress()).open()


async def test_calls_are_counted(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []
    async with fake_server(tmp_path) as server:
        server.on("/x", says(200))
        client = Client(
            ClusterAddress(kubeconfig=server.kubeconfig()),
            lambda request, status, _: seen.append((request.path, status)),
        )
        await client.open()
        await client.call(GET)
        await client.close()

    assert seen == [("/x", 200)]


def test_the_path_of_an_object_stands_in_its_namespace_and_is_quoted() -> None:
    assert object_path("/api/v1/pods", "a/b", "eviction", "shop") == "/api/v1/namespaces/shop/pods/a%2Fb/eviction"
    assert object_path("/apis/karpenter.sh/v1/nodeclaims", "c") == "/apis/karpenter.sh/v1/nodeclaims/c"
