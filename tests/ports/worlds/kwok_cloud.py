"""The cloud kwok as the contracts of the cloud's ports see it: the adapter over Nodes in memory."""

from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kwok import names as own
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.pools import NodePool
from dovetail.ports.cloud import Catalogues, Cloud, Instance
from tests.ports.worlds.contract import unique
from worlds.disruption import a_claim
from worlds.kwok import KwokParts


class KwokCloudWorld:
    """The adapter, and a person with kubectl. What is sold out stands on every class, as if a cloud ran dry."""

    def __init__(self) -> None:
        self._parts = KwokParts()
        self.cloud: Cloud = self._parts.cloud
        self.catalogues: Catalogues = self._parts.catalogues

    async def node_class(self, name: str) -> NodeClassRef:
        self._parts.apply(name)
        return NodeClassRef(group=own.GROUP, kind=own.KIND, name=name)

    async def claim(self, node_class: NodeClassRef) -> NodeClaim:
        return a_claim(
            unique("claim"),
            labels={names.NODE_POOL: "general"},
            node_class=node_class,
            requirements=(Expression(key=names.OS, operator="In", values=("linux",)),),
            requests={"cpu": 10**9, "memory": 2**30, "pods": 3},
        )

    async def pool(self, node_class: NodeClassRef) -> NodePool:
        reference = {"group": node_class.group, "kind": node_class.kind, "name": node_class.name}
        spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}
        return parse_node_pool({"metadata": {"name": unique("pool"), "resourceVersion": "1"}, "spec": spec})

    async def change_class(self, node_class: NodeClassRef) -> None:
        self._parts.apply(node_class.name, maxPods=50)

    async def remove_class(self, node_class: NodeClassRef) -> None:
        del self._parts.classes[node_class.name]

    async def make_class_unready(self, node_class: NodeClassRef) -> None:
        self._parts.apply(node_class.name, ready="False")

    async def make_short(self, instance: Instance | None) -> None:
        pattern = "*"
        if instance is not None:
            keys = (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE)
            pattern = "/".join(instance.labels[key] for key in keys)
        self._sell_out({own.SOLD_OUT: pattern})

    async def end_shortages(self) -> None:
        self._sell_out({})
        self._parts.nodes.now += 181  # three minutes pass

    async def foreign_instance(self) -> str:
        foreign = unique("node")
        body = {"metadata": {"labels": {own.PLAYED: own.FAKE}}, "spec": {"providerID": f"kind://docker/kind/{foreign}"}}
        await self._parts.nodes.create(foreign, body)
        self._parts.nodes.made -= 1
        return f"kind://docker/kind/{foreign}"

    async def launches(self) -> int:
        return self._parts.nodes.made

    def _sell_out(self, annotations: dict[str, str]) -> None:
        for raw in self._parts.classes.values():
            raw["metadata"]["annotations"] = annotations
