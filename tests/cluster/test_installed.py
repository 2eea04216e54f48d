"""The charts are installed on a real control plane and the workers run from the image, as their pods say.

The pods of the rendered Deployment run as uid 65532 on a read-only root with the ServiceAccount's own token
(tests/cluster/system/pods.py plays the node), and carry nodes through launch, drift with a cancel, a kill, and an
upgrade of the Deployment while a disruption is half done. Afterwards the audit log is held against the rendered rights.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from dovetail.adapters.kubernetes_json.rendering.correlating import COMBINED, SIMILAR
from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.container import can_run
from testbed.image import image_tree
from testbed.plane import ApiClient, AuditEntry, TestbedUnavailable, find_binaries
from testbed.plane.helm import find_helm
from testbed.plane.kubeconfig import write_kubeconfig
from testbed.up import CLUSTER, POLICY_PATHS
from tests.adapters.kube.test_rights_used import ROLES, granted
from tests.cluster.system.pods import OURS_TO_SAY, Kubelet
from tests.cluster.system.scenes import a_slow_replacement, boot, gone
from tests.packaging.charts import WORKERS, Helm, Object
from tests.unavailable import no_container, no_control_plane
from worlds.cluster.ground import Ground
from worlds.cluster.objects import owner_of

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

NAMESPACE = "dovetail"  # not kube-system: reads of its accounts are left out of the audit log
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:dovetail"
PERSON = "person"
FOLDER = Path(__file__).parents[2] / ".dovetail" / "tests-installed"
READY_SECONDS = 600.0
OF_PEOPLE = ("-operator", "-approver", "-freezer")  # ends of the names of roles that are not the workers'

# Granted and not used by this story, each for its reason.
NOT_USED = {
    ("karpenter.sh", "nodepools/finalizers", "update"): "asked for by an admission plugin, never by a request",
    ("karpenter.sh", "nodeclaims/finalizers", "update"): "asked for by an admission plugin, never by a request",
    ("karpenter.sh", "nodepools", "patch"): "hashes and the annotations of static pools, which are up to date here",
    ("karpenter.sh", "nodeoverlays", "list"): "behind the gate NodeOverlay",
    ("karpenter.sh", "nodeoverlays", "watch"): "behind the gate NodeOverlay",
    ("karpenter.sh", "nodeoverlays/status", "patch"): "behind the gate NodeOverlay",
    ("autoscaling.x-k8s.io", "capacitybuffers", "list"): "behind the gate CapacityBuffer",
    ("autoscaling.x-k8s.io", "capacitybuffers", "watch"): "behind the gate CapacityBuffer",
    ("autoscaling.x-k8s.io", "capacitybuffers/status", "patch"): "behind the gate CapacityBuffer",
    ("", "podtemplates", "list"): "behind the gate CapacityBuffer",
    ("", "podtemplates", "watch"): "behind the gate CapacityBuffer",
    ("", "replicationcontrollers", "list"): "behind the gate CapacityBuffer",
    ("", "replicationcontrollers", "watch"): "behind the gate CapacityBuffer",
    ("apps", "deployments", "list"): "behind the gate CapacityBuffer",
    ("apps", "deployments", "watch"): "behind the gate CapacityBuffer",
    ("apps", "replicasets", "list"): "behind the gate CapacityBuffer",
    ("apps", "replicasets", "watch"): "behind the gate CapacityBuffer",
    ("apps", "statefulsets", "list"): "behind the gate CapacityBuffer",
    ("apps", "statefulsets", "watch"): "behind the gate CapacityBuffer",
    ("dovetail.sh", "disruptionpolicies/status", "patch"): "nobody has said here when nodes may leave",
    ("dovetail.sh", "freezes/status", "patch"): "nobody has said here when nodes may leave",
    ("dovetail.sh", "noderollouts/status", "patch"): "no change is rolled out here",
    ("dovetail.sh", "noderollouts", "create"): "no change is rolled out here",
    ("dovetail.sh", "noderollouts", "delete"): "no change is rolled out here",
    ("", "pods", "delete"): "pods that outlast their node's deadline",
    ("", "nodes", "delete"): "nodes that another has kept the finalizer of",
    ("discovery.k8s.io", "endpointslices", "get"): "nobody asks a worker here: a question makes it look who may ask",
    ("coordination.k8s.io", "leases", "list"): "Leases are left out of the audit log",
    **{
        ("resource.k8s.io", kind, verb): "read where IGNORE_DRA_REQUESTS is false"
        for kind in ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
        for verb in ("list", "watch")
    },
    ("", "configmaps", "get"): "shortages, which the cloud does not have here",
    ("", "configmaps", "patch"): "shortages, which the cloud does not have here",
}


class Beside(Ground):
    """The ground of tests that speak of `the pods`: those of the workers are none of them."""

    async def objects(self, kind: str) -> list[Json]:
        """All of a kind, but the release's."""
        return [one for one in await super().objects(kind) if one["metadata"].get("namespace") != NAMESPACE]


