"""Does the test bed behave as the real thing does where Dovetail depends on it?

Asked of a real control plane before anything is concluded from it. What is tested here is the part that is ours: the
flags, kwok's stages, the audit policy, starting and stopping. That Kubernetes itself works is not the question.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from testbed.plane import (
    KUBELET_ALIVE,
    KUBELET_LABEL,
    KUBELET_SILENT,
    ApiClient,
    ApiResponse,
    AuditLog,
    ControlPlane,
)

pytestmark = pytest.mark.cluster

NODES = "/api/v1/nodes"


@pytest.fixture
async def namespace(api: ApiClient) -> AsyncIterator[str]:
    """A namespace of the test's own, in which pods may be created at once."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    await api.wait_for(f"/api/v1/namespaces/{name}/serviceaccounts/default", _found)
    yield name
    await api.delete(f"/api/v1/namespaces/{name}", {"gracePeriodSeconds": 0})


@pytest.fixture
async def node(api: ApiClient) -> AsyncIterator[str]:
    name = await _join(api)
    yield name
    await api.delete(f"{NODES}/{name}")


async def test_a_deployments_pods_are_bound_and_run_on_a_node_that_joins(api: ApiClient, namespace: str) -> None:
    await _deploy(api, namespace, replicas=3)
    await api.wait_for(
        f"/api/v1/namespaces/{namespace}/pods", lambda pods: len(_conditions(pods, "Unschedulable")) == 3
    )

    node = await _join(api, only_for=namespace)

    running = await api.wait_for(f"/api/v1/namespaces/{namespace}/pods", lambda pods: _ready(pods) == 3)
    assert {pod["spec"]["nodeName"] for pod in running.body["items"]} == {node}
    await api.delete(f"{NODES}/{node}")


