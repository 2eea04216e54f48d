"""ReplicaSets keep as many pods as their specs ask for.

Objects carry the owner references and statuses that they have on a real cluster. Pods that are being deleted do not
count; otherwise they would be replaced only once they are gone.
"""

import secrets
from typing import Any

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.play.tick import Tick, condition_of, controller_of, is_deleting, is_over, is_true
from dovetail.model.names import POD_DELETION_COST
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time

REPLICA_SETS = "replicaset-controller"

# A tick is one transaction, and no other process writes while it lasts: the rest is left for the next one.
MOST_CREATED = 200


def keep_replica_sets(tick: Tick) -> None:
    """As many pods as each ReplicaSet asks for."""
    pods = pods_by_controller(tick)
    for replica_set in tick.mirror.every("ReplicaSet"):
        if not is_deleting(replica_set):
            _keep_replica_set(tick, replica_set, pods.get(replica_set["metadata"]["uid"], []))


def pods_by_controller(tick: Tick) -> dict[str, list[Json]]:
    """The pods that count, by the UID of their controller."""
    found: dict[str, list[Json]] = {}
    for pod in tick.mirror.every("Pod"):
        if not is_deleting(pod) and not is_over(pod):
            found.setdefault(controller_of(pod), []).append(pod)
    return found


def pod_from(template: Json, owner: Json) -> Json:
    """A pod of a template, owned by its controller."""
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": f"{owner['metadata']['name']}-{secrets.token_hex(5)}",
            "namespace": owner["metadata"]["namespace"],
            "ownerReferences": [reference_to(owner)],
        },
        "spec": template["spec"],
    }


def reference_to(owner: Json) -> dict[str, Any]:
    """The reference by which a controller owns what it makes."""
    return {
        "apiVersion": owner.get("apiVersion", "apps/v1"),
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def cluster_status(tick: Tick, actor: str, body: Json, status: Json) -> None:
    """Write a status where it differs."""
    if {**(body.get("status") or {}), **status} != (body.get("status") or {}):
        tick.cluster(actor).patch(body["kind"], objects.key_of(body), {"status": status}, "status")


def _keep_replica_set(tick: Tick, replica_set: Json, pods: list[Json]) -> None:
    wanted, cluster = replica_set["spec"].get("replicas", 1), tick.cluster(REPLICA_SETS)
    for _ in range(min(wanted - len(pods), MOST_CREATED)):
        cluster.create(pod_from(replica_set["spec"]["template"], replica_set))
    surplus = max(0, len(pods) - wanted)
    for pod in sorted(pods, key=_worth)[:surplus] if surplus else []:
        cluster.delete("Pod", objects.key_of(pod), pod["metadata"]["uid"])
    ready = sum(is_true(pod, "Ready") for pod in pods)
    status = {
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": sum(_is_available(tick, pod, replica_set) for pod in pods),
        "observedGeneration": replica_set["metadata"].get("generation", 1),
    }
    cluster_status(tick, REPLICA_SETS, replica_set, status)


def _is_available(tick: Tick, pod: Json, replica_set: Json) -> bool:
    """Whether it has been ready for long enough."""
    since, seconds = condition_of(pod, "Ready"), replica_set["spec"].get("minReadySeconds", 0)
    if since is None or since["status"] != "True":
        return False
    return not seconds or tick.reached(parse_time(since["lastTransitionTime"]) + seconds)


def _worth(pod: Json) -> tuple[bool, bool, int, float, str]:
    """The order in which pods are deleted: unbound, then not ready, then the cheapest to delete, then the youngest."""
    cost = (pod["metadata"].get("annotations") or {}).get(POD_DELETION_COST, "0")
    return (
        bool(pod["spec"].get("nodeName")),
        is_true(pod, "Ready"),
        int(cost) if cost.lstrip("-").isdigit() else 0,
        -parse_time(pod["metadata"]["creationTimestamp"]),
        pod["metadata"]["name"],
    )
