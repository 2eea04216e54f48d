"""What only a real API server can show: rights, outages, what it costs, and who it thinks we are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dovetail.activities.shared.writes.revisions import revise_node
from dovetail.adapters.kube import adapter as adapters
from dovetail.adapters.kube.adapter import KubeAdapter
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.requests import Request
from dovetail.adapters.kubernetes_json.kinds import raw_kind
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node
from dovetail.lifecycle.registration import NodeChange
from dovetail.messages.writes import claim_write
from dovetail.model.nodes import Condition
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.json import Json
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Forbidden, NotSeenYet, Permanent, Unreachable
from dovetail.ports.objects import ClaimStatus, MetadataChange
from testbed.plane import ApiClient, AuditLog, ControlPlane, PlaneState
from testbed.up import POLICY_PATHS
from tests.ports.objects import a_least_node, a_new_claim, a_running_pod
from tests.ports.worlds.contract import eventually, unique

pytestmark = pytest.mark.cluster

Calls = list[tuple[str, str, int]]

TENANTS: Json = {"metadata": {"labels": {"tenant": "a"}}}
EC2_NODE_CLASS = raw_kind("EC2NodeClass", "/apis/karpenter.k8s.aws/v1/ec2nodeclasses")


@asynccontextmanager
async def connected(
    kubeconfig: Path, calls: Calls | None = None, *, own_thread: bool = False
) -> AsyncIterator[KubeAdapter]:
    def count(request: Request, status: int, seconds: float) -> None:
        if calls is not None:
            calls.append((request.method, request.path, status))

    adapter = await KubeAdapter.connect(
        ClusterAddress(kubeconfig=kubeconfig), node_classes=(EC2_NODE_CLASS,), own_thread=own_thread, observe=count
    )
    try:
        yield adapter
    finally:
        await adapter.close()


def unseen(adapter: KubeAdapter, claim: str) -> bool:
    """Whether the view says that it does not see NodeClaims just now. Each kind notices a lost server by itself."""
    try:
        adapter.lookups.claim(claim)
    except NotSeenYet:
        return True
    return False


class TestRights:
    async def test_without_rights_each_kind_is_named_in_one_line(
        self, installed_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(adapters, "REFUSED_SECONDS", 2.0)
        async with connected(installed_plane.kubeconfig_for("nobody")) as adapter:
            with pytest.raises(Permanent, match='User "nobody" cannot list resource "nodepools"'):
                await adapter.ready()
            assert await eventually(lambda: len(adapter.watch.troubles()) == len(adapter.cache.kinds()))
            with pytest.raises(NotSeenYet, match="forbidden"):
                adapter.view.snapshot()
            with pytest.raises(Forbidden, match=r'NodeClaim/c: .*User "nobody" cannot get resource "nodeclaims"'):
                await adapter.claims.read("c")
            await adapter.notices.publish(Notice(kind="Node", name="n", reason="Waiting", message="m"))


class TestInsideACluster:
    async def test_a_pod_is_its_service_account(
        self, plane_state: PlaneState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        account = "/api/v1/namespaces/default/serviceaccounts/default/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
        async with ApiClient(plane_state.kubeconfig) as admin:
            answer = await admin.post(account, body)
        (tmp_path / "token").write_text(answer.body["status"]["token"])
        host, _, port = plane_state.server.removeprefix("https://").rpartition(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        loader = "kubernetes.aio.config.incluster_config"
        monkeypatch.setattr(f"{loader}.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
        monkeypatch.setattr(f"{loader}.SERVICE_CERT_FILENAME", str(plane_state.folder / "pki" / "ca.crt"))
        monkeypatch.setattr("dovetail.adapters.kube.connection._SERVICE_ACCOUNT", tmp_path / "token")

        adapter = await KubeAdapter.connect(ClusterAddress())

        with pytest.raises(Forbidden, match="system:serviceaccount:default:default"):
            await adapter.claims.read("c")
        await adapter.close()


class TestOutages:
    @pytest.mark.parametrize("own_thread", [False, True])
    async def test_a_server_that_goes_and_comes_back(self, installed_plane: ControlPlane, own_thread: bool) -> None:
        state = installed_plane.kubeconfig_for("admin", ("system:masters",))
        async with connected(state, own_thread=own_thread) as adapter:
            await adapter.ready()
            claim = await adapter.claims.create(a_new_claim(unique("claim"), finalizers=()))
            await adapter.view.catch_up([claim_write(claim)])
            before = adapter.view.revision()

            await installed_plane.stop_part("kube-apiserver")
            try:
                assert await eventually(lambda: unseen(adapter, claim.name))
                assert adapter.watch.problem()
                with pytest.raises(Unreachable, match=f"NodeClaim/{claim.name}"):
                    await adapter.claims.read(claim.name)
            finally:  # the tests after this one use the same server
                await installed_plane.start_part("kube-apiserver")
            await adapter.ready()
            assert adapter.view.revision() > before
            assert adapter.lookups.claim(claim.name) == claim
            assert await adapter.claims.delete(claim.name, claim.uid) == 0
            assert await eventually(lambda: adapter.lookups.claim(claim.name) is None)

    async def test_no_server_is_reported_in_one_line(self, tmp_path: Path, plane_state: PlaneState) -> None:
        elsewhere = tmp_path / "kubeconfig"
        elsewhere.write_text(plane_state.kubeconfig.read_text().replace(plane_state.server, "https://127.0.0.1:1"))

        with pytest.raises(Unreachable, match=r"cluster https://127\.0\.0\.1:1: "):
            await KubeAdapter.connect(ClusterAddress(kubeconfig=elsewhere))


def refusing_labels(name: str) -> tuple[Json, Json]:
    """An admission policy that refuses labels of a tenant's on Nodes, in the form that a policy has by default."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    expression = "!('tenant' in object.metadata.?labels.orValue({}))"
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": "nodes are labelled by their owners alone"}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return {"metadata": {"name": name}, "spec": spec}, {"metadata": {"name": name}, "spec": binding}


