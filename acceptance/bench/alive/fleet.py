"""The objects of a large cluster in which nothing is to be done: nodes of kwok, each full of pods."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from dovetail.adapters.kubernetes_json.parsing.hashes import template_hash
from dovetail.adapters.kwok import names as own
from dovetail.lifecycle.node_checks import CONSISTENT
from dovetail.model import names
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time

NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/pods"
CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
CLASSES: Final = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
NAMESPACES: Final = "/api/v1/namespaces"
TYPE: Final = "c-8x-amd64-linux"
PODS_OF_A_NODE: Final = 20
SHARE: Final = "390m"  # twenty of them leave no room for a twenty-first
_AMOUNTS: Final = {"cpu": "8", "memory": "16Gi", "pods": "128", "ephemeral-storage": "20Gi"}
_FREE: Final = {**_AMOUNTS, "cpu": "7900m", "memory": "16374Mi"}
_KUBELET: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
_REACHED: Final = (names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """So many nodes, made at that moment."""

    nodes: int
    made: float

    def objects(self) -> Iterator[tuple[str, Json]]:
        """Each with its collection."""
        moment = format_time(self.made)
        for name in ("default", "kube-system", "kube-node-lease"):
            yield NAMESPACES, self._object("Namespace", "v1", name)
        ready = [_condition("Ready", moment)]
        yield CLASSES, {**self._object(own.KIND, f"{own.GROUP}/v1alpha1", "default"), "status": {"conditions": ready}}
        yield POOLS, self._pool()
        for number in range(self.nodes):
            yield NODES, self.beaten(number, self.made)
            yield CLAIMS, self._claim(number)
            for index in range(PODS_OF_A_NODE):
                name = f"web-{number:05}-{index:02}"
                yield PODS, self._pod(name, cpu=SHARE, node=_node(number), runs=True, time=self.made)

    def beaten(self, number: int, time: float) -> Json:
        """A Node as its kubelet writes it at that moment."""
        moment, beat = format_time(self.made), format_time(time)
        conditions = [
            {**_condition(kind, moment, "True" if kind == "Ready" else "False"), "lastHeartbeatTime": beat}
            for kind in _KUBELET
        ]
        body = self._object("Node", "v1", _node(number))
        body["metadata"] |= {
            "labels": self._labels(number),
            "annotations": {own.PLAYED: own.FAKE, own.CLAIM: _claim(number)},
            "finalizers": [names.TERMINATION_FINALIZER],
            "ownerReferences": [_owner("karpenter.sh/v1", "NodeClaim", _claim(number))],
        }
        status = {"capacity": _AMOUNTS, "allocatable": _FREE, "conditions": conditions}
        return {**body, "spec": {"providerID": own.SCHEME + _node(number)}, "status": status}

    def passing(self, number: int, *, bound: bool, time: float, runs: bool = False, leaves: bool = False) -> Json:
        """A small pod that comes and goes."""
        node = _node(number * 7 % self.nodes) if bound else ""
        body = self._pod(f"job-{number:06}", cpu="20m", node=node, runs=runs, time=time)
        if leaves:
            body["metadata"]["deletionTimestamp"] = format_time(time)
        return body

    def key_of_passing(self, number: int) -> str:
        """By which it is removed."""
        return f"default/job-{number:06}"

    def _pool(self) -> Json:
        body = self._object("NodePool", "karpenter.sh/v1", "web")
        body["metadata"]["annotations"] = _hashes()
        return {**body, "spec": _pool_spec()}

    def _claim(self, number: int) -> Json:
        moment = format_time(self.made)
        body = self._object("NodeClaim", "karpenter.sh/v1", _claim(number))
        body["metadata"] |= {
            "labels": self._labels(number),
            "annotations": _hashes(),
            "finalizers": [names.TERMINATION_FINALIZER],
            "ownerReferences": [_owner("karpenter.sh/v1", "NodePool", "web")],
        }
        kinds = (*_REACHED, CONSISTENT, names.CONSOLIDATABLE, "Ready")
        return {
            **body,
            "spec": {"nodeClassRef": _reference(), "requirements": [], "expireAfter": "720h"},
            "status": {
                "providerID": own.SCHEME + _node(number),
                "nodeName": _node(number),
                "capacity": _AMOUNTS,
                "allocatable": _FREE,
                "lastPodEventTime": moment,
                "conditions": [_condition(kind, moment) for kind in kinds],
            },
        }

    def _labels(self, number: int) -> dict[str, str]:
        return {
            names.NODE_POOL: "web",
            names.INSTANCE_TYPE: TYPE,
            names.ZONE: f"test-zone-{'abcd'[number % 4]}",
            names.CAPACITY_TYPE: "on-demand",
            names.ARCH: "amd64",
            names.OS: "linux",
            names.REGISTERED: "true",
            names.INITIALIZED: "true",
            names.HOSTNAME: _node(number),
            names.CLAIM_UID_TAG: f"uid-{_claim(number)}",
            own.PLAYED: own.FAKE,
            f"{own.GROUP}/{own.KIND.lower()}": "default",
        }

    def _pod(self, name: str, *, cpu: str, node: str, runs: bool, time: float) -> Json:
        moment = format_time(time)
        body = self._object("Pod", "v1", name)
        app = name.rpartition("-")[0]
        body["metadata"] |= {
            "namespace": "default",
            "labels": {"app": app},
            "ownerReferences": [{**_owner("apps/v1", "ReplicaSet", app), "controller": True}],
        }
        spec: dict[str, Any] = {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}}}]
        }
        conditions = [_condition("Ready", moment)] if runs else []
        status = {"phase": "Running" if runs else "Pending", "conditions": conditions}
        return {**body, "spec": {**spec, "nodeName": node} if node else spec, "status": status}

    def _object(self, kind: str, version: str, name: str) -> dict[str, Any]:
        meta: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "creationTimestamp": format_time(self.made)}
        return {"apiVersion": version, "kind": kind, "metadata": {**meta, "generation": 1}}


def _pool_spec() -> Json:
    terms = {
        names.INSTANCE_TYPE: [TYPE],
        names.CAPACITY_TYPE: ["on-demand"],
        names.ARCH: ["amd64"],
        names.OS: ["linux"],
    }
    template = {
        "nodeClassRef": _reference(),
        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in terms.items()],
    }
    disruption = {"consolidateAfter": "30s", "consolidationPolicy": "WhenEmptyOrUnderutilized"}
    return {"template": {"spec": template}, "disruption": disruption}


@cache
def _hashes() -> dict[str, str]:
    """As upkeep writes them: no claim has drifted."""
    return {
        names.NODE_POOL_HASH: template_hash(_pool_spec()["template"]),
        names.NODE_POOL_HASH_VERSION: NODE_POOL_HASH_ALGORITHM,
    }


def _node(number: int) -> str:
    return f"kwok-{number:05}"


def _claim(number: int) -> str:
    return f"web-{number:05}"


def _reference() -> dict[str, str]:
    return {"group": own.GROUP, "kind": own.KIND, "name": "default"}


def _owner(version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}"}


def _condition(kind: str, moment: str, status: str = "True") -> dict[str, Any]:
    said = {"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": moment}
    return {**said, "observedGeneration": 1}