class Installed:
    """A release, its node, and the servers around it."""

    def __init__(self, ground: Ground, kubelet: Kubelet, helm: Helm) -> None:
        self.ground, self.kubelet, self.helm = ground, kubelet, helm
        self.objects: list[Object] = []

    def values(self, annotations: Json) -> Json:
        """What a person sets, and where this machine differs from a cluster on AWS."""
        given = self.ground.everything.environment
        taken = (
            "AWS_ENDPOINT_URL",
            "AWS_REGION",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_EC2_METADATA_DISABLED",
        )
        here: list[Json] = [{"name": name, "value": given[name]} for name in taken]
        person = {"kind": "User", "name": PERSON, "apiGroup": "rbac.authorization.k8s.io"}
        return {
            "settings": {
                "clusterName": CLUSTER,
                "clusterEndpoint": given["CLUSTER_ENDPOINT"],
                "interruptionQueue": given["INTERRUPTION_QUEUE"],
            },
            "temporal": {"address": given["TEMPORAL_ADDRESS"], "namespace": "default"},
            "controller": {"env": here},
            "operatorRole": {"subjects": [person]},
            "podAnnotations": {**OURS_TO_SAY, **annotations},
        }

    async def apply(self, annotations: Json) -> None:
        """Install the release, or upgrade it; its pods get these annotations."""
        file = self.helm.folder / "values.json"
        file.write_text(json.dumps(self.values(annotations)))
        arguments = ("upgrade", "--install", "dovetail", str(WORKERS), "--namespace", NAMESPACE, "--create-namespace")
        kubeconfig = str(self.ground.everything.plane.kubeconfig)
        done = await asyncio.to_thread(self.helm.run, *arguments, "--kubeconfig", kubeconfig, "--values", str(file))
        assert done.returncode == 0, done.stderr
        shown = self.helm.run("get", "manifest", "dovetail", "--namespace", NAMESPACE, "--kubeconfig", kubeconfig)
        self.objects = [found for found in yaml.safe_load_all(shown.stdout) if found]

    async def ready(self) -> bool:
        """Two containers run, and their probes say that they are ready."""
        assert not self.kubelet.killed, f"not alive, by the chart's probe: {self.kubelet.killed}"
        running = [one for one in self.kubelet.containers.values() if not one.leaves]
        return len(running) == 2 and all(one.ready for one in running)

    def rights(self) -> set[tuple[str, str, str]]:
        """What the rendered roles grant."""
        return {
            right
            for one in self.objects
            if one["kind"] in {"ClusterRole", "Role"} and not one["metadata"]["name"].endswith(OF_PEOPLE)
            for right in granted(one)
        }

    def person(self) -> ApiClient:
        """One who has the chart's role for people and nothing else."""
        plane = self.ground.everything.plane
        kubeconfig = write_kubeconfig(plane.folder / "person.kubeconfig", plane.server, plane.folder / "pki", PERSON)
        return ApiClient(kubeconfig, user_agent=PERSON)

    def calls(self) -> list[AuditEntry]:
        """What the workers asked of the API server."""
        return [entry for entry in self.ground.audit.entries() if entry.user == ACCOUNT]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installed]:
    if why := can_run():
        no_container(why)
    try:
        find_binaries(lambda _line: None)
        helm = Helm(program=find_helm(lambda _line: None), folder=tmp_path_factory.mktemp("helm"))
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    started = await Ground.start(FOLDER)
    ground = Beside(started.everything, started.api, started.client)
    kubelet = Kubelet(
        plane=ground.everything.plane,
        api=ground.api,
        namespace=NAMESPACE,
        image=await asyncio.to_thread(image_tree),
        folder=FOLDER / "containers",
        servers=tuple(ground.everything.environment[name] for name in ("TEMPORAL_ADDRESS", "AWS_ENDPOINT_URL")),
    )
    for kind in (
        "clusterroles/dovetail",
        "clusterrolebindings/dovetail-dovetail",
    ):  # the test bed's own workers have them
        await ground.api.delete(f"/apis/rbac.authorization.k8s.io/v1/{kind}")
    for one in yaml.safe_load_all(ROLES.read_text()):
        if one["kind"] in POLICY_PATHS:  # the release brings its own
            await ground.api.delete(f"{POLICY_PATHS[one['kind']]}/{one['metadata']['name']}")
    await kubelet.join()
    tending = asyncio.create_task(kubelet.run())
    release = Installed(ground, kubelet, helm)
    try:
        await release.apply({})
        await ground.until(release.ready, READY_SECONDS, "both workers are ready")
        yield release
    finally:
        tending.cancel()
        await kubelet.stop()
        await ground.stop()
    shutil.rmtree(FOLDER, ignore_errors=True)


