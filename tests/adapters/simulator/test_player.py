"""The simulated world moves as a real one does: instances, kubelets, controllers, scheduler."""

import threading
import time
from collections import Counter
from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.simulator.play.kubelet import RUN_SECONDS, STOP_SECONDS
from dovetail.adapters.simulator.play.scheduler import MOST_MARKED_AGAIN
from dovetail.messages.writes import Write
from dovetail.model import names
from dovetail.model.nodes import Node
from dovetail.model.pods import Expression
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.cloud import Instance, Prepared
from dovetail.ports.failures import Conflict
from dovetail.wiring.simulated import SimulatedAdapter
from tests.adapters.simulator.conftest import Stage
from tests.adapters.simulator.manifests import a_deployment, a_new_claim, a_pdb, nodes_of_pods, ready_pods
from worlds.manifests import node_manifest, pod_manifest, pod_spec


async def a_launch(adapter: SimulatedAdapter, name: str = "default-1", **more: Any) -> Instance:
    claim = await adapter.claims.create(a_new_claim(name, **more))
    answer = await adapter.cloud.prepare(claim)
    assert isinstance(answer, Prepared)
    instance = await adapter.cloud.launch(claim, answer.request, f"token-{name}")
    assert isinstance(instance, Instance)
    return instance


async def the_node(stage: Stage, adapter: SimulatedAdapter, instance: Instance) -> Node:
    """Of that instance, as it is now, once the view knows it too."""
    (body,) = [n for n in stage.world.objects("Node") if n["spec"]["providerID"] == instance.provider_id]
    node = parse_node(body)
    write = Write(kind="Node", name=node.name, uid=node.uid, version=int(node.resource_version))
    await adapter.view.catch_up([write])
    return node


