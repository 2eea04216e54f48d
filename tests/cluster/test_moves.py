"""A Deployment of one replica is moved by a roll-out on real servers: there is a ready pod at every moment, and what
does not work is taken back to the letter.

What is asserted stands in the API server's audit log. The controllers of Deployments, ReplicaSets and EndpointSlices
are Kubernetes' own.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dovetail.model import names
from dovetail.model.objects.workloads import Begun, Failed
from dovetail.model.places.move_changes import GUARD, MoveChange, MoveNote
from dovetail.model.values.json import Json
from testbed.plane import AuditEntry
from testbed.plane.api import ApiClient
from testbed.up import WORKER_USER, give_rights
from worlds.cluster.costs import start_worker
from worlds.cluster.fleets import fleet_pool, pool_claims, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import DEPLOYMENTS
from worlds.cluster.trouble import BINDINGS, POLICIES

pytestmark = pytest.mark.cluster

FILE: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "moves.yaml"
LEDGER: Final = f"{DEPLOYMENTS}/ledger"
SERVICES: Final = "/api/v1/namespaces/default/services"
PDBS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
QUOTAS: Final = "/api/v1/namespaces/default/resourcequotas"
REPLICA_SETS: Final = "/apis/apps/v1/namespaces/default/replicasets"
ALL: Final[Json] = {"budgets": [{"nodes": "100%"}]}
LABELS: Final = {"app": "ledger"}


async def created(ground: Ground, path: str, body: Json) -> None:
    answer = await ground.api.post(path, body)
    assert answer.status in {201, 409}, answer.text


async def allow_moves(ground: Ground) -> None:
    """As a person applies the file, with the worker's identity in it; until the policy is in force."""
    text = FILE.read_text().replace("system:serviceaccount:kube-system:dovetail", WORKER_USER)
    role, policy, binding = yaml.safe_load_all(text)
    await give_rights(ground.api, WORKER_USER, [role])
    await created(ground, POLICIES, policy)
    await created(ground, BINDINGS, binding)


async def a_ledger(ground: Ground) -> Json:
    """One pod under a PDB that never lets it be evicted, behind a Service; it asks to be moved. Its claim."""
    await ground.apply(fleet_pool("ledger", disruption=ALL))
    body = workload("ledger", "ledger", 1)
    body["metadata"]["annotations"] = {names.MOVE: "restart"}
    await ground.apply(body)
    meta = {"name": "ledger", "namespace": "default"}
    await created(
        ground,
        PDBS,
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta,
            "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}},
        },
    )
    await created(
        ground,
        SERVICES,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": LABELS, "ports": [{"port": 80}]},
        },
    )
    await ground.until(lambda: ground.settled(1), 120, "the pod runs")

    async def is_ready() -> bool:
        slices = await ground.api.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")
        return any(ready(one) for one in slices.body["items"] if one["metadata"]["name"].startswith("ledger-"))

    await ground.until(is_ready, 60, "the Service has a ready address")
    [claim] = await pool_claims(ground, "ledger")
    return claim


def ready(endpoint_slice: Json) -> int:
    return sum(bool(e.get("conditions", {}).get("ready")) for e in endpoint_slice.get("endpoints") or ())


async def pods_of(ground: Ground) -> list[Json]:
    return [p for p in await ground.objects("Pod") if p["metadata"]["labels"].get("app") == "ledger"]


def slices_in(entries: list[AuditEntry]) -> list[int]:
    """How many ready addresses the Service had after each change."""
    written = [e for e in entries if e.resource == "endpointslices" and e.is_write and e.code < 300]
    return [ready(e.response or {}) for e in written if e.name.startswith("ledger-")]


def changes_in(entries: list[AuditEntry]) -> list[Json]:
    """What the worker wrote on the Deployment; what it only tried is refused."""
    return [
        e.request or {}
        for e in entries
        if e.user == WORKER_USER and e.resource == "deployments" and e.verb == "patch" and e.code == 200
    ]


async def drift_away(ground: Ground, colour: str, claim: Json) -> Json:
    """The node has drifted and is gone, and the pod runs elsewhere. The new claim."""
    await ground.apply(fleet_pool("ledger", colour=colour, disruption=ALL))

    async def replaced() -> Json | None:
        claims = await pool_claims(ground, "ledger")
        left = [c for c in claims if c["metadata"]["uid"] != claim["metadata"]["uid"]]
        return left[0] if len(claims) == len(left) == 1 and await ground.settled(1) else None

    found = await ground.until(replaced, 180, "the node is replaced and its pod moved")
    assert found is not None
    return found


