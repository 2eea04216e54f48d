"""Pods that must not be moved although they ask for it, and many moves at a time beside as many evictions."""

import time
from collections import Counter
from typing import Any, Final

import pytest

from dovetail.model import names
from dovetail.model.places.moves import WhyNotMoved
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from testbed.plane import AuditEntry
from testbed.up import WORKER_USER
from tests.cluster.system.volumes import CLAIMS, STATEFUL_SETS, VOLUMES
from tests.cluster.test_moves import (
    ALL,
    LEDGER,
    REPLICA_SETS,
    a_ledger,
    allow_moves,
    changes_in,
    created,
    pods_of,
    slices_in,
)
from worlds.cluster.costs import many_types, start_worker
from worlds.cluster.fleets import fleet_pool, pool_claims, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import DEPLOYMENTS

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

RESTART: Final = {names.MOVE: "restart"}
FOR_EVER: Final = 2**31 - 1
NEVER_READY: Final = {"dovetail.test/ready": "never"}
SHORT: Final = "short"  # a NodePool whose nodes must be gone within a minute


def asking(name: str, pool: str = "mixed", **spec: Any) -> Json:
    """One pod that asks to be moved."""
    body = workload(name, pool, 1)
    body["metadata"]["annotations"] = RESTART
    body["spec"] |= spec
    return body


def with_pod(body: Json, **changes: Any) -> Json:
    body["spec"]["template"]["spec"] |= changes
    return body


def of_kind(body: Json, kind: str, **spec: Any) -> Json:
    """The same pods under another controller."""
    kept = {key: body["spec"][key] for key in ("replicas", "selector", "template")}
    return {**body, "kind": kind, "spec": {**kept, **spec}}


def a_disk() -> tuple[Json, Json]:
    """A volume that only one node may mount, without a driver, and the claim that has it."""
    asked = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    size = {"storage": "1Gi"}
    volume = {"capacity": size, "nfs": {"server": "127.0.0.1", "path": "/"}, **asked}
    claim = {"volumeName": "disk", "resources": {"requests": size}, **asked}
    meta = {"name": "disk"}
    return (
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": volume},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim},
    )


def cases() -> dict[str, tuple[WhyNotMoved, Json]]:
    """Each with its reason."""
    with_disk = with_pod(asking("disk"), volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}])
    with_port: Any = asking("port")
    with_port["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    unavailable = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    return {
        "several": (WhyNotMoved.SEVERAL_REPLICAS, asking("several", replicas=2)),
        "recreate": (WhyNotMoved.STRATEGY, asking("recreate", strategy={"type": "Recreate"})),
        "unavailable": (WhyNotMoved.STRATEGY, asking("unavailable", strategy=unavailable)),
        "paused": (WhyNotMoved.PAUSED, asking("paused", paused=False)),
        "endless": (WhyNotMoved.NO_DEADLINE, asking("endless", progressDeadlineSeconds=FOR_EVER)),
        "stuck": (WhyNotMoved.STUCK, asking("stuck", progressDeadlineSeconds=5)),
        "disk": (WhyNotMoved.VOLUME, with_disk),
        "port": (WhyNotMoved.HOST_PORT, with_port),
        "short": (WhyNotMoved.NODE_DEADLINE, asking("short", SHORT)),
        "stateful": (WhyNotMoved.NO_DEPLOYMENT, of_kind(asking("stateful"), "StatefulSet", serviceName="stateful")),
        "bare": (WhyNotMoved.NO_DEPLOYMENT, of_kind(asking("bare"), "ReplicaSet")),
        "rolling": (WhyNotMoved.ROLLING_OUT, asking("rolling")),
    }


PATHS: Final = {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFUL_SETS, "ReplicaSet": REPLICA_SETS}
NAMESPACE: Final = "/api/v1/namespaces/default"


async def ask_all(ground: Ground, wish: str | None) -> None:
    """By the Namespace: a StatefulSet and a ReplicaSet have no word of their own."""
    answer = await ground.api.patch(NAMESPACE, {"metadata": {"annotations": {names.MOVE: wish}}})
    assert answer.status == 200, answer.text


async def not_moved(ground: Ground) -> dict[str, str]:
    """By the name of what has the pod: why it was evicted and not moved, as Events say."""
    found = (await ground.api.get(f"{NAMESPACE}/events")).body["items"]
    said = [each for each in found if each["reason"] == "MoveImpossible"]
    return {each["involvedObject"]["name"].partition("-")[0]: each["message"] for each in said}


async def test_what_must_not_be_moved_is_evicted_and_an_event_says_why(ground: Ground) -> None:
    """TRM-40. One that is being rolled out by its owner waits until that is over."""
    await allow_moves(ground)
    start_worker(ground, DOVETAIL_MOVES="true")
    await ask_all(ground, "restart")
    try:
        await must_not_be_moved(ground)
    finally:
        await ask_all(ground, None)
        for path in (STATEFUL_SETS, REPLICA_SETS):
            await ground.api.delete(path, {"propagationPolicy": "Background"})
        for path in (f"{CLAIMS}/disk", f"{VOLUMES}/disk"):
            await ground.api.delete(path)


