"""The kinds that are written to by orders of people as well as by steps. They load no model of the API: a command that
annotates one object reads that one alone."""

from typing import Final

from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node, parse_node_claim
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kubernetes_json.parsing.workloads import parse_namespace
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.nodes import Node


def _provider_id(node: Node) -> str:
    return node.provider_id


NODE: Final = Kind("Node", "/api/v1/nodes", parse_node, snapshot_field="nodes", index=_provider_id)
NODE_CLAIM: Final = Kind("NodeClaim", "/apis/karpenter.sh/v1/nodeclaims", parse_node_claim, snapshot_field="claims")
NAMESPACE: Final = Kind("Namespace", "/api/v1/namespaces", parse_namespace, snapshot_field="namespaces")
NODE_POOL: Final = Kind("NodePool", "/apis/karpenter.sh/v1/nodepools", parse_node_pool, snapshot_field="pools")
