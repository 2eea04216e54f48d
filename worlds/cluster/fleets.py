"""Several pools side by side, each with workloads of its own: the ground on which disruption is watched."""

from collections.abc import Iterable
from typing import Any

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.plane import AuditEntry
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, node_pool
from worlds.cluster.timeline import has_taint, has_true


def fleet_pool(name: str, colour: str = "blue", types: tuple[str, ...] = ("m5.xlarge",), **changes: Any) -> Json:
    """A pool of that name. `disruption` and `template` hold changes to those parts; another colour drifts its nodes."""
    pool = node_pool(colour=colour, consolidate_after="Never")
    pool["metadata"]["name"] = name
    pool["metadata"]["annotations"] = changes.pop("annotations", {})
    pool["spec"]["disruption"] |= changes.pop("disruption", {})
    pool["spec"]["template"]["spec"] |= changes.pop("template", {})
    for requirement in pool["spec"]["template"]["spec"]["requirements"]:
        if requirement["key"] == names.INSTANCE_TYPE:
            requirement["values"] = list(types)
    if changes:
        raise TypeError(f"a pool knows nothing of {sorted(changes)}")
    return pool


def workload(name: str, pool: str, pods: int, cpu: str = "3", annotations: dict[str, str] | None = None) -> Json:
    """Pods that run only on nodes of that pool, if one is named; pods of three cpus each have a node to themselves."""
    body = deployment(pods, cpu)
    labels = {"app": name}
    body["metadata"]["name"] = name
    body["spec"]["selector"]["matchLabels"] = labels
    body["spec"]["template"]["metadata"] = {"labels": labels, "annotations": annotations or {}}
    if pool:
        body["spec"]["template"]["spec"]["nodeSelector"] = {names.NODE_POOL: pool}
    return body


async def pool_claims(ground: Ground, pool: str) -> list[Json]:
    """The claims of a pool."""
    return [c for c in await ground.claims() if (c["metadata"].get("labels") or {}).get(names.NODE_POOL) == pool]


def owners_in(entries: Iterable[AuditEntry]) -> dict[str, str]:
    """Claims, by the disruption that marked them last."""
    found = {}
    for entry in entries:
        owner = ((entry.request or {}).get("metadata", {}).get("annotations") or {}).get(names.OWNER)
        if entry.resource == "nodeclaims" and entry.verb == "patch" and entry.code == 200 and owner:
            found[entry.name] = str(owner)
    return found


def most_at_once(entries: Iterable[AuditEntry], nodes: set[str], unready: set[str]) -> int:
    """At each taint: how many of these nodes were tainted, leaving or not ready, the tainted one included. The most.

    Only marks are judged: a node that leaves for another reason may exceed a budget. A node no longer counts once its
    instance is terminating (DIS-50), or its last finalizer is gone.
    """
    disrupted, ended, most = set(unready), set[str](), 0
    for entry in sorted(entries, key=lambda e: e.time):
        if entry.resource == "nodeclaims" and has_true(entry.response, names.INSTANCE_TERMINATING):
            ended.add(str((entry.response or {})["status"].get("nodeName")))
            disrupted -= ended
        counts = entry.resource == "nodes" and entry.name in nodes - ended
        if not counts or not entry.is_write or entry.code >= 300:
            continue
        metadata = (entry.response or {}).get("metadata") or {}
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            disrupted.discard(entry.name)
        elif has_taint(entry.response) or metadata.get("deletionTimestamp") or entry.verb == "delete":
            marked = entry.verb == "patch" and entry.name not in disrupted
            disrupted.add(entry.name)
            most = max(most, len(disrupted)) if marked else most
        elif entry.name not in unready:
            disrupted.discard(entry.name)
    return most