async def test_the_one_pod_of_a_service_moves_without_a_moment_unready_and_a_move_that_fails_is_taken_back(
    ground: Ground,
) -> None:
    """TRM-41, TRM-42, TRM-44."""
    await allow_moves(ground)
    start_worker(ground, DOVETAIL_MOVES="true")
    claim = await a_ledger(ground)
    since = ground.audit.end()

    following = await drift_away(ground, "green", claim)

    entries = ground.audit.entries(since)
    addresses = slices_in(entries)
    assert addresses and min(addresses) >= 1, addresses
    assert [bool(change.get("spec")) for change in changes_in(entries)] == [True, False]
    assert not [e for e in entries if e.user == WORKER_USER and e.subresource == "eviction"]
    ours = [e for e in entries if e.user == WORKER_USER and e.is_write]
    assert len([e for e in ours if e.resource == "nodeclaims" and e.verb == "create"]) == 1
    assert await sets_of(ground) == 2

    [before] = await pods_of(ground)
    hash_before = before["metadata"]["labels"]["pod-template-hash"]
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}}
    await created(ground, QUOTAS, quota)
    await ground.api.wait_for(
        f"{QUOTAS}/one", lambda a: (a.body.get("status") or {}).get("used", {}).get("pods") == "1"
    )
    await ground.api.patch(LEDGER, {"spec": {"progressDeadlineSeconds": 2}})
    await ground.apply(fleet_pool("ledger", colour="blue", disruption=ALL))

    async def taken_back() -> bool:
        found = (await ground.api.get(LEDGER)).body
        status = found["status"]
        is_done = status.get("observedGeneration") == found["metadata"]["generation"]
        failed = "failed" in (found["metadata"].get("annotations") or {}).get(names.MOVES, "")
        return failed and is_done and status.get("updatedReplicas") == 1 and status["availableReplicas"] == 1

    await ground.until(taken_back, 180, "the move that could not work is taken back")
    [after] = await pods_of(ground)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    template = (await ground.api.get(LEDGER)).body["spec"]["template"]["metadata"]["annotations"]
    assert (template[names.MOVED], after["metadata"]["labels"]["pod-template-hash"]) == ("a", hash_before)
    [held] = [c for c in await pool_claims(ground, "ledger") if c["metadata"]["uid"] == following["metadata"]["uid"]]
    assert "deletionTimestamp" in held["metadata"] and after["spec"]["nodeName"] == held["status"]["nodeName"]

    await ground.api.delete(f"{QUOTAS}/one")
    await ground.api.patch(LEDGER, {"spec": {"progressDeadlineSeconds": 600}})  # a change: it is tried again at once
    await drift_away(ground, "blue", following)
    assert min(slices_in(ground.audit.entries(since))) >= 1
    await ground.assert_one_instance_per_claim()