async def test_a_pod_on_a_node_without_a_kubelet_does_not_start(api: ApiClient, namespace: str, node: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    booting = await _join(api, kubelet="booting")
    await _create_pod(api, namespace, "early", nodeName=booting)

    await _create_pod(api, namespace, "later", nodeName=node)
    await api.wait_for(f"{pods}/later", _is_ready)
    early = await api.get(f"{pods}/early")
    await api.patch(f"{NODES}/{booting}", {"metadata": {"labels": {KUBELET_LABEL: KUBELET_ALIVE}}})

    assert early.body["status"]["phase"] == "Pending"
    await api.wait_for(f"{pods}/early", _is_ready)
    await api.delete(f"{NODES}/{booting}")


async def test_an_eviction_that_a_budget_forbids_is_refused_with_429(api: ApiClient, namespace: str, node: str) -> None:
    budget = {"metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}}
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    await api.post(budgets, budget)
    await _create_pod(api, namespace, "guarded", nodeName=node)
    await api.wait_for(f"{budgets}/all", lambda answer: answer.body.get("status", {}).get("currentHealthy") == 1)

    answer = await _evict(api, namespace, "guarded")

    assert (answer.status, answer.body["details"]["causes"][0]["reason"]) == (429, "DisruptionBudget")


async def test_rbac_refuses_an_identity_without_rights_and_accepts_it_with_them(
    api: ApiClient, control_plane: ControlPlane
) -> None:
    user = f"reader-{uuid.uuid4().hex[:8]}"
    kubeconfig = control_plane.kubeconfig_for(user, ("readers",))
    async with ApiClient(kubeconfig) as reader:
        before = await reader.get(NODES)
        await _grant(api, user, {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]})
        after = await reader.wait_for(NODES, lambda answer: answer.status == 200)
        write = await reader.delete(f"{NODES}/none")

    assert (before.status, after.status, write.status) == (403, 200, 403)


async def test_the_audit_log_has_each_write_with_its_author_and_body(
    api: ApiClient, audit: AuditLog, node: str
) -> None:
    begin = audit.end()

    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    await api.patch(f"{NODES}/{node}", {"spec": {"taints": [taint]}})

    writes = await audit.wait_for(lambda entry: entry.name == node and entry.user == "admin", since=begin)
    assert [(entry.verb, entry.user_agent, entry.code) for entry in writes] == [("patch", "dovetail-tests", 200)]
    assert writes[0].request == {"spec": {"taints": [taint]}}
    assert writes[0].response is not None
    assert taint in writes[0].response["spec"]["taints"]


async def test_an_eviction_is_in_the_audit_log_with_its_precondition(
    api: ApiClient, audit: AuditLog, namespace: str, node: str
) -> None:
    pod = await _create_pod(api, namespace, "evicted", nodeName=node)
    begin = audit.end()

    await _evict(api, namespace, "evicted", uid=pod["metadata"]["uid"])

    evictions = await audit.wait_for(lambda entry: entry.subresource == "eviction", since=begin)
    assert [(entry.namespace, entry.name, entry.code) for entry in evictions] == [(namespace, "evicted", 201)]
    assert evictions[0].request is not None
    assert evictions[0].request["deleteOptions"]["preconditions"] == {"uid": pod["metadata"]["uid"]}


async def test_a_node_whose_kubelet_falls_silent_becomes_unknown_and_its_pods_stay(
    api: ApiClient, namespace: str, node: str
) -> None:
    other = await _join(api)  # with every node of a zone gone at once, the controller evicts no pod
    slow = {"dovetail.test/shutdown-seconds": "2"}
    await _create_pod(api, namespace, "stays", nodeName=node, annotations=slow)
    await api.wait_for(f"/api/v1/namespaces/{namespace}/pods/stays", _is_ready)
    await api.delete(f"/api/v1/namespaces/{namespace}/pods/stays")

    await api.patch(f"{NODES}/{node}", {"metadata": {"labels": {KUBELET_LABEL: KUBELET_SILENT}}})

    silent = await api.wait_for(f"{NODES}/{node}", lambda answer: _has_taint(answer, "unreachable", "NoExecute"))
    pod = await api.get(f"/api/v1/namespaces/{namespace}/pods/stays")
    assert _condition(silent.body, "Ready")["status"] == "Unknown"
    assert (pod.status, pod.body["status"]["phase"]) == (200, "Running")
    await api.delete(f"{NODES}/{other}")


async def test_a_node_whose_kubelet_speaks_again_is_ready_again(api: ApiClient, node: str) -> None:
    await api.patch(f"{NODES}/{node}", {"metadata": {"labels": {KUBELET_LABEL: KUBELET_SILENT}}})
    await api.wait_for(f"{NODES}/{node}", lambda answer: _has_taint(answer, "unreachable", "NoSchedule"))

    await api.patch(f"{NODES}/{node}", {"metadata": {"labels": {KUBELET_LABEL: KUBELET_ALIVE}}})

    ready = await api.wait_for(f"{NODES}/{node}", lambda answer: not _has_taint(answer, "unreachable", "NoSchedule"))
    assert _condition(ready.body, "Ready")["status"] == "True"


async def test_a_node_that_was_called_unready_is_heard_again_when_its_annotation_says_so(
    api: ApiClient, node: str
) -> None:
    await api.patch(f"{NODES}/{node}", {"metadata": {"annotations": {"dovetail.test/heard-after": "3"}}})
    unready = {"type": "Ready", "status": "False", "reason": "CalledSo", "message": ""}

    begin = time.monotonic()
    answer = await api.patch(f"{NODES}/{node}/status", {"status": {"conditions": [unready]}}, "strategic")
    assert answer.status == 200
    await api.wait_for(f"{NODES}/{node}", lambda answer: _condition(answer.body, "Ready")["status"] == "True")

    assert time.monotonic() - begin >= 2.9


async def test_a_pod_that_kwok_calls_unhealthy_runs_and_is_not_ready(api: ApiClient, namespace: str, node: str) -> None:
    await _create_pod(api, namespace, "ill", nodeName=node, labels={"kwok.x-k8s.io/stage": "unhealthy"})

    path = f"/api/v1/namespaces/{namespace}/pods/ill"
    pod = await api.wait_for(path, lambda answer: answer.body["status"].get("phase") == "Running")

    assert _condition(pod.body, "Ready")["status"] == "False"


@pytest.mark.parametrize(
    "stubborn", [{"dovetail.test/shutdown-seconds": "3600"}, {"pod-delete.stage.kwok.x-k8s.io/delay": "3600s"}]
)
async def test_a_pod_that_ignores_its_shutdown_goes_when_its_grace_period_ends(
    api: ApiClient, namespace: str, node: str, stubborn: dict[str, str]
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/stubborn"
    await _create_pod(api, namespace, "stubborn", nodeName=node, annotations=stubborn)
    await api.wait_for(path, _is_ready)

    begin = time.monotonic()
    await api.delete(path, {"gracePeriodSeconds": 3})
    await api.wait_for(path, _gone)

    assert time.monotonic() - begin >= 1.9  # the deadline is kept in whole seconds: up to one early


async def test_a_pod_that_obeys_its_shutdown_goes_at_once(api: ApiClient, namespace: str, node: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/willing"
    await _create_pod(api, namespace, "willing", nodeName=node)
    await api.wait_for(path, _is_ready)

    await api.delete(path, {"gracePeriodSeconds": 3600})
    await api.wait_for(path, _gone)


async def test_a_deleted_pod_with_a_finalizer_stays_until_the_finalizer_is_taken_off(
    api: ApiClient, namespace: str, node: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/held"
    await _create_pod(api, namespace, "held", nodeName=node, finalizers=["dovetail.test/hold"])
    await api.wait_for(path, _is_ready)
    await api.delete(path)
    ended = await api.wait_for(path, lambda answer: answer.body["metadata"].get("deletionGracePeriodSeconds") == 0)

    await api.patch(path, {"metadata": {"finalizers": None}})

    assert ended.body["status"]["phase"] == "Failed"
    await api.wait_for(path, _gone)


async def test_a_job_whose_pod_says_when_it_is_done_completes(api: ApiClient, namespace: str, node: str) -> None:
    template = {
        "metadata": {"annotations": {"dovetail.test/complete-after": "1"}},
        "spec": {"restartPolicy": "Never", "nodeName": node, "containers": [{"name": "main", "image": "none"}]},
    }
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    await api.post(jobs, {"metadata": {"name": "short"}, "spec": {"template": template}})

    done = await api.wait_for(f"{jobs}/short", lambda answer: answer.body.get("status", {}).get("succeeded") == 1)

    assert _condition((await api.wait_for(f"{jobs}/short", _is_complete)).body, "Complete")["status"] == "True"
    assert done.body["status"].get("failed", 0) == 0


async def test_a_daemon_set_and_a_stateful_set_get_their_pods(api: ApiClient, namespace: str) -> None:
    node = await _join(api, only_for=namespace)
    spec = {"selector": {"matchLabels": {"app": "set"}}, "template": _template("set", only_for=namespace)}
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    await api.post(f"{apps}/daemonsets", {"metadata": {"name": "daemon"}, "spec": spec})
    await api.post(f"{apps}/statefulsets", {"metadata": {"name": "state"}, "spec": {**spec, "serviceName": "none"}})

    pods = await api.wait_for(f"/api/v1/namespaces/{namespace}/pods", lambda answer: _ready(answer) == 2)

    owners = {pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods.body["items"]}
    assert owners == {"DaemonSet", "StatefulSet"}
    await api.delete(f"{NODES}/{node}")


async def test_a_deleted_namespace_takes_its_running_pods_with_it(api: ApiClient, namespace: str, node: str) -> None:
    await _create_pod(api, namespace, "inside", nodeName=node)
    await api.wait_for(f"/api/v1/namespaces/{namespace}/pods/inside", _is_ready)

    await api.delete(f"/api/v1/namespaces/{namespace}")

    await api.wait_for(f"/api/v1/namespaces/{namespace}", _gone)


async def _join(api: ApiClient, kubelet: str = KUBELET_ALIVE, only_for: str | None = None) -> str:
    """A node as a kubelet registers it, with a taint that keeps out what is not meant for it."""
    name = f"node-{uuid.uuid4().hex[:8]}"
    resources = {"cpu": "4", "memory": "8Gi", "pods": "50"}
    labels = {KUBELET_LABEL: kubelet, "kubernetes.io/hostname": name, "dovetail.test/only-for": only_for or name}
    taint = {"key": "dovetail.test/only-for", "value": only_for or name, "effect": "NoSchedule"}
    body = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"aws:///test/{name}", "taints": [taint]},
        "status": {"capacity": resources, "allocatable": resources},
    }
    created = await api.post(NODES, body)
    assert created.status == 201, created.text
    if kubelet == KUBELET_ALIVE:
        await api.wait_for(f"{NODES}/{name}", lambda answer: not _has_taint(answer, "not-ready", "NoSchedule"))
    return name


def _template(app: str, only_for: str) -> dict[str, Any]:
    toleration = {"key": "dovetail.test/only-for", "operator": "Equal", "value": only_for, "effect": "NoSchedule"}
    spec = {
        "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}],
        "nodeSelector": {"dovetail.test/only-for": only_for},
        "tolerations": [toleration],
    }
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


async def _deploy(api: ApiClient, namespace: str, replicas: int) -> None:
    template = _template("deployed", only_for=namespace)
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "deployed"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    created = await api.post(path, {"metadata": {"name": "deployed"}, "spec": spec})
    assert created.status == 201, created.text


async def _create_pod(
    api: ApiClient,
    namespace: str,
    name: str,
    *,
    nodeName: str,  # noqa: N803 - the field's own name
    **metadata: Any,
) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app": name}, **metadata}
    spec = {"nodeName": nodeName, "containers": [{"name": "main", "image": "none"}]}
    created = await api.post(f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": spec})
    assert created.status == 201, created.text
    return created.body


async def _evict(api: ApiClient, namespace: str, name: str, uid: str | None = None) -> ApiResponse:
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    if uid is not None:
        body["deleteOptions"] = {"preconditions": {"uid": uid}}
    return await api.post(f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", body)


async def _grant(api: ApiClient, user: str, rule: dict[str, Any]) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await api.post(f"{rbac}/clusterroles", {"metadata": {"name": user}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    binding = {"metadata": {"name": user}, "roleRef": role, "subjects": [subject]}
    await api.post(f"{rbac}/clusterrolebindings", binding)


def _found(answer: ApiResponse) -> bool:
    return answer.status == 200


def _gone(answer: ApiResponse) -> bool:
    return answer.status == 404


def _condition(body: dict[str, Any], kind: str) -> dict[str, Any]:
    """The condition of this type; an empty status where the object does not have it yet."""
    found = [item for item in body.get("status", {}).get("conditions", []) if item["type"] == kind]
    return found[0] if found else {"status": ""}


def _conditions(pods: ApiResponse, reason: str) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in pods.body["items"]
        for item in pod["status"].get("conditions", [])
        if item.get("reason") == reason
    ]


def _is_ready(answer: ApiResponse) -> bool:
    return bool(_condition(answer.body, "Ready")["status"] == "True")


def _is_complete(answer: ApiResponse) -> bool:
    return bool(_condition(answer.body, "Complete")["status"] == "True")


def _ready(pods: ApiResponse) -> int:
    return sum(_condition(pod, "Ready")["status"] == "True" for pod in pods.body["items"])


def _has_taint(answer: ApiResponse, key: str, effect: str) -> bool:
    taints = answer.body["spec"].get("taints", [])
    return any((taint["key"], taint["effect"]) == (f"node.kubernetes.io/{key}", effect) for taint in taints)
