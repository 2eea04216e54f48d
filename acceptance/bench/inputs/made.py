"""Benchmark inputs that are made rather than read.

Each maker returns the raw JSON that the API would have given, so that parsing is part of what is measured. Random
numbers come from a seeded generator: the same input on every machine.
"""

import random
from collections.abc import Callable

from dovetail.model.values.json import Json

_CREATED = "2026-01-01T00:00:00Z"
_CPU = ("100m", "250m", "500m", "1000m", "1500m")
_MEMORY = ("100Mi", "256Mi", "512Mi", "1024Mi", "2048Mi", "4096Mi")
_LETTERS = "abcdefg"


def a_pool(name: str = "default") -> Json:
    """One NodePool without requirements, with limits that are never reached."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "uid": f"np-{name}"},
        "spec": {
            "template": {
                "metadata": {"labels": {}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"},
                    "requirements": [],
                },
            },
            "limits": {"cpu": "10000000", "memory": "10000000Gi"},
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_pod(number: int, cpu: str, memory: str, labels: dict[str, str], spec: Json) -> Json:
    """One pending pod, as unschedulable as the scheduler says."""
    return {
        "metadata": {
            "name": f"p{number:05d}",
            "namespace": "default",
            "uid": f"{(number * 2654435761) % 2**32:08x}-{number}",
            "creationTimestamp": _CREATED,
            "labels": labels,
        },
        "spec": {
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
            **spec,
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


def _spread(key: str, label: str, value: str, when: str = "DoNotSchedule") -> Json:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {label: value}},
    }


def _term(key: str, label: str, value: str) -> Json:
    return {"labelSelector": {"matchLabels": {label: value}}, "topologyKey": key}


def _diverse_kind(kind: int, random_: random.Random) -> tuple[dict[str, str], Json]:
    """The five kinds of upstream's mix (PLB-5)."""
    zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
    letter = random_.choice(_LETTERS)
    if kind == 0:
        return {"my-label": letter}, {}
    if kind in (1, 2):
        constraint = _spread(zone if kind == 1 else host, "my-label", random_.choice(_LETTERS))
        return {"my-label": letter}, {"topologySpreadConstraints": [constraint]}
    if kind == 3:
        term = _term(zone, "my-affininity", letter)
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"my-affininity": letter}, {"affinity": {"podAffinity": required}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(host, "app", "nginx")]}
    return {"app": "nginx"}, {"affinity": {"podAntiAffinity": required}}


def diverse(count: int, seed: int = 1) -> Json:
    """PLB-5: a fifth each of five kinds."""
    random_ = random.Random(seed)
    pods = []
    for number in range(count):
        labels, spec = _diverse_kind(number * 5 // count, random_)
        pods.append(a_pod(number, random_.choice(_CPU), random_.choice(_MEMORY), labels, spec))
    return {"nodePools": [a_pool()], "pods": pods}


def distinct_sizes(count: int, seed: int = 2) -> Json:
    """Every pod asks for another amount; half of them plain, the rest the diverse mix without anti-affinity."""
    random_ = random.Random(seed)
    pods = []
    for number in range(count):
        labels, spec = _diverse_kind(random_.choice((0, 0, 0, 1, 2, 3)), random_)
        cpu, memory = f"{100 + number * 1900 // count}m", f"{100 + random_.randrange(4000 * 1024)}Ki"
        pods.append(a_pod(number, cpu, memory, labels, spec))
    return {"nodePools": [a_pool()], "pods": pods}


def deployments(count: int, workloads: int = 200, seed: int = 3) -> Json:
    """Pods of many deployments, each with a size and rules of its own, soft spreads among them (Respect)."""
    random_ = random.Random(seed)
    shapes = []
    for number in range(workloads):
        app = f"app-{number:03d}"
        spec: Json = {
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]
        }
        constraints = []
        if number % 2:
            constraints.append(
                _spread("topology.kubernetes.io/zone", "app", app, random_.choice(("DoNotSchedule", "ScheduleAnyway")))
            )
        if number % 3 == 0:
            constraints.append(_spread("kubernetes.io/hostname", "app", app, "ScheduleAnyway"))
        if constraints:
            spec["topologySpreadConstraints"] = constraints
        if number % 10 == 4:
            spec["nodeSelector"] = {"topology.kubernetes.io/zone": f"test-zone-{1 + number % 3}"}
        if number % 10 == 7:
            weighted = {"weight": 10, "podAffinityTerm": _term("kubernetes.io/hostname", "app", app)}
            spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
        labels = {"app": app, "pod-template-hash": f"{number:08x}"}
        shapes.append((labels, spec, f"{random_.randrange(100, 3000, 50)}m", f"{random_.randrange(128, 8192, 64)}Mi"))
    pods = []
    for number in range(count):
        labels, spec, cpu, memory = shapes[number % workloads]
        pods.append(a_pod(number, cpu, memory, labels, spec))
    return {"nodePools": [a_pool()], "pods": pods, "preferencePolicy": "Respect"}