async def test_an_instance_joins_as_a_kubelet_would_make_its_node(stage: Stage, adapter: SimulatedAdapter) -> None:
    team = Expression(key="team", operator="In", values=("a",))
    startup = (Taint(key="wait", effect="NoSchedule"),)
    instance = await a_launch(adapter, requirements=(*a_new_claim().requirements, team), startup_taints=startup)

    stage.pass_time(1.9)
    before = stage.world.objects("Node")
    stage.pass_time(0.1)

    node = await the_node(stage, adapter, instance)
    assert before == []
    assert {**instance.labels, "team": "a", names.NODE_POOL: "default"}.items() <= dict(node.labels).items()
    assert {(t.key, t.effect) for t in node.taints} == {
        (names.UNREGISTERED_TAINT, "NoExecute"),
        ("wait", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoSchedule"),
    }
    assert (node.capacity, node.allocatable) == (instance.capacity, instance.allocatable)


async def test_a_node_becomes_ready_and_loses_the_taint_that_says_it_is_not(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    instance = await a_launch(adapter)

    stage.pass_time(3)

    node = await the_node(stage, adapter, instance)
    ready = node.condition("Ready")
    assert ready is not None
    assert ready.status == "True"
    assert [t.key for t in node.taints] == [names.UNREGISTERED_TAINT]


async def test_an_instance_that_never_joins_runs_without_a_node(stage: Stage, adapter: SimulatedAdapter) -> None:
    stage.world.never_join(1)
    await a_launch(adapter, "silent")
    await a_launch(adapter, "well")

    stage.pass_time(10)

    assert [m.state for m in stage.world.instances()] == ["running", "running"]
    assert len(stage.world.objects("Node")) == 1


async def test_what_instances_take_their_time_for_can_be_hastened(stage: Stage, adapter: SimulatedAdapter) -> None:
    stage.world.never_join()
    joining = await a_launch(adapter, "joining")
    leaving = await a_launch(adapter, "leaving")
    stage.world.set(shutdown=3600.0)
    await adapter.cloud.terminate(leaving.provider_id)
    stage.pass_time(10)
    before = len(stage.world.objects("Node")), len(stage.world.live_instances())

    stage.world.hasten("joining")
    stage.pass_time(1)
    one = len(stage.world.objects("Node")), len(stage.world.live_instances())
    stage.world.hasten()
    stage.pass_time(1)

    assert (before, one) == ((0, 2), (1, 2))
    assert [row.provider_id for row in stage.world.live_instances()] == [joining.provider_id]


async def test_a_terminated_instances_node_falls_silent_and_is_removed(stage: Stage, adapter: SimulatedAdapter) -> None:
    instance = await a_launch(adapter)
    stage.pass_time(3)
    await adapter.cloud.terminate(instance.provider_id)

    stage.pass_time(0.5)
    node = await the_node(stage, adapter, instance)
    stage.pass_time(1)

    assert [c.status for c in node.conditions if c.type == "Ready"] == ["Unknown"]
    assert stage.world.objects("Node") == []


async def test_a_node_held_by_a_finalizer_outlives_its_instance(stage: Stage, adapter: SimulatedAdapter) -> None:
    instance = await a_launch(adapter)
    stage.pass_time(3)
    stage.world.patch("Node", stage.world.objects("Node")[0]["metadata"]["name"], {"metadata": {"finalizers": ["a/b"]}})
    stage.world.terminate_instance(instance.provider_id)

    stage.pass_time(3)

    assert ["deletionTimestamp" in n["metadata"] for n in stage.world.objects("Node")] == [True]


def test_a_silent_kubelet_neither_starts_nor_stops_pods(stage: Stage) -> None:
    stage.world.apply(node_manifest())
    stage.world.apply(pod_manifest("running"))
    stage.pass_time(2)

    stage.world.silence("n1")
    stage.world.apply(pod_manifest("late"))
    stage.world.delete("Pod", "running", grace=1)
    stage.pass_time(60)

    states = {p["metadata"]["name"]: p["status"]["phase"] for p in stage.world.objects("Pod")}
    assert states == {"running": "Running", "late": "Pending"}


def test_a_deployments_pods_are_bound_and_run(stage: Stage) -> None:
    stage.world.apply(node_manifest(cpu="4"))
    stage.world.apply(a_deployment(3))

    stage.pass_time(2)

    assert nodes_of_pods(stage.world) == ["n1"] * 3
    assert len(ready_pods(stage.world)) == 3
    assert (stage.world.get("Deployment", "web") or {})["status"]["readyReplicas"] == 3


def test_a_pod_without_room_is_marked_unschedulable(stage: Stage) -> None:
    stage.world.apply(node_manifest(cpu="1"))
    stage.world.apply(a_deployment(3))

    stage.pass_time(2)

    assert sorted(nodes_of_pods(stage.world)) == ["", "n1", "n1"]
    (waiting,) = [p for p in stage.world.objects("Pod") if "nodeName" not in p["spec"]]
    (condition,) = waiting["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")


def test_of_pods_that_are_refused_again_a_few_are_written_to_and_one_that_fits_is_bound(stage: Stage) -> None:
    stage.world.apply(node_manifest())
    for number in range(MOST_MARKED_AGAIN + 10):
        stage.world.apply(pod_manifest(f"large-{number:02d}", cpu="8"))
    stage.settle()

    stage.world.apply(node_manifest("n2"))
    stage.world.apply(pod_manifest("small"))
    stage.player.tick(stage.clock.now)

    marked = Counter(_message_of(pod)[:3] for pod in stage.world.objects("Pod") if pod["metadata"]["name"] != "small")
    assert marked == {"0/2": MOST_MARKED_AGAIN, "0/1": 10}
    assert [node for node in nodes_of_pods(stage.world) if node]
    stage.settle()
    assert {_message_of(pod)[:3] for pod in stage.world.objects("Pod") if not pod["spec"].get("nodeName")} == {"0/2"}


def test_the_player_leaves_others_as_long_as_it_took(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a tick lasts nobody else writes, and in a large world there is always a reason for the next one."""
    seconds, ends = iter((10.0, 10.75)), _Ends()
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))

    stage.player.run(ends)

    assert ends.rests == [0.75]


class _Ends(threading.Event):
    """Set with the first rest."""

    def __init__(self) -> None:
        super().__init__()
        self.rests: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.rests.append(timeout)
        self.set()
        return True


def _message_of(pod: dict[str, Any]) -> str:
    return str(next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled").get("message", ""))


def test_a_shrunken_deployments_pods_stop_and_are_gone(stage: Stage) -> None:
    stage.world.apply(node_manifest())
    stage.world.apply(a_deployment(3))
    stage.pass_time(2)

    stage.world.scale("web", 0)
    stage.pass_time(2)

    assert stage.world.objects("Pod") == []


def test_a_stubborn_pod_uses_up_its_grace_and_no_more(stage: Stage) -> None:
    stubborn = pod_manifest(terminationGracePeriodSeconds=10)
    stubborn["metadata"]["annotations"] = {STOP_SECONDS: "600"}
    stage.world.apply(node_manifest())
    stage.world.apply(stubborn)
    stage.pass_time(2)
    stage.world.delete("Pod", "lone")

    stage.pass_time(9)
    before = stage.world.get("Pod", "lone")
    stage.pass_time(1)

    assert before is not None
    assert stage.world.get("Pod", "lone") is None


def test_a_pod_that_runs_for_a_while_succeeds(stage: Stage) -> None:
    short = pod_manifest()
    short["metadata"]["annotations"] = {RUN_SECONDS: "5"}
    stage.world.apply(node_manifest())
    stage.world.apply(short)

    stage.pass_time(10)

    assert (stage.world.get("Pod", "lone") or {})["status"]["phase"] == "Succeeded"


def test_a_changed_template_replaces_the_pods(stage: Stage) -> None:
    stage.world.apply(node_manifest())
    stage.world.apply(a_deployment(2))
    stage.pass_time(2)
    old = {p["metadata"]["uid"] for p in stage.world.objects("Pod")}

    stage.world.apply(a_deployment(2, cpu="250m"))
    stage.pass_time(3)

    assert len(ready_pods(stage.world)) == 2
    assert old.isdisjoint(p["metadata"]["uid"] for p in stage.world.objects("Pod"))


def test_selectors_taints_and_affinity_are_honoured(stage: Stage) -> None:
    exists = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [exists]}}}
    stage.world.apply(node_manifest("plain"))
    stage.world.apply(node_manifest("chosen", zone="a"))
    stage.world.apply(node_manifest("fast", disk="nvme"))
    stage.world.apply(
        node_manifest("tainted", cpu="64", taints=[{"key": "team", "value": "b", "effect": "NoSchedule"}])
    )
    stage.world.apply(pod_manifest("selects", nodeSelector={"zone": "a"}))
    stage.world.apply(pod_manifest("wants-disk", affinity=affinity))
    stage.world.apply(pod_manifest("tolerates", cpu="32", tolerations=[{"key": "team", "operator": "Exists"}]))
    stage.world.apply(pod_manifest("nowhere", nodeSelector={"zone": "z"}))

    stage.pass_time(2)

    placed = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in stage.world.objects("Pod")}
    assert placed == {"selects": "chosen", "wants-disk": "fast", "tolerates": "tainted", "nowhere": None}


def test_a_cordoned_node_takes_no_pod(stage: Stage) -> None:
    stage.world.apply(node_manifest())
    stage.world.patch("Node", "n1", {"spec": {"unschedulable": True}})
    stage.world.apply(pod_manifest())

    stage.settle()

    assert nodes_of_pods(stage.world) == [""]


def test_anti_affinity_and_hard_spread_are_honoured(stage: Stage) -> None:
    selector = {"matchLabels": {"app": "web"}}
    apart = {"topologyKey": names.HOSTNAME, "labelSelector": selector}
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    stage.world.apply(node_manifest("a1", zone="a"))
    stage.world.apply(node_manifest("a2", zone="a"))
    stage.world.apply(node_manifest("b1", cpu="600m", zone="b"))
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    stage.world.apply(a_deployment(4, affinity=anti, topologySpreadConstraints=[spread]))

    stage.pass_time(2)

    assert sorted(nodes_of_pods(stage.world)) == ["", "a1", "a2", "b1"]


def test_a_budget_blocks_the_eviction_that_it_does_not_allow(stage: Stage) -> None:
    stage.world.apply(node_manifest())
    stage.world.apply(a_deployment(3))
    stage.world.apply(a_pdb(minAvailable=2))

    stage.pass_time(2)

    status = (stage.world.get("PodDisruptionBudget", "web-pdb") or {})["status"]
    assert {k: status[k] for k in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")} == {
        "disruptionsAllowed": 1,
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "expectedPods": 3,
    }


async def test_one_allowance_is_granted_once_and_given_again_when_the_pod_is_replaced(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    stage.world.apply(node_manifest())
    stage.world.apply(a_deployment(3))
    stage.world.apply(a_pdb(maxUnavailable=1))
    stage.pass_time(2)
    first, second, _ = await adapter.pods.list_on("n1")

    granted = await adapter.pods.evict(first)
    blocked = await adapter.pods.evict(second)
    stage.pass_time(5)
    again = await adapter.pods.evict(second)

    assert [granted.outcome, blocked.outcome, again.outcome] == ["evicted", "blocked", "evicted"]


async def test_two_budgets_on_one_pod_are_an_error(stage: Stage, adapter: SimulatedAdapter) -> None:
    """TRM-26."""
    other = a_pdb(minAvailable=0)
    stage.world.apply(node_manifest())
    stage.world.apply(a_deployment(1))
    stage.world.apply(a_pdb(minAvailable=0))
    stage.world.apply({**other, "metadata": {**other["metadata"], "name": "second"}})
    stage.pass_time(2)
    (pod,) = await adapter.pods.list_on("n1")

    answer = await adapter.pods.evict(pod)

    assert (answer.outcome, answer.code) == ("unsupported", 500)


async def test_the_claims_of_a_deleted_pool_are_collected(stage: Stage, adapter: SimulatedAdapter) -> None:
    """LIF-1: the deletion of a NodePool cascades; each claim's finalizer is honoured."""
    claim = await adapter.claims.create(a_new_claim())
    gone = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": "no-such-uid"}
    stage.world.patch("NodeClaim", claim.name, {"metadata": {"ownerReferences": [gone]}})

    stage.settle()

    found = await adapter.claims.read(claim.name)
    assert found is not None
    assert found.deleting_since is not None


def test_the_pods_of_a_node_that_is_gone_are_collected(stage: Stage) -> None:
    stage.world.apply(node_manifest())
    stage.world.apply(pod_manifest())
    stage.pass_time(2)

    stage.world.delete("Node", "n1")
    stage.settle()

    assert stage.world.objects("Pod") == []


def test_a_deleted_deployment_takes_everything_with_it(stage: Stage) -> None:
    stage.world.apply(node_manifest())
    stage.world.apply(a_deployment(2))
    stage.pass_time(2)

    stage.world.delete("Deployment", "web")
    stage.pass_time(3)

    assert stage.world.objects("ReplicaSet") + stage.world.objects("Pod") == []


def test_a_daemon_runs_once_on_every_node_that_takes_it(stage: Stage) -> None:
    labels = {"app": "agent"}
    stage.world.apply(node_manifest("n1"))
    stage.world.apply(node_manifest("n2"))
    stage.world.apply(node_manifest("other", taints=[{"key": "x", "effect": "NoSchedule"}]))
    stage.world.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod_spec(cpu="100m")},
            },
        }
    )

    stage.pass_time(2)

    assert sorted(nodes_of_pods(stage.world)) == ["n1", "n2"]


