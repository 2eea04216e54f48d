"""The cloud of the simulated world, as the contracts of the cloud's ports see it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.adapters.kwok.instance_types import OfferingKey
from dovetail.adapters.simulator.cloud.catalogue import EMBEDDED_CLASS
from dovetail.adapters.simulator.cloud.instances import LaunchCall
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.pools import NodePool
from dovetail.ports.cloud import Catalogues, Cloud, Instance
from dovetail.ports.objects import NewClaim
from dovetail.wiring.simulated import SimulatedAdapter
from testbed.simulated_world import SimulatedWorld
from tests.ports.worlds.contract import unique

_ALIEN = LaunchCall(
    token="",
    parameters="",
    pools=(OfferingKey("c-1x-amd64-linux", "test-zone-a", "spot"),),
    cluster="another",
    claim_uid="",
    claim_name="",
    image="image-1",
    annotations="{}",
    user_data='{"labels": {}, "taints": []}',
)


_GROUP, _KIND = EMBEDDED_CLASS


class SimulatedCloudWorld:
    """The adapter, and the world's own switches."""

    def __init__(self, adapter: SimulatedAdapter, outside: SimulatedWorld) -> None:
        self.cloud: Cloud = adapter.cloud
        self.catalogues: Catalogues = adapter.catalogues
        self._adapter = adapter
        self._outside = outside

    async def node_class(self, name: str) -> NodeClassRef:
        reference = NodeClassRef(group=_GROUP, kind=_KIND, name=name)
        self._outside.apply(
            {
                "apiVersion": f"{_GROUP}/v1",
                "kind": _KIND,
                "metadata": {"name": name},
                "spec": {"image": "image-1"},
            }
        )
        return reference

    async def claim(self, node_class: NodeClassRef) -> NodeClaim:
        new = NewClaim(
            name=unique("claim"),
            labels={names.NODE_POOL: "general"},
            annotations={},
            finalizers=(names.TERMINATION_FINALIZER,),
            owner=None,
            node_class=node_class,
            requirements=(Expression(key=names.OS, operator="In", values=("linux",)),),
            requests={"cpu": 10**9, "memory": 2**30, "pods": 3},
        )
        return await self._adapter.claims.create(new)

    async def pool(self, node_class: NodeClassRef) -> NodePool:
        reference = {"group": node_class.group, "kind": node_class.kind, "name": node_class.name}
        spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}
        body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": unique("pool")}, "spec": spec}
        return parse_node_pool(self._outside.apply(body))

    async def change_class(self, node_class: NodeClassRef) -> None:
        self._outside.patch(_KIND, node_class.name, {"spec": {"image": "image-2"}})

    async def remove_class(self, node_class: NodeClassRef) -> None:
        self._outside.delete(_KIND, node_class.name)

    async def make_class_unready(self, node_class: NodeClassRef) -> None:
        unready = {"type": "Ready", "status": "False", "reason": "NoSubnet", "message": "no subnet"}
        self._outside.patch(_KIND, node_class.name, {"status": {"conditions": [unready]}}, "status")

    async def make_short(self, instance: Instance | None) -> None:
        if instance is None:
            self._outside.sell_out()
            return
        labels = instance.labels
        self._outside.sell_out(labels[names.INSTANCE_TYPE], labels[names.ZONE], labels[names.CAPACITY_TYPE])

    async def end_shortages(self) -> None:
        self._outside.end_sell_outs()
        self._outside.forget_shortages()  # else they would be forgotten in the middle of another test

    async def foreign_instance(self) -> str:
        row = self._outside.launch(_ALIEN).row
        assert row is not None
        return row.provider_id

    async def launches(self) -> int:
        return len(self._outside.instances())


@asynccontextmanager
async def open_cloud(file: Path) -> AsyncIterator[SimulatedCloudWorld]:
    """Make a world in a new file and let it move."""
    outside = SimulatedWorld.create(file)
    outside.set(speed=20, shortage=0.5)
    adapter = SimulatedAdapter.open(file, "dovetail/test")
    try:
        with outside.playing():
            yield SimulatedCloudWorld(adapter, outside)
    finally:
        adapter.close()
        outside.close()