_ROOM = {"cpu": "7900m", "memory": "16374Mi", "pods": "80"}
_SIZE = {"cpu": "8", "memory": "16Gi", "pods": "80"}


def _node_labels(number: int) -> dict[str, str]:
    return {
        "karpenter.sh/nodepool": "default",
        "node.kubernetes.io/instance-type": "fake-it-7",
        "topology.kubernetes.io/zone": f"test-zone-{1 + number % 3}",
        "karpenter.sh/capacity-type": "on-demand",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }


def _standing_claim(name: str, labels: dict[str, str]) -> Json:
    return {
        "metadata": {"name": f"nc-{name}", "uid": f"nc-{name}", "labels": labels, "creationTimestamp": _CREATED},
        "spec": {"nodeClassRef": {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"}},
        "status": {
            "providerID": f"p://{name}",
            "capacity": _SIZE,
            "allocatable": _ROOM,
            "conditions": [{"type": "Initialized", "status": "True", "lastTransitionTime": _CREATED}],
        },
    }


def _standing_node(name: str, labels: dict[str, str]) -> Json:
    joined = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    return {
        "metadata": {
            "name": name,
            "uid": f"n-{name}",
            "creationTimestamp": _CREATED,
            "labels": {**labels, **joined, "kubernetes.io/hostname": name},
        },
        "spec": {"providerID": f"p://{name}"},
        "status": {"capacity": _SIZE, "allocatable": _ROOM},
    }


def _bound_pod(number: int, node: str, random_: random.Random) -> Json:
    labels, spec = _diverse_kind(random_.choice((0, 0, 1, 2)), random_)
    pod = a_pod(number, random_.choice(_CPU), random_.choice(_MEMORY[:4]), labels, {**spec, "nodeName": node})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    pod["status"] = {"phase": "Running", "startTime": _CREATED}
    return pod


def standing_nodes(nodes: int, pending: int, bound_per_node: int = 5, seed: int = 4) -> Json:
    """A cluster that stands: nodes with bound pods, and pods of the diverse kinds that wait."""
    random_ = random.Random(seed)
    claims, objects, pods = [], [], []
    for number in range(nodes):
        name, labels = f"n{number:05d}", _node_labels(number)
        claims.append(_standing_claim(name, labels))
        objects.append(_standing_node(name, labels))
        first = 100_000 + number * bound_per_node
        pods += [_bound_pod(first + slot, name, random_) for slot in range(bound_per_node)]
    pods += diverse(pending, seed + 1)["pods"] if pending else []
    return {"nodePools": [a_pool()], "pods": pods, "nodes": objects, "nodeClaims": claims}


# Name, how many pods, and how the input is made. Upstream's minimum in seconds where it was recorded (PLB-8).
GENERATED: tuple[tuple[str, Callable[[], Json], float | None], ...] = (
    ("generated_diverse_20000", lambda: diverse(20_000), 137.3),
    ("generated_distinct_20000", lambda: distinct_sizes(20_000), None),
    ("generated_deployments_20000", lambda: deployments(20_000), None),
    ("generated_pending_200_on_2000", lambda: standing_nodes(2_000, 200), None),
)
GROWTH = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