class TestPolicies:
    async def test_a_policy_that_refuses_a_change_of_a_node_is_quoted(self, plane_state: PlaneState) -> None:
        """Another change of the Node, which can be tried again at once, it is not."""
        name = unique("owners")
        path = f"/api/v1/nodes/{name}"
        paths = [POLICY_PATHS[f"ValidatingAdmissionPolicy{kind}"] for kind in ("", "Binding")]
        async with ApiClient(plane_state.kubeconfig) as admin, connected(plane_state.kubeconfig) as adapter:
            found = await admin.post("/api/v1/nodes", a_least_node(name))
            for kind, body in zip(paths, refusing_labels(name), strict=True):
                assert (await admin.post(kind, body)).status == 201
            change = NodeChange(labels={"tenant": "a"}, annotations={})
            try:
                async with asyncio.timeout(60):
                    while (await admin.patch(f"{path}?dryRun=All", TENANTS)).status == 200:  # noqa: ASYNC110
                        await asyncio.sleep(0.1)  # it takes a moment to follow its own policies
                with pytest.raises(Forbidden, match=f"^Node/{name}: .* nodes are labelled by their owners alone"):
                    await revise_node(adapter.nodes, parse_node(found.body), lambda _: change)
            finally:
                for kind in reversed(paths):
                    await admin.delete(f"{kind}/{name}")


class TestMissingKinds:
    async def test_a_definition_that_comes_late_is_found(self, plane_state: PlaneState) -> None:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ec2nodeclasses.karpenter.k8s.aws"
        async with ApiClient(plane_state.kubeconfig) as admin, connected(plane_state.kubeconfig) as adapter:
            await adapter.ready()
            definition = (await admin.get(path)).body
            assert (await admin.delete(path)).status == 200
            assert await eventually(lambda: "EC2NodeClass was installed" in " ".join(adapter.watch.troubles()))
            assert "EC2NodeClass was installed" in adapter.watch.problem(), "it may have objects still"

            body = {"apiVersion": definition["apiVersion"], "kind": definition["kind"], "spec": definition["spec"]}
            await admin.wait_for(path, lambda answer: answer.status == 404)
            answer = await admin.post(path.rpartition("/")[0], {**body, "metadata": {"name": path.rpartition("/")[2]}})
            assert answer.status == 201

            assert await eventually(lambda: not adapter.watch.troubles())