def test_an_attachment_goes_when_no_pod_on_its_node_uses_the_volume(stage: Stage) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    stage.world.apply(node_manifest())
    stage.world.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"volumeName": "pv-1"},
        }
    )
    stage.world.apply(pod_manifest(nodeName="n1", volumes=[volume]))
    stage.world.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": "att"},
            "spec": {"nodeName": "n1", "source": {"persistentVolumeName": "pv-1"}},
        }
    )

    stage.pass_time(2)
    used = stage.world.objects("VolumeAttachment")
    stage.world.delete("Pod", "lone")
    stage.pass_time(3)

    assert len(used) == 1
    assert stage.world.objects("VolumeAttachment") == []


def test_a_world_at_rest_is_not_written_to(stage: Stage) -> None:
    stage.world.apply(node_manifest())
    stage.world.apply(a_deployment(3))
    stage.world.apply(a_pdb(minAvailable=1))
    stage.pass_time(5)
    last = stage.world.ledger()[-1].id

    stage.pass_time(3600)

    assert stage.world.ledger(last) == []


async def test_a_nominated_pod_is_bound_to_its_node_and_others_leave_it_the_room(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    """As the kube-scheduler does: the first to come would have taken the room of the last, and the emptier node."""
    stage.world.apply(node_manifest("tight", cpu="2"))
    stage.world.apply(node_manifest("wide", cpu="2500m"))
    for name in ("a-first", "z-last"):
        stage.world.apply(pod_manifest(name, cpu="2"))
    [last] = [parse_pod(raw) for raw in stage.world.objects("Pod") if raw["metadata"]["name"] == "z-last"]
    await adapter.pods.nominate(last, "wide")

    stage.pass_time(1)

    bound = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in stage.world.objects("Pod")}
    assert bound == {"a-first": "tight", "z-last": "wide"}


