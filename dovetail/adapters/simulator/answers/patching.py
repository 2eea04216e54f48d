"""Patch and delete as every object port promises them: gone is None or 0, a change in the meantime is Conflict.

Another UID means another object of the same name: for a delete it means gone, not a conflict.
"""

from collections.abc import Callable

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls, failure_of
from dovetail.model.objects.workloads import Deployment
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.json import Json
from dovetail.ports.objects import MetadataChange, Versioned


async def patched(
    calls: Calls, kind: str, value: Versioned, change: MetadataChange, taints: tuple[Taint, ...] | None = None
) -> Json | None:
    """Patch metadata, and all taints if given, at the version of `value`."""

    def step(cluster: Cluster) -> Json:
        found = _same(cluster, kind, value)
        owners = found["metadata"].get("ownerReferences") or []
        body: Json = {"metadata": {**fields.metadata(change, owners), "resourceVersion": value.resource_version}}
        if taints is not None:
            body["spec"] = {"taints": fields.taints(taints, found["spec"].get("taints") or [])}
        return cluster.patch(kind, value.name, body)

    return await _unless_gone(calls, "patch", f"{kind}/{value.name}", step)


async def status_patched(calls: Calls, kind: str, value: Versioned, status: Json) -> Json | None:
    """Patch status at the version of `value`."""
    return await part_patched(calls, kind, value, {"status": status}, "status")


async def part_patched(calls: Calls, kind: str, value: Versioned, part: Json, subresource: str) -> Json | None:
    """Patch a part, such as spec, at the version of `value`."""

    def step(cluster: Cluster) -> Json:
        _same(cluster, kind, value)
        body = {"metadata": {"resourceVersion": value.resource_version}, **part}
        return cluster.patch(kind, value.name, body, subresource)

    return await _unless_gone(calls, "patch-status" if subresource else "patch", f"{kind}/{value.name}", step)


async def body_patched(calls: Calls, kind: str, value: Deployment, patch: Json) -> Json | None:
    """A merge patch of an object in a namespace, at the version of `value`."""

    def step(cluster: Cluster) -> Json:
        found = cluster.read(kind, value.key)
        if found is None or found["metadata"]["uid"] != value.uid:
            raise Rejected(404, "NotFound", f"{kind} {value.key} is gone")
        metadata = {**(patch.get("metadata") or {}), "resourceVersion": value.resource_version}
        return cluster.patch(kind, value.key, {**patch, "metadata": metadata})

    return await _unless_gone(calls, "patch", f"{kind}/{value.key}", step)


async def conditions_set(calls: Calls, kind: str, value: Versioned, conditions: list[Json]) -> None:
    """Set these conditions whatever the version, and leave all others."""

    def step(cluster: Cluster) -> Json:
        standing = (_same(cluster, kind, value).get("status") or {}).get("conditions") or []
        merged = {each["type"]: each for each in (*standing, *conditions)}
        return cluster.patch(kind, value.name, {"status": {"conditions": list(merged.values())}}, "status")

    await _unless_gone(calls, "patch-status", f"{kind}/{value.name}", step)


async def deleted_version(calls: Calls, kind: str, key: str, uid: str) -> int:
    """Delete the object of that UID; the version at which it is deleting, 0 if it is gone."""
    try:
        left = await calls.cluster("delete", f"{kind}/{key}", lambda cluster: cluster.delete(kind, key, uid))
    except Rejected as rejected:
        if rejected.code in (404, 409):
            return 0
        raise failure_of(rejected, f"{kind}/{key}") from None
    return 0 if left is None else int(left["metadata"]["resourceVersion"])


async def _unless_gone(calls: Calls, verb: str, subject: str, step: Callable[[Cluster], Json]) -> Json | None:
    try:
        return await calls.cluster(verb, subject, step)
    except Rejected as rejected:
        if rejected.code == 404:
            return None
        raise failure_of(rejected, subject) from None


def _same(cluster: Cluster, kind: str, value: Versioned) -> Json:
    """The object as it is now; another UID under its name means that it is gone."""
    found = cluster.read(kind, value.name)
    if found is None or found["metadata"]["uid"] != value.uid:
        raise Rejected(404, "NotFound", f"{kind} {value.name} is gone")
    return found