OTHERS: Final[dict[str, Json]] = {
    "image": {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "mine:1"}]}}}},
    "replicas": {"spec": {"replicas": 2}},
    "service account": {"spec": {"template": {"spec": {"serviceAccountName": "default"}}}},
    "annotation of the template": {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}},
    "label of the template": {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
    "another value": {"spec": {"template": {"metadata": {"annotations": {names.MOVED: "c"}}}}},
    "label": {"metadata": {"labels": {"a": "b"}}},
    "annotation": {"metadata": {"annotations": {names.MOVE: "evict"}}},
    "paused": {"spec": {"paused": True}},
    "strategy": {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    "finalizer": {"metadata": {"finalizers": ["example.com/mine"]}},
    "deadline": {"spec": {"progressDeadlineSeconds": 5}},
    "ready seconds": {"spec": {"minReadySeconds": 5}},
    "history": {"spec": {"revisionHistoryLimit": 0}},
    "a move with an image": {
        "spec": {
            "template": {
                "metadata": {"annotations": {names.MOVED: "b"}},
                "spec": {"containers": [{"name": "web", "image": "mine:1"}]},
            }
        }
    },
}


async def test_the_policy_refuses_the_worker_every_other_change_of_a_deployment(ground: Ground) -> None:
    """TRM-45. What a move writes is allowed, and other people are not concerned."""
    await allow_moves(ground)
    body = workload("ledger", "", 0)
    body["metadata"]["annotations"] = {names.MOVE: "restart"}
    await ground.apply(body)
    begun = Begun(node="n", former="", generation=2, since=1.7e9)
    failed = Failed(generation=3, at=1.7e9)
    moves: dict[str, Json] = {
        "begin": {
            "metadata": {"annotations": MoveChange(move=MoveNote(begun=begun)).annotations},
            "spec": {"template": {"metadata": {"annotations": {names.MOVED: "a"}}}},
        },
        "back": {
            "metadata": {"annotations": MoveChange(move=MoveNote(failed=failed)).annotations},
            "spec": {"template": {"metadata": {"annotations": {names.MOVED: None}}}},
        },
    }
    async with ApiClient(Path(ground.everything.environment["KUBECONFIG"])) as worker:

        async def in_force() -> bool:
            answer = await worker.patch(f"{LEDGER}?dryRun=All", OTHERS["label"])
            return answer.status == 422 and GUARD in answer.text

        await ground.until(in_force, 60, "the policy is in force")
        for what, change in moves.items():
            answer = await worker.patch(LEDGER, change)
            assert answer.status == 200, f"{what}: {answer.text}"
        for what, change in OTHERS.items():
            answer = await worker.patch(LEDGER, change)
            assert answer.status == 422 and GUARD in answer.text, f"{what}: {answer.status} {answer.text}"
    for what, change in OTHERS.items():
        answer = await ground.api.patch(f"{LEDGER}?dryRun=All", change)
        assert answer.status == 200, f"{what}: {answer.text}"


@asynccontextmanager
async def an_applier(ground: Ground, manifest: Json) -> AsyncIterator[list[int]]:
    """GitOps: the same manifest every two seconds, by server-side apply, whoever else has written. The answers."""
    answers: list[int] = []

    async def go_on() -> None:
        while True:
            path = f"{DEPLOYMENTS}/{manifest['metadata']['name']}?fieldManager=gitops&force=true"
            answers.append((await ground.api.patch(path, manifest, "apply")).status)
            await asyncio.sleep(2)

    task = asyncio.create_task(go_on())
    try:
        yield answers
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


def changes_of_template(entries: list[AuditEntry], name: str) -> list[AuditEntry]:
    """The writes after which the Deployment's template was another, in the order in which they were stored."""
    ours = [e for e in entries if (e.resource, e.subresource, e.name) == ("deployments", "", name)]
    written = [e for e in ours if e.is_write and e.code == 200]
    stored = sorted(written, key=lambda e: int((e.response or {})["metadata"]["resourceVersion"]))
    templates = [(e.response or {})["spec"]["template"] for e in stored]
    return [e for e, (former, now) in zip(stored[1:], pairwise(templates), strict=True) if former != now]


async def revision(ground: Ground) -> int:
    """Of the Deployment, by its controller."""
    found = (await ground.api.get(LEDGER)).body["metadata"]["annotations"]
    return int(found["deployment.kubernetes.io/revision"])


async def sets_of(ground: Ground) -> int:
    found = (await ground.api.get(REPLICA_SETS)).body["items"]
    return sum(s["metadata"]["labels"].items() >= LABELS.items() for s in found)


MOMENTS: Final = ("apply", "taint", "create", "template")  # of a move; it is struck up to so many seconds after one
STRUCK_WITHIN: Final = 4.0


@pytest.mark.soak
async def test_moves_go_on_exactly_once_whenever_the_worker_is_killed(ground: Ground) -> None:
    """TRM-41. Fifty moves, thirty kills at random moments, and an applier that knows nothing of the annotations."""
    await allow_moves(ground)
    settings: dict[str, Any] = {"DOVETAIL_MOVES": "true", "BATCH_MAX_DURATION": "5s"}  # nominations last half as long
    start_worker(ground, **settings)
    claim = await a_ledger(ground)
    manifest = workload("ledger", "ledger", 1)
    manifest["metadata"]["annotations"] = {names.MOVE: "restart"}
    chance, since, before = random.Random(1), ground.audit.end(), await revision(ground)
    first = await ground.api.patch(f"{LEDGER}?fieldManager=gitops&force=true", manifest, "apply")
    assert first.status == 200, first.text

    async def move(number: int, claim: Json) -> Json:
        begun, colour, moment = ground.audit.end(), f"c{number}", chance.choice(MOMENTS)
        await ground.apply(fleet_pool("ledger", colour=colour, disruption=ALL))

        async def is_there() -> bool:
            entries = ground.worker_calls(begun)
            if moment == "template":
                return any(change.get("spec") for change in changes_in(entries))
            resource = "nodes" if moment == "taint" else "nodeclaims"
            return moment == "apply" or any(e.resource == resource and e.is_write and e.code < 300 for e in entries)

        if number < 30:
            await ground.until(is_there, 120, f"the moment of kill {number}")
            await asyncio.sleep(chance.uniform(0, STRUCK_WITHIN))
            start_worker(ground, **settings)
        following = await drift_away(ground, colour, claim)
        entries = ground.audit.entries(since)
        made = [e.name for e in entries if e.resource == "nodeclaims" and e.verb == "create" and e.code == 201]
        by = [e.user for e in changes_of_template(entries, "ledger")]
        assert (by, len(made)) == ([WORKER_USER] * (number + 1), number + 1), (number, moment)
        return following

    async with an_applier(ground, manifest) as answers:
        for number in range(50):
            claim = await move(number, claim)
    entries = ground.audit.entries(since)
    addresses = slices_in(entries)
    assert min(addresses) >= 1 and set(answers) == {200}
    assert {e.user for e in changes_of_template(entries, "ledger")} == {WORKER_USER}
    assert not [e for e in entries if e.user == WORKER_USER and e.subresource == "eviction"]
    assert await revision(ground) - before == 50 and await sets_of(ground) <= 3
    await ground.assert_one_instance_per_claim()
    print(f"{len(addresses)} changes of the addresses, {len(answers)} applied, {await sets_of(ground)} ReplicaSets")