async def test_a_nomination_goes_with_a_try_in_vain(stage: Stage, adapter: SimulatedAdapter) -> None:
    stage.world.apply(node_manifest("tight", cpu="1"))
    stage.world.apply(pod_manifest("web", cpu="2"))
    stage.pass_time(1)
    [pod] = map(parse_pod, stage.world.objects("Pod"))
    await adapter.pods.nominate(pod, "tight")

    stage.pass_time(1)

    [found] = stage.world.objects("Pod")
    assert "nominatedNodeName" not in found["status"] and "nodeName" not in found["spec"]


async def test_a_pod_is_annotated_as_it_was_seen(stage: Stage, adapter: SimulatedAdapter) -> None:
    stage.world.apply(pod_manifest("web"))
    [pod] = map(parse_pod, stage.world.objects("Pod"))

    await adapter.pods.annotate(pod, names.POD_DELETION_COST, "-1")

    [found] = map(parse_pod, stage.world.objects("Pod"))
    assert found.deletion_cost == "-1"
    with pytest.raises(Conflict):
        await adapter.pods.annotate(pod, names.POD_DELETION_COST, "-2")
    await adapter.pods.annotate(found, names.POD_DELETION_COST, None)
    [found] = map(parse_pod, stage.world.objects("Pod"))
    assert found.deletion_cost is None
