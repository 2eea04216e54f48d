"""Deployments and ReplicaSets keep as many pods as their specs ask for.

The results are those of the real controllers, the course is not: a changed template replaces all pods at once, without
rolling. Objects carry the owner references, hashes and statuses that they have on a real cluster. Pods that are being
deleted do not count; otherwise they would be replaced only once they are gone.
"""

import hashlib
import secrets
from typing import Any

import orjson

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.play.tick import Tick, controller_of, is_deleting, is_over, is_true
from dovetail.model.json import Json
from dovetail.model.names import POD_DELETION_COST
from dovetail.model.time import parse_time

DEPLOYMENTS = "deployment-controller"
REPLICA_SETS = "replicaset-controller"

# A tick is one transaction, and no other process writes while it lasts: the rest is left for the next one.
MOST_CREATED = 200

_HASH = "pod-template-hash"


def keep_deployments(tick: Tick) -> None:
    """One ReplicaSet per template; only the current one has replicas."""
    for deployment in tick.mirror.every("Deployment"):
        if not is_deleting(deployment):
            _keep_deployment(tick, deployment)


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


def _keep_deployment(tick: Tick, deployment: Json) -> None:
    spec, cluster = deployment["spec"], tick.cluster(DEPLOYMENTS)
    mine = [r for r in tick.mirror.every("ReplicaSet") if controller_of(r) == deployment["metadata"]["uid"]]
    current = [r for r in mine if _unhashed(r["spec"]["template"]) == _unhashed(spec["template"])]
    if not current:
        digest = hashlib.sha256(orjson.dumps(spec["template"], option=orjson.OPT_SORT_KEYS)).hexdigest()[:10]
        cluster.create(_replica_set_of(deployment, digest))
    for replica_set in mine:
        wanted = spec.get("replicas", 1) if replica_set in current else 0
        if replica_set["spec"].get("replicas") != wanted:
            cluster.patch("ReplicaSet", objects.key_of(replica_set), {"spec": {"replicas": wanted}})
    status = _sum_of(mine, deployment["metadata"].get("generation", 1))
    cluster_status(tick, DEPLOYMENTS, deployment, status)


def _unhashed(template: Json) -> Json:
    """A template without the label that its ReplicaSet added: how the real controller recognises its own, whatever
    the algorithm of the hash was."""
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != _HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def cluster_status(tick: Tick, actor: str, body: Json, status: Json) -> None:
    """Write a status where it differs."""
    if {**(body.get("status") or {}), **status} != (body.get("status") or {}):
        tick.cluster(actor).patch(body["kind"], objects.key_of(body), {"status": status}, "status")


def _replica_set_of(deployment: Json, digest: str) -> Json:
    spec, metadata = deployment["spec"], deployment["metadata"]
    template = spec["template"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), _HASH: digest}
    selector = spec.get("selector") or {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [reference_to(deployment)],
        },
        "spec": {
            "replicas": spec.get("replicas", 1),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), _HASH: digest}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


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
        "availableReplicas": ready,
        "observedGeneration": replica_set["metadata"].get("generation", 1),
    }
    cluster_status(tick, REPLICA_SETS, replica_set, status)


def _worth(pod: Json) -> tuple[bool, bool, int, float, str]:
    """Which pods go first: unbound, then not ready, then the cheapest to delete, then the youngest."""
    cost = (pod["metadata"].get("annotations") or {}).get(POD_DELETION_COST, "0")
    return (
        bool(pod["spec"].get("nodeName")),
        is_true(pod, "Ready"),
        int(cost) if cost.lstrip("-").isdigit() else 0,
        -parse_time(pod["metadata"]["creationTimestamp"]),
        pod["metadata"]["name"],
    )


def _sum_of(replica_sets: list[Json], generation: int) -> Json:
    names = ("replicas", "readyReplicas", "availableReplicas")
    counts = {name: sum((r.get("status") or {}).get(name, 0) for r in replica_sets) for name in names}
    return {**counts, "observedGeneration": generation}
