"""The objects in the cluster at this moment, in the form that the recordings have.

Used at the end of every phase, and in between while something is waited for. Times, versions and UIDs are left out, as
they were there; so is what the test bed itself put on its Nodes.
"""

from dataclasses import dataclass
from typing import Final

from acceptance.traffic.lane import Lane
from acceptance.traffic.paths import EVENTS, NODE_CLAIMS, NODE_CLASSES, NODE_POOLS, NODES, PODS
from dovetail.model.values.json import Json

_METADATA: Final = ("annotations", "deletionGracePeriodSeconds", "finalizers", "generation", "labels", "name")
# The test bed's own marks, and labels that a node has beside those that the recording's registrar knew.
_TESTBED_LABELS: Final = (
    "dovetail.test/",
    "beta.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
    "topology.ebs.csi.aws.com/",
)
_TESTBED_ANNOTATIONS: Final = ("node.alpha.kubernetes.io/", "kwok.x-k8s.io/", "volumes.kubernetes.io/")
_CONDITIONS: Final = ("type", "status", "reason", "message", "observedGeneration")
# The product's own; the scheduler and the controllers of the cluster announce things too.
_COMPONENTS: Final = ("dovetail", "karpenter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All objects of interest, as the API server has them."""

    node_classes: list[Json]
    node_pools: list[Json]
    node_claims: list[Json]
    nodes: list[Json]
    pods: list[Json]
    events: list[Json]

    def managed_nodes(self) -> list[Json]:
        """All nodes here belong to instances."""
        return [each for each in self.nodes if (each["spec"].get("providerID") or "").startswith("aws:///")]


async def look(lane: Lane, *, with_events: bool = False) -> Look:
    """List everything; Events only where they are asked for, since there are many and nothing waits for them."""

    async def listed(path: str) -> list[Json]:
        answer = await lane.api.get(path)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {answer.text[:200]}")
        return list(answer.body.get("items") or [])

    return Look(
        node_classes=await listed(NODE_CLASSES),
        node_pools=await listed(NODE_POOLS),
        node_claims=await listed(NODE_CLAIMS),
        nodes=await listed(NODES),
        pods=await listed(PODS),
        events=await listed(EVENTS) if with_events else [],
    )


def is_true(body: Json, condition: str) -> bool:
    """Whether a condition holds."""
    return status_of(body, condition) == "True"


def status_of(body: Json, condition: str) -> str | None:
    """A condition's status."""
    conditions = (body.get("status") or {}).get("conditions") or []
    return next((str(each["status"]) for each in conditions if each["type"] == condition), None)


def as_recorded(seen: Look, instances: list[Json], published: set[str]) -> Json:
    """The snapshot of a phase; `published` are the Events of earlier phases, by UID."""
    return {
        "nodeClasses": [_object(each) for each in seen.node_classes],
        "nodePools": [_pool(each) for each in seen.node_pools],
        "nodeClaims": [_object(each) for each in sorted(seen.node_claims, key=_born)],
        "nodes": [_node(each) for each in seen.managed_nodes()],
        "pods": [_pod(each) for each in seen.pods],
        "instances": [_instance(each) for each in instances],
        "events": _events(seen, published),
    }


def _born(body: Json) -> tuple[str, str]:
    return body["metadata"]["creationTimestamp"], body["metadata"]["name"]


def _metadata(body: Json) -> Json:
    metadata = {key: body["metadata"][key] for key in _METADATA if body["metadata"].get(key)}
    if body["metadata"].get("deletionTimestamp"):
        metadata["deletionTimestamp"] = "<time>"
    return metadata


def _conditions(status: Json) -> list[Json]:
    found = [
        {key: each[key] for key in _CONDITIONS if each.get(key) not in (None, "")}
        for each in status.get("conditions") or []
    ]
    return sorted(found, key=lambda each: str(each["type"]))


def _object(body: Json) -> Json:
    status = dict(body.get("status") or {})
    if "conditions" in status:
        status["conditions"] = _conditions(status)
    status.pop("lastPodEventTime", None)
    metadata = _metadata(body)
    if "nodeClassRef" in (body.get("spec") or {}):  # a NodeClaim: its items in a list name no kind
        metadata.pop("generation", None)
    return {"metadata": metadata, "spec": body.get("spec") or {}, "status": status}


def _pool(body: Json) -> Json:
    status = body.get("status") or {}
    return {
        "name": body["metadata"]["name"],
        "annotations": body["metadata"].get("annotations") or {},
        "status": {**status, **({"conditions": _conditions(status)} if "conditions" in status else {})},
    }


def _node(body: Json) -> Json:
    metadata = _metadata(body)
    metadata.pop("generation", None)
    metadata["labels"] = _without(metadata.get("labels") or {}, _TESTBED_LABELS)
    metadata["annotations"] = _without(metadata.get("annotations") or {}, _TESTBED_ANNOTATIONS)
    spec = {key: body["spec"][key] for key in ("providerID", "taints", "unschedulable") if body["spec"].get(key)}
    if "taints" in spec:
        spec["taints"] = [
            {key: value for key, value in each.items() if key != "timeAdded"}
            for each in spec["taints"]
            if not each["key"].startswith("node.kubernetes.io/")
        ]
        if not spec["taints"]:
            del spec["taints"]
    return {"metadata": metadata, "spec": spec, "status": {"ready": status_of(body, "Ready") or "Unknown"}}


def _without(found: Json, prefixes: tuple[str, ...]) -> Json:
    return {key: value for key, value in found.items() if not key.startswith(prefixes)}


def _pod(body: Json) -> Json:
    return {
        "name": body["metadata"]["name"],
        "node": body["spec"].get("nodeName"),
        "phase": (body.get("status") or {}).get("phase"),
        "deleting": "deletionTimestamp" in body["metadata"],
    }


def _instance(shown: Json) -> Json:
    kept = {key: shown[key] for key in ("id", "type", "zone", "subnet", "image", "state", "spot")}
    return {**kept, "tags": shown["tags"]}


def _events(seen: Look, published: set[str]) -> list[Json]:
    """The Events that are new, or repeated, since the phases before."""
    new = []
    for each in seen.events:
        source = str((each.get("source") or {}).get("component") or each.get("reportingComponent") or "")
        mark = str(each["metadata"]["uid"])
        if mark in published or not source.startswith(_COMPONENTS):
            continue
        published.add(mark)
        new.append(
            {
                "kind": each["involvedObject"].get("kind", ""),
                "name": each["involvedObject"].get("name", ""),
                "type": each.get("type", ""),
                "reason": each.get("reason", ""),
                "message": each.get("message", ""),
            }
        )
    return new
