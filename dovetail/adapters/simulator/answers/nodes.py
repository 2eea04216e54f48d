"""The ports Nodes and Pods over the simulated cluster.

A pod is never deleted with a grace of 0, which would break the promise that two pods of one name never run at
once (DUR-30).
"""

from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod, pods_that_hold
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kubernetes_json.rendering.pods import render_annotation, render_nomination
from dovetail.adapters.simulator.answers.patching import conditions_set, deleted_version, patched
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.eviction import evict
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls, failure_of
from dovetail.model.nodes import Condition, Node
from dovetail.model.pods import Pod
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.json import Json
from dovetail.ports.objects import Eviction, MetadataChange


class SimulatedNodes:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def read(self, name: str) -> Node | None:
        body = await self._calls.read(lambda connection: objects.read(connection, "Node", name))
        return None if body is None else parsed(parse_node, body)

    async def list_by_provider_id(self, provider_id: str) -> tuple[Node, ...]:
        bodies = await self._calls.read(lambda connection: objects.nodes_of(connection, provider_id))
        return tuple(parsed(parse_node, body) for body in bodies)

    async def patch(self, node: Node, change: MetadataChange, taints: tuple[Taint, ...] | None = None) -> Node | None:
        body = await patched(self._calls, "Node", node, change, taints)
        return None if body is None else parsed(parse_node, body)

    async def set_conditions(self, node: Node, conditions: tuple[Condition, ...]) -> None:
        await conditions_set(self._calls, "Node", node, fields.node_conditions(conditions))

    async def delete(self, name: str, uid: str) -> int:
        return await deleted_version(self._calls, "Node", name, uid)


class SimulatedPods:
    """Pods that must leave a node, and those for which a place is kept."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def list_on(self, node: str) -> tuple[Pod, ...]:
        bodies = await self._calls.read(lambda connection: objects.pods_on(connection, node))
        return pods_that_hold(bodies, self._calls.clock())

    async def evict(self, pod: Pod) -> Eviction:
        try:
            await self._calls.cluster("evict", f"Pod/{pod.key}", lambda cluster: evict(cluster, pod.key, pod.uid))
        except Rejected as rejected:
            return _refused_eviction(rejected, pod)
        return Eviction(outcome="evicted", code=201)

    async def delete(self, pod: Pod, grace_seconds: int) -> None:
        grace = max(1, grace_seconds)
        try:
            await self._calls.cluster(
                "delete", f"Pod/{pod.key}", lambda cluster: cluster.delete("Pod", pod.key, pod.uid, grace)
            )
        except Rejected as rejected:
            if rejected.code not in (404, 409):
                raise failure_of(rejected, f"Pod/{pod.key}") from None

    async def read(self, pod: Pod) -> Pod | None:
        body = await self._calls.read(lambda connection: objects.read(connection, "Pod", pod.key))
        return None if body is None or body["metadata"]["uid"] != pod.uid else parsed(parse_pod, body)

    async def nominate(self, pod: Pod, node: str) -> None:
        await self._patch(pod, render_nomination(pod, node), "status")

    async def annotate(self, pod: Pod, key: str, value: str | None) -> None:
        await self._patch(pod, render_annotation(pod, key, value))

    async def _patch(self, pod: Pod, patch: Json, subresource: str = "") -> None:
        kind = "patch-status" if subresource else "patch"
        try:
            await self._calls.cluster(
                kind, f"Pod/{pod.key}", lambda cluster: cluster.patch("Pod", pod.key, patch, subresource)
            )
        except Rejected as rejected:
            if rejected.code != 404:
                raise failure_of(rejected, f"Pod/{pod.key}") from None


def _refused_eviction(rejected: Rejected, pod: Pod) -> Eviction:
    match rejected.code:
        case 404:
            return Eviction(outcome="gone", code=404, message=rejected.message)
        case 409:
            return Eviction(outcome="replaced", code=409, message=rejected.message)
        case 429:
            return Eviction(outcome="blocked", code=429, message=rejected.message)
        case 500:
            return Eviction(outcome="unsupported", code=500, message=rejected.message)
        case _:
            raise failure_of(rejected, f"Pod/{pod.key}") from None
