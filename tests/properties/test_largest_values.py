"""An object of each kind with the largest values that the API server admits: the good pod beside it is placed, the
empty node goes, and every other look is answered."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import pytest

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import BUFFER_KINDS, CLUSTER_KINDS, DEVICE_KINDS, NODE_OVERLAY
from dovetail.api.karpenter.capacity_buffer import CapacityBuffer
from dovetail.api.karpenter.node_overlay import NodeOverlay
from dovetail.api.karpenter.node_pool import NodePool
from dovetail.api.own.disruption_policy import DisruptionPolicy
from dovetail.api.own.freeze import Freeze
from dovetail.api.own.node_rollout import NodeRollout
from dovetail.api.validation import parse
from dovetail.disruption.choose import decide
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.lifecycle.static_pools import MOST_LACKING, shortfalls
from dovetail.messages.plans import DisruptionPlan
from dovetail.model.pools import Catalogue
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.placement.buffers.virtual_pods import virtual_pods
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import PlacementSettings
from dovetail.telemetry.metrics.karpenters.cluster_lines import ClusterLines
from tests.placement.builders import TYPES
from tests.properties.hostile import GROUP, NOW, a_sound_node, a_sound_pod, a_sound_pool, meta

INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1
LONGEST: Final = "2562047h47m16s"  # of Go's durations
DIGITS: Final = "9" * 400
DEFINED: Final[dict[str, tuple[str, Any]]] = {
    "NodePool": ("karpenter.sh/v1", NodePool),
    "NodeOverlay": ("karpenter.sh/v1alpha1", NodeOverlay),
    "CapacityBuffer": ("autoscaling.x-k8s.io/v1beta1", CapacityBuffer),
    "DisruptionPolicy": ("dovetail.sh/v1alpha1", DisruptionPolicy),
    "NodeRollout": ("dovetail.sh/v1alpha1", NodeRollout),
    "Freeze": ("dovetail.sh/v1alpha1", Freeze),
}
KINDS: Final = {kind.name: kind for kind in (*CLUSTER_KINDS, *DEVICE_KINDS, *BUFFER_KINDS, NODE_OVERLAY)}

Objects = dict[str, list[Json]]


def of(kind: str, spec: Json, **fields: Any) -> Objects:
    return {kind: [{"metadata": meta("largest", namespace="default", generation=1), "spec": spec, **fields}]}


def pool(**spec: Any) -> Objects:
    made = a_sound_pool("largest")
    made["spec"].update(spec)
    return {"NodePool": [made]}


def budgets(**budget: str) -> Objects:
    return pool(disruption={"consolidateAfter": LONGEST, "budgets": [{"nodes": "100%", **budget}] * 50})


def template() -> Objects:
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    return {
        "PodTemplate": [
            {
                "metadata": meta("t", namespace="default", generation=1),
                "template": {"metadata": {}, "spec": {"containers": containers}},
            }
        ]
    }


def buffer(**spec: Any) -> Objects:
    return {**of("CapacityBuffer", {"podTemplateRef": {"name": "t"}, **spec}), **template()}


def volumes() -> Objects:
    topology = {"key": "topology.kubernetes.io/zone", "values": [f"z{n}" for n in range(2000)]}
    found = {
        "metadata": meta("s"),
        "provisioner": "x",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [topology]}] * 500,
    }
    claim = {"metadata": meta("c", namespace="default"), "spec": {"storageClassName": "s"}}
    used = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    return {"StorageClass": [found], "PersistentVolumeClaim": [claim], "Pod": [a_sound_pod("hostile", volumes=used)]}


def devices() -> Objects:
    device = {"attributes": {"a": {"int": INT64}}, "capacity": {"m": {"value": DIGITS}}}
    of_pool = {"name": "p", "generation": INT64, "resourceSliceCount": INT64}
    cel = {"cel": {"expression": "device.attributes['d'].a + 9223372036854775807 > 0"}}
    slices = {
        "metadata": meta("sl"),
        "spec": {
            "driver": "d",
            "nodeName": "busy",
            "pool": of_pool,
            "devices": [{"name": f"g{n}", **device} for n in range(128)],
        },
    }
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": INT64}}
    claim = {"metadata": meta("rc", namespace="default"), "spec": {"devices": {"requests": [request]}}}
    return {
        "ResourceSlice": [slices],
        "DeviceClass": [{"metadata": meta("gpu"), "spec": {"selectors": [cel] * 32}}],
        "ResourceClaim": [claim],
        "Pod": [a_sound_pod("hostile", resourceClaims=[{"name": "r", "resourceClaimName": "rc"}])],
    }


def protections() -> Objects:
    counts = dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), INT32)
    spec = {"selector": {}, "maxUnavailable": INT32}
    made = [{"metadata": meta(f"b{n}", namespace="default"), "spec": spec, "status": counts} for n in range(500)]
    return {"PodDisruptionBudget": made}


def the_largest_claim() -> Objects:
    _, claim = a_sound_node("largest", "default")
    claim["metadata"]["annotations"] = {
        "karpenter.sh/reboot-termination-grace-period": DIGITS,
        "karpenter.sh/nodeclaim-termination-timestamp": "9999-12-31T23:59:59Z",
    }
    claim["spec"] |= {"expireAfter": LONGEST, "terminationGracePeriod": LONGEST}
    claim["status"] |= {"capacity": {"cpu": DIGITS}, "allocatable": {"cpu": DIGITS}}
    return {"NodeClaim": [claim]}


def steps(soak: str) -> list[Json]:
    first = [{"name": f"a{number}", "to": "9999", "soak": soak} for number in range(19)]
    return [*first, {"name": "z", "to": "100%", "soak": soak}]


OF_NO_POOL: Final = {"nodePoolSelector": {"matchLabels": {"no": "where"}}}
DAYS: Final = {"dates": ["2000-01-01/9999-12-31"] * 50}

LARGEST: Final[dict[str, Objects]] = {
    "replicas": pool(replicas=INT64),
    "replicas within a limit": pool(replicas=INT64, limits={"nodes": DIGITS}),
    "limits": pool(limits={"cpu": DIGITS, "memory": "9223372036854775807E", "nodes": DIGITS}),
    "weight": pool(weight=100),
    "budgets": budgets(),
    "budgets with windows": budgets(schedule="* * * * *", duration=f"{DIGITS}h"),
    "windows": of("DisruptionPolicy", {"timeZone": "Europe/Berlin", "allow": [DAYS] * 50}),
    "closed windows": of("DisruptionPolicy", {**OF_NO_POOL, "deny": [DAYS] * 50}),
    "a zone of 64 letters": of("DisruptionPolicy", {**OF_NO_POOL, "timeZone": "A" * 64, "deny": [{}]}),
    "rates": of("DisruptionPolicy", {"rates": [{"nodes": "999999999", "per": "168h"}] * 50}),
    "a policy's durations": of(
        "DisruptionPolicy",
        {
            **OF_NO_POOL,
            "expiry": {"spread": LONGEST, "hardAfter": LONGEST},
            "health": {"maxNotReady": "999999999", "stableFor": LONGEST},
            "breaker": {"failures": 20, "within": LONGEST, "first": LONGEST, "longest": LONGEST},
            "drain": {"hooks": {"timeout": LONGEST}, "escalation": [{"after": LONGEST, "do": "Force"}] * 50},
        },
    ),
    "a roll-out": {**of("NodeRollout", {"nodePool": "largest", "steps": steps(LONGEST)}), **pool()},
    "a roll-out of nobody": of("NodeRollout", {"nodePool": "n" * 253, "steps": steps("0s")}),
    "a freeze at the end": of("Freeze", {"from": "9999-12-31T23:59:58Z", "until": "9999-12-31T23:59:59Z"}),
    "a freeze at the beginning": of("Freeze", {"from": "0001-01-01T00:00:00Z", "until": "0001-01-01T00:00:01Z"}),
    "a price": of(
        "NodeOverlay",
        {"requirements": [], "price": DIGITS, "weight": 10000, "capacity": {"example.com/x": DIGITS}},
    ),
    "a price's adjustment": of("NodeOverlay", {"requirements": [], "priceAdjustment": f"+{DIGITS}%"}),
    "a buffer's replicas": buffer(replicas=INT32),
    "a buffer's limits": buffer(limits={"cpu": DIGITS}),
    "volumes": volumes(),
    "drivers of a node": {
        "CSINode": [
            {
                "metadata": meta("busy"),
                "spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": INT32}}] * 1000},
            }
        ]
    },
    "disruption budgets": protections(),
    "a priority": {"Pod": [a_sound_pod("hostile", priority=INT32)]},
    "a grace": {"Pod": [a_sound_pod("hostile", terminationGracePeriodSeconds=INT64, nodeName="busy")]},
    "devices": devices(),
    "a NodeClaim": the_largest_claim(),
}


def snapshot_of(extra: Objects) -> Snapshot:
    (empty, of_empty), (busy, of_busy) = (
        a_sound_node("empty", "default", pods="0"),
        a_sound_node("busy", "default", pods="0"),
    )
    sound: Objects = {
        "NodePool": [a_sound_pool("default")],
        "Node": [empty, busy],
        "NodeClaim": [of_empty, of_busy],
        "Pod": [a_sound_pod("good")],
    }
    cache = Cache(tuple(KINDS.values()), report=lambda _unreadable: None)
    for kind in {*sound, *extra}:
        cache.replace(kind, [*sound.get(kind, []), *extra.get(kind, [])], 1)
    found = cache.snapshot(NOW)
    catalogues = {name: Catalogue(types=TYPES) for name in found.pools}
    return replace(found, catalogues=catalogues, supported_node_classes=frozenset({(GROUP, "EC2NodeClass")}))


def admitted() -> Iterable[tuple[str, str, Json]]:
    for name, objects in LARGEST.items():
        for kind in DEFINED.keys() & objects.keys():
            yield name, kind, objects[kind][0]


@pytest.mark.parametrize(("name", "kind", "body"), list(admitted()))
def test_the_definition_admits_it(name: str, kind: str, body: Json) -> None:
    version, model = DEFINED[kind]
    parse(model, {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": body["spec"]})


def provisions(snapshot: Snapshot) -> None:
    plan, placement = plan_provisioning(snapshot, PlacementSettings(ignore_dra=False), never)
    on_nodes = {pod.name for pods in placement.existing.values() for pod in pods}
    assert "good" in {pod.name for node in plan.proposed for pod in node.pods} | on_nodes


def disrupts(snapshot: Snapshot) -> None:
    choice = decide(snapshot, DisruptionSettings(), never).choice
    assert isinstance(choice, DisruptionPlan), choice
    assert "empty" in {target.node for command in choice.commands for target in command.targets}


def is_measured(snapshot: Snapshot) -> None:
    assert b'node_name="empty"' in b"".join(ClusterLines().blocks(snapshot))


def counts(snapshot: Snapshot) -> None:
    """What is made one by one is bounded in each look."""
    assert all(len(each.numbers) <= MOST_LACKING for each in shortfalls(snapshot))
    assert len(virtual_pods(snapshot).pending) <= MOST_LACKING


@pytest.mark.parametrize("look", [provisions, disrupts, is_measured, counts])
@pytest.mark.parametrize("name", LARGEST)
def test_nobody_else_is_stopped(name: str, look: Callable[[Snapshot], None]) -> None:
    look(snapshot_of(LARGEST[name]))


def test_a_static_pool_of_any_size_is_filled_a_thousand_at_a_time() -> None:
    """NPL-42: the same thousand again until they are there."""
    found = [shortfalls(snapshot_of(LARGEST[name])) for name in ("replicas", "replicas within a limit")]

    assert [[each.numbers for each in one] for one in found] == [[tuple(range(MOST_LACKING))]] * 2