class TestCost:
    async def test_what_each_operation_asks_of_the_server(self, plane_state: PlaneState) -> None:
        calls: Calls = []

        def spent() -> list[str]:
            methods = [method for method, _, _ in calls]
            calls.clear()
            return methods

        async with connected(plane_state.kubeconfig, calls) as adapter:
            await adapter.ready()
            async with ApiClient(plane_state.kubeconfig) as admin:
                node = (await admin.post("/api/v1/nodes", a_least_node(unique("node"), "aws:///a/i-cost"))).body[
                    "metadata"
                ]["name"]
                pod_body = a_running_pod(unique("pod"), node)
                await admin.post("/api/v1/namespaces/default/pods", pod_body)
            await eventually(lambda: adapter.lookups.nodes_of("aws:///a/i-cost"))
            spent()

            claim = await adapter.claims.create(a_new_claim(unique("claim")))
            assert spent() == ["POST"]
            again = await adapter.claims.create(a_new_claim(claim.name))
            assert (again, spent()) == (claim, ["POST", "GET"])
            marked = await adapter.claims.patch(claim, MetadataChange(annotations={"dovetail.sh/owner": "o"}))
            assert marked is not None and spent() == ["PATCH"]
            ready = Condition(type="Launched", status="True", reason="Launched", changed=1.0)
            status = await adapter.claims.patch_status(marked, ClaimStatus(conditions=(ready,)))
            assert status is not None and spent() == ["PATCH"]
            await adapter.claims.delete(claim.name, claim.uid)
            assert spent() == ["DELETE"]
            (found,) = await adapter.nodes.list_by_provider_id("aws:///a/i-cost")
            assert spent() == ["GET"]
            await adapter.nodes.patch(found, MetadataChange(), (Taint(key="k", effect="NoSchedule"),))
            assert spent() == ["PATCH"]
            (pod,) = await adapter.pods.list_on(node)
            assert spent() == ["GET"]
            await adapter.pods.evict(pod)
            assert spent() == ["POST"]
            await adapter.notices.publish(Notice(kind="Node", name=node, reason="R", message="m"))
            assert spent() == ["POST"]

    async def test_the_server_knows_us_by_name(self, plane_state: PlaneState) -> None:
        audit = AuditLog(plane_state.audit_log)
        before = audit.end()
        async with connected(plane_state.kubeconfig) as adapter:
            claim = await adapter.claims.create(a_new_claim(unique("claim"), finalizers=()))
            await adapter.claims.delete(claim.name, claim.uid)

        def ours() -> list[tuple[str, bool]]:
            mine = [entry for entry in audit.entries(before) if entry.name == claim.name]
            return [(entry.verb, entry.user_agent.startswith("dovetail/")) for entry in mine]

        assert await eventually(lambda: len(ours()) == 2)
        assert ours() == [("create", True), ("delete", True)]

    async def test_each_of_many_writes_is_seen_before_the_next(self, plane_state: PlaneState) -> None:
        """Measured on two shared cores: median 0.2 ms, slowest of 200 15 ms."""
        async with connected(plane_state.kubeconfig) as adapter:
            await adapter.ready()
            for _ in range(30):
                claim = await adapter.claims.create(a_new_claim(unique("claim"), finalizers=()))
                await adapter.view.catch_up([claim_write(claim)])
                assert adapter.view.snapshot().claims[claim.name] == claim
                await adapter.claims.delete(claim.name, claim.uid)

    async def test_a_hundred_claims_are_created_side_by_side(self, plane_state: PlaneState) -> None:
        async with connected(plane_state.kubeconfig) as adapter:
            await adapter.ready()
            new_claims = [a_new_claim(unique("claim"), finalizers=()) for _ in range(100)]

            claims = await asyncio.gather(*[adapter.claims.create(new) for new in new_claims])
            await adapter.view.catch_up([claim_write(claim) for claim in claims])

            held = adapter.view.snapshot().claims
            assert all(held[claim.name] == claim for claim in claims)
            await asyncio.gather(*[adapter.claims.delete(claim.name, claim.uid) for claim in claims])