async def must_not_be_moved(ground: Ground) -> None:
    known = cases()
    for path, body in zip((VOLUMES, CLAIMS), a_disk(), strict=True):
        await created(ground, path, body)
    grace = {SHORT: {"terminationGracePeriod": "60s"}}
    for pool in ("mixed", SHORT):
        await ground.apply(fleet_pool(pool, disruption=ALL, template=grace.get(pool, {})))
    for _, body in known.values():
        await created(ground, PATHS[body["kind"]], body)
    pods = len(known) + 1
    await ground.until(lambda: ground.settled(pods), 240, "every pod runs on a node of its own")
    unready = {"spec": {"template": {"metadata": {"annotations": NEVER_READY}}}}
    for name, change in (("paused", {"spec": {"paused": True}}), ("stuck", unready), ("rolling", unready)):
        assert (await ground.api.patch(f"{DEPLOYMENTS}/{name}", change)).status == 200

    async def is_stuck() -> bool:
        found = (await ground.api.get(f"{DEPLOYMENTS}/stuck")).body["status"]["conditions"]
        rolling = (await ground.api.get(f"{DEPLOYMENTS}/rolling")).body["status"]
        exceeded = any(c.get("reason") == "ProgressDeadlineExceeded" for c in found)
        return exceeded and rolling.get("updatedReplicas") == 1 and await ground.settled(pods + 2)

    await ground.until(is_stuck, 120, "two roll-outs go on, one of them for too long")
    old = {c["metadata"]["name"] for c in await ground.claims()}
    held = [p for p in await ground.objects("Pod") if p["metadata"]["labels"]["app"] == "rolling"]
    [waiting] = [p for p in held if not p["metadata"].get("annotations")]
    since = ground.audit.end()
    for pool in ("mixed", SHORT):
        await ground.apply(fleet_pool(pool, colour="green", disruption=ALL, template=grace.get(pool, {})))
    expected = {name: f"Evicted, not moved: {why.words}" for name, (why, _) in known.items() if not why.waits}

    async def said() -> bool:
        return expected.keys() <= (await not_moved(ground)).keys()

    await ground.until(said, 240, "each that is not moved has its Event")
    assert await not_moved(ground) == expected
    _, words = await ground.dovetail("history", waiting["spec"]["nodeName"])
    assert WhyNotMoved.ROLLING_OUT.words in " ".join(words.split())
    ready = {"spec": {"template": {"metadata": {"annotations": {"dovetail.test/ready": "yes"}}}}}
    for name in ("stuck", "rolling"):
        assert (await ground.api.patch(f"{DEPLOYMENTS}/{name}", ready)).status == 200

    async def all_gone() -> bool:
        return not old & {c["metadata"]["name"] for c in await ground.claims()} and await ground.settled(pods)

    await ground.until(all_gone, 240, "every node is replaced")
    entries = ground.audit.entries(since)
    assert changes_in(entries) == []
    evicted = {e.name for e in entries if e.user == WORKER_USER and e.subresource == "eviction"}
    assert waiting["metadata"]["name"] not in evicted


TIMEOUT: Final = 10
MUTATING: Final = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
MUTATING_BINDINGS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
PODS: Final = f"{NAMESPACE}/pods"


def an_image_that_is_broken_by_now() -> tuple[tuple[str, Json], ...]:
    """Pods that run go on; each that is made anew from the same template never becomes ready."""
    meta = {"name": "broken-image"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    never = 'Object{metadata: Object.metadata{annotations: {"dovetail.test/ready": "never"}}}'
    policy = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "ours", "expression": "object.metadata.?labels['app'].orValue('') == 'ledger'"}],
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": never}}],
    }
    group = "admissionregistration.k8s.io/v1"
    return (
        (MUTATING, {"apiVersion": group, "kind": "MutatingAdmissionPolicy", "metadata": meta, "spec": policy}),
        (
            MUTATING_BINDINGS,
            {
                "apiVersion": group,
                "kind": "MutatingAdmissionPolicyBinding",
                "metadata": meta,
                "spec": {"policyName": "broken-image"},
            },
        ),
    )


async def is_broken(ground: Ground) -> bool:
    """The API server takes a moment to follow its own policies."""
    template = workload("ledger", "", 1)["spec"]["template"]
    pod = {**template, "apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": "tried"}}
    made = await ground.api.post(f"{PODS}?dryRun=All", pod)
    return bool((made.body["metadata"].get("annotations") or {}).keys() & NEVER_READY.keys())