async def test_it_launches_cancels_and_survives_a_kill(installed: Installed) -> None:
    """The story of the demo, by the hands of a person who has the chart's role and nothing else."""
    ground, kubelet = installed.ground, installed.kubelet
    drifted, replacement = await a_slow_replacement(ground)
    async with installed.person() as person:
        path = f"/apis/karpenter.sh/v1/nodeclaims/{drifted['metadata']['name']}"
        change = {"metadata": {"annotations": {names.CANCEL: "not now"}}}
        assert (await person.patch(path, change)).status == 200
        assert (await person.get("/api/v1/secrets")).status == 403

    async def taken_back() -> bool:
        claim = await ground.claim(drifted["metadata"]["name"])
        return claim is not None and not owner_of(claim) and await gone(ground, replacement)

    await ground.until(taken_back, 120, "the disruption is taken back")
    await kubelet.rotate_tokens()
    kubelet.kill_all()
    await ground.delete("NodeClaim", drifted["metadata"]["name"])
    ground.world({"bootSeconds": 0})

    async def replaced() -> bool:
        return await gone(ground, drifted) and await ground.settled(1)

    await ground.until(replaced, 240, "after the kill the node is drained and its pod runs elsewhere")
    await ground.assert_one_instance_per_claim()


async def test_an_upgrade_in_mid_disruption_loses_nothing(installed: Installed) -> None:
    ground, kubelet = installed.ground, installed.kubelet
    await ground.until(installed.ready, READY_SECONDS, "both workers are ready")
    drifted, replacement = await a_slow_replacement(ground)
    before, ended = set(kubelet.containers), len(kubelet.ended)

    await installed.apply({"release": "next"})

    async def rolled() -> bool:
        return not before & set(kubelet.containers) and await installed.ready()

    await ground.until(rolled, 240, "both workers are new ones")
    assert [code for _, code in kubelet.ended[ended:]] == [0, 0]  # each had the time to end by itself
    assert await ground.claim(drifted["metadata"]["name"]) and await ground.claim(replacement["metadata"]["name"])
    ground.world({"bootSeconds": 0})
    boot(ground, replacement)

    async def done() -> bool:
        return await gone(ground, drifted) and await ground.settled(1)

    await ground.until(done, 240, "the replacement took the pod and the drifted node is gone")
    [left] = await ground.claims()
    assert left["metadata"]["name"] == replacement["metadata"]["name"]
    await ground.assert_one_instance_per_claim()
    await ground.assert_nothing_tainted_or_leaked()


async def test_similar_events_of_one_object_become_one_that_counts_up(installed: Installed) -> None:
    """From the tenth reason of a pause on: the Event that stands is patched, by the right that the chart gives."""
    ground = installed.ground
    await ground.until(installed.ready, READY_SECONDS, "both workers are ready")
    path = "/apis/karpenter.sh/v1/nodepools/web"

    async def told(reason: str) -> Json | None:
        events = (await ground.api.get("/api/v1/namespaces/default/events")).body["items"]
        found = [one for one in events if one["reason"] == "Paused" and one["message"].endswith(reason)]
        return found[0] if found else None

    async with installed.person() as person:
        for number in range(SIMILAR + 2):
            reason = f"reason number {number}"
            pause = {names.PAUSED: "expiry", names.PAUSED_REASON: reason}
            assert (await person.patch(path, {"metadata": {"annotations": pause}})).status == 200
            event = await ground.until(partial(told, reason), 60, f"an Event with {reason}")
        over = dict.fromkeys(names.PAUSE_ANNOTATIONS)
        assert (await person.patch(path, {"metadata": {"annotations": over}})).status == 200

    assert event is not None and event["count"] == 3 and event["message"].startswith(COMBINED)
    patched = [call.code for call in installed.calls() if (call.resource, call.verb) == ("events", "patch")]
    assert patched and set(patched) == {200}


async def test_every_right_is_used_and_none_was_missing(installed: Installed) -> None:
    """By the audit log of the tests above."""
    calls = installed.calls()
    used = {
        (call.group, f"{call.resource}/{call.subresource}" if call.subresource else call.resource, call.verb)
        for call in calls
        if call.resource
    }
    rights = installed.rights()
    harmless = {(group, resource, "get") for group, resource, verb in rights if verb == "list"}

    assert [f"{call.verb} {call.resource} {call.name}" for call in calls if call.code == 403] == []
    assert {right for right in used - rights if right[0] != "authorization.k8s.io"} == set()
    assert rights - used - harmless - set(NOT_USED) == set()
    assert set(NOT_USED) - rights == set(), "no reason for what is not granted"


async def test_a_renewed_token_is_used(installed: Installed) -> None:
    """The API server names the token of each request."""
    ground, kubelet = installed.ground, installed.kubelet
    await ground.until(installed.ready, READY_SECONDS, "both workers are ready")
    before = _tokens(ground)
    await kubelet.rotate_tokens()

    async def both_renewed() -> bool:
        return len(_tokens(ground) - before) >= len(kubelet.containers)

    await ground.until(both_renewed, 180, "each worker asks with its new token")


def _tokens(ground: Ground) -> set[str]:
    """Those that the workers have asked with."""
    log = ground.everything.plane.audit_log.read_text().splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in log if ACCOUNT in line]
    return {
        token
        for event in events
        if event["user"]["username"] == ACCOUNT
        for token in event["user"].get("extra", {}).get("authentication.kubernetes.io/credential-id", [])
    }
