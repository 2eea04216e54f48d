"""The kinds that both people's orders and steps write. They load no model of the API: a command that annotates one
object reads only that one."""

from dataclasses import fields
from operator import attrgetter
from typing import Final

from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node, parse_node_claim
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kubernetes_json.parsing.workloads import parse_namespace
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.names import CONSOLIDATABLE
from dovetail.model.nodes import Node, NodeClaim


def _provider_id(node: Node) -> str:
    return node.provider_id


# With each pod that comes or goes upkeep stamps the claim and takes Consolidatable off it, and sets that again later.
_PASSING: Final = frozenset({"resource_version", "last_pod_event", "conditions"})
_BESIDE_PODS: Final = attrgetter(*[each.name for each in fields(NodeClaim) if each.name not in _PASSING])


def _standing(claim: NodeClaim) -> tuple[object, ...]:
    conditions = {each.type: each for each in claim.conditions if each.type != CONSOLIDATABLE}
    return (*_BESIDE_PODS(claim), conditions)  # in whatever order: they are written in another one


NODE: Final = Kind("Node", "/api/v1/nodes", parse_node, snapshot_field="nodes", index=_provider_id)
NODE_CLAIM: Final = Kind(
    "NodeClaim",
    "/apis/karpenter.sh/v1/nodeclaims",
    parse_node_claim,
    snapshot_field="claims",
    standing=_standing,
)
NAMESPACE: Final = Kind("Namespace", "/api/v1/namespaces", parse_namespace, snapshot_field="namespaces")
NODE_POOL: Final = Kind("NodePool", "/apis/karpenter.sh/v1/nodepools", parse_node_pool, snapshot_field="pools")