async def test_a_new_pod_that_is_never_ready_is_taken_back_in_time(ground: Ground) -> None:
    """TRM-42."""
    await allow_moves(ground)
    start_worker(ground, DOVETAIL_MOVES="true")
    claim = await a_ledger(ground)
    [before] = await pods_of(ground)
    await ground.api.patch(LEDGER, {"spec": {"progressDeadlineSeconds": TIMEOUT}})
    broken = an_image_that_is_broken_by_now()
    for path, body in broken:
        await created(ground, path, body)
    try:
        await ground.until(lambda: is_broken(ground), 60, "the image is broken")
        since = ground.audit.end()
        await ground.apply(fleet_pool("ledger", colour="green", disruption=ALL))

        async def taken_back() -> bool:
            found = (await ground.api.get(LEDGER)).body["metadata"]["annotations"]
            return "failed" in found.get(names.MOVES, "") and len(await pods_of(ground)) == 1

        await ground.until(taken_back, 180, "the move is taken back")
        entries, [after] = ground.audit.entries(since), await pods_of(ground)
        begun, back = moments_of_moves(entries)
        for field in ("uid", "labels"):  # the hash of its template is a label
            assert after["metadata"][field] == before["metadata"][field]
        assert min(slices_in(entries), default=1) >= 1
        assert claim["status"]["nodeName"] == after["spec"]["nodeName"]
        print(f"taken back {back - begun:.1f} s after it began, with a deadline of {TIMEOUT} s")
        assert back - begun <= TIMEOUT + 15
    finally:
        for path, body in broken:
            await ground.api.delete(f"{path}/{body['metadata']['name']}")


def moments_of_moves(entries: list[AuditEntry]) -> list[float]:
    """When the worker changed the template."""
    written = [e for e in entries if e.user == WORKER_USER and (e.resource, e.verb) == ("deployments", "patch")]
    return [parse_time(e.time) for e in written if e.code == 200 and (e.request or {}).get("spec")]


NODES: Final = 20
PODS_OF_A_NODE: Final = 10
CALLS_OF_A_MOVE: Final = 6


async def test_two_hundred_deployments_are_moved_in_twice_the_time_of_evictions_at_most(ground: Ground) -> None:
    """Twenty nodes drift at once, with ten Deployments of one replica each, evicted and then moved."""
    before = many_types(ground)
    await allow_moves(ground)
    start_worker(ground, DOVETAIL_MOVES="true")
    try:
        await ground.apply(many_pool("blue"))
        for number in range(NODES * PODS_OF_A_NODE):
            await created(ground, DEPLOYMENTS, workload(f"one-{number:03}", "many", 1, "1500m"))
        await ground.until(lambda: all_run(ground), 240, "200 pods on 20 nodes")
        evictions, _ = await replaced(ground, "green")
        await ask_all(ground, "restart")
        moves, entries = await replaced(ground, "red")
    finally:
        await ask_all(ground, None)
        ground.world(before)
    begun = len(moments_of_moves(entries))
    calls = calls_about_deployments(entries)
    print(
        f"evictions {evictions:.1f} s, moves {moves:.1f} s: {moves / evictions:.2f}; "
        f"{sum(calls.values()) / begun:.2f} calls a move: {dict(calls)}"
    )
    assert begun == NODES * PODS_OF_A_NODE
    assert not [e for e in entries if e.user == WORKER_USER and e.subresource == "eviction"]
    assert sum(calls.values()) <= CALLS_OF_A_MOVE * begun
    assert moves <= 2 * evictions


def many_pool(colour: str) -> Json:
    return fleet_pool("many", colour=colour, types=("m5.4xlarge",), disruption=ALL)


async def all_run(ground: Ground) -> bool:
    return len(await ground.claims()) == NODES and await ground.settled(NODES * PODS_OF_A_NODE)


async def replaced(ground: Ground, colour: str) -> tuple[float, list[AuditEntry]]:
    """How long it took until every old node was gone and every pod ran; what was written meanwhile."""
    old, since = {c["metadata"]["name"] for c in await ground.claims()}, ground.audit.end()
    began = time.monotonic()
    await ground.apply(many_pool(colour))

    async def done() -> bool:
        return not old & {c["metadata"]["name"] for c in await pool_claims(ground, "many")} and await all_run(ground)

    await ground.until(done, 300, "all twenty nodes are replaced")
    return time.monotonic() - began, ground.audit.entries(since)


def calls_about_deployments(entries: list[AuditEntry]) -> Counter[str]:
    """What the worker asked of the API server about Deployments, Events too."""
    ours = [e for e in entries if e.user == WORKER_USER and e.verb != "watch"]
    asked = [e for e in ours if e.resource in ("deployments", "replicasets", "namespaces")]
    said = [e for e in ours if e.resource == "events" and about(e) == "Deployment"]
    return Counter(f"{e.verb} {e.resource}" for e in [*asked, *said])


def about(entry: AuditEntry) -> str:
    body = entry.request or {}
    return str((body.get("involvedObject") or body.get("regarding") or {}).get("kind", ""))
