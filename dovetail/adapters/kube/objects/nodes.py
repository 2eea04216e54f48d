"""Nodes, read live and changed.

A Node belongs to the kubelet and to others, so a change touches only what it names, and does not conflict with writers
of other parts (`rendering/operations.py`). The node of an instance is found by the names that the cache knows, because
listing 5,000 nodes for one would be expensive.
"""

from typing import TYPE_CHECKING

from dovetail.adapters.kube.failures import INVALID, NOT_FOUND, failure_of
from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.paging import list_all
from dovetail.adapters.kube.requests import KEYED_PATCH, Caller, Request, object_path
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node
from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kubernetes_json.rendering.operations import node_operations
from dovetail.adapters.kubernetes_json.written_kinds import NODE
from dovetail.model.nodes import Condition, Node
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.objects import MetadataChange

if TYPE_CHECKING:  # a person's order needs no view of the cluster
    from dovetail.ports.view import ClusterLookups


class KubeNodes:
    """Nodes on the API server. `lookups` knows the names of an instance's nodes; without it all nodes are listed."""

    def __init__(self, client: Caller, lookups: "ClusterLookups | None") -> None:
        self._client = client
        self._lookups = lookups
        self._nodes = Collection[Node](client, NODE.name, NODE.path, parse_node)

    async def read(self, name: str) -> Node | None:
        return await self._nodes.read(name)

    async def list_by_provider_id(self, provider_id: str) -> tuple[Node, ...]:
        if not provider_id:
            return ()  # PLM-3: an empty id matches nothing
        if self._lookups is None:
            return await self._list_live(provider_id)
        known = [await self.read(node.name) for node in self._lookups.nodes_of(provider_id)]
        return tuple(node for node in known if node is not None and node.provider_id == provider_id)

    async def patch(self, node: Node, change: MetadataChange, taints: tuple[Taint, ...] | None = None) -> Node | None:
        return await self._nodes.patch_parts(node, node_operations(node, change, taints))

    async def set_conditions(self, node: Node, conditions: tuple[Condition, ...]) -> None:
        request = Request(
            method="PATCH",
            path=object_path(NODE.path, node.name, "status"),
            subject=f"Node/{node.name}",
            body={"metadata": {"uid": node.uid}, "status": {"conditions": fields.node_conditions(conditions)}},
            expected=frozenset({NOT_FOUND, INVALID}),
            patch_type=KEYED_PATCH,
        )
        answer = await self._client.call(request)
        if answer.status == INVALID and "metadata.uid" not in answer.fields:
            raise failure_of(answer, request.subject)  # else another node has taken the name
        if answer.status not in request.expected:
            self._nodes.latest.remember(self._nodes.parsed(answer.body))

    async def delete(self, name: str, uid: str) -> int:
        return await self._nodes.delete(name, uid)

    async def _list_live(self, provider_id: str) -> tuple[Node, ...]:
        nodes = list_all(self._client, NODE.path, "Nodes")
        mine = [raw async for raw in nodes if (raw.get("spec") or {}).get("providerID") == provider_id]
        return tuple([self._nodes.parsed(raw) for raw in mine])
