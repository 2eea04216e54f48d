"""AWS over HTTP as a world for the contracts of the cloud's ports: the adapter, and the test bed's server behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dovetail.adapters.aws.adapter import AwsAdapter, UpkeepCluster
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow, Ec2NodeClassUpkeep
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pools import NodePool
from dovetail.ports.cloud import Catalogues, Cloud, Instance
from testbed.cloud.server import CloudServer
from tests.ports.worlds.contract import unique
from worlds.aws import ClassStore, Notices, a_claim_of_ec2, amd64, family, on_demand, open_adapter


class AwsCloudWorld:
    """The adapter over a class store, and the server's own switches."""

    def __init__(self, server: CloudServer, adapter: AwsAdapter, classes: ClassStore) -> None:
        self.cloud: Cloud = adapter.cloud
        self.catalogues: Catalogues = adapter.catalogues
        self._server, self._adapter, self._classes = server, adapter, classes
        kept = UpkeepCluster(
            objects=classes, claims=None, notices=Notices(), nodes=None, now=ClusterNow(claims=tuple, pools=tuple)
        )
        self._upkeep: Ec2NodeClassUpkeep = adapter.node_class_upkeep(kept)

    async def node_class(self, name: str) -> NodeClassRef:
        await self._applied(name)
        return NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name=name)

    async def claim(self, node_class: NodeClassRef) -> NodeClaim:
        labels = {names.NODE_POOL: "general", "karpenter.k8s.aws/ec2nodeclass": node_class.name}
        return a_claim_of_ec2(family("m5", "c5"), on_demand(), amd64(), node_class=node_class, labels=labels)

    async def pool(self, node_class: NodeClassRef) -> NodePool:
        reference = {"group": node_class.group, "kind": node_class.kind, "name": node_class.name}
        spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}
        meta = {"name": unique("pool"), "uid": unique("uid"), "resourceVersion": "1"}
        return parse_node_pool({"metadata": meta, "spec": spec})

    async def change_class(self, node_class: NodeClassRef) -> None:
        await self._applied(node_class.name, tags={"changed": "yes"})

    async def remove_class(self, node_class: NodeClassRef) -> None:
        del self._classes.objects[node_class.name]

    async def make_class_unready(self, node_class: NodeClassRef) -> None:
        await self._applied(node_class.name, subnetSelectorTerms=[{"id": "subnet-none"}])

    async def make_short(self, instance: Instance | None) -> None:
        rule = {}
        if instance is not None:
            labels = instance.labels
            rule = {"instanceType": labels[names.INSTANCE_TYPE], "zone": labels[names.ZONE]}
            rule["capacityType"] = labels[names.CAPACITY_TYPE]
        self._server.control("PATCH", "world", {"ice": [rule]})

    async def end_shortages(self) -> None:
        self._server.control("PATCH", "world", {"ice": []})
        # Three minutes pass for the adapter's memory of shortages: other tests need it again.
        shortages = self._adapter.offerings.sources.shortages
        for known in list(shortages.known()):
            await shortages.forget(known)

    async def foreign_instance(self) -> str:
        tags = {"kubernetes.io/cluster/another": "owned", "eks:eks-cluster-name": "another"}
        asked: dict[str, Any] = {"type": "m5.large", "zone": "us-west-2a", "tags": tags}
        return f"aws:///us-west-2a/{self._server.control('POST', 'instances', asked)['id']}"

    async def launches(self) -> int:
        # A replayed token names the instances of its first use again.
        return len({each for call in self._server.calls("CreateFleet") for each in call["instances"]})

    async def _applied(self, name: str, **change: Any) -> None:
        self._classes.apply(name, **change)
        await self._upkeep.keep()


@asynccontextmanager
async def open_cloud(folder: Path) -> AsyncIterator[AwsCloudWorld]:
    """A server of its own, and an adapter in front of it."""
    server = CloudServer.start(folder, world={"runSeconds": 0.1, "shutdownSeconds": 0.5})
    classes = ClassStore()
    adapter = open_adapter(server, classes)
    try:
        yield AwsCloudWorld(server, adapter, classes)
    finally:
        await adapter.close()
        server.stop()
