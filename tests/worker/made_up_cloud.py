"""A second cloud in one module: what a newcomer writes as dovetail/adapters/NAME, at its smallest.

It sells one instance type and keeps its instances in memory.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.pods import Expression
from dovetail.model.pools import Catalogue, InstanceType, NodePool, Offering
from dovetail.model.values.resources import parse_resources
from dovetail.notices.notice import Notice
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, NodeClassState, Prepared
from dovetail.ports.failures import Refused
from dovetail.ports.provider import NodeClassKind, OpenCloud, Provider, ProviderCluster

SHAPE: Final = "made-up.example/shape"
NODE_CLASS: Final = NodeClassKind(kind="MadeUpNodeClass", group="made-up.example", version="v2", plural="madeups")


class MadeUpEnvironment(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    account: str = Field("nobody", alias="MADE_UP_ACCOUNT")
    racks: int = Field(1, alias="MADE_UP_RACKS", ge=1)


@dataclass(kw_only=True)
class MadeUpCloud:
    """The ports Cloud, Catalogues and NodeClassUpkeep."""

    given: MadeUpEnvironment
    cluster: ProviderCluster
    instances: dict[str, Instance] = field(default_factory=dict)
    closed: bool = False

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        found = await self.node_class(claim.node_class)
        return Prepared(request="small") if found.found else ClassNotReady(message="there is no such class")

    async def launch(
        self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        amounts = parse_resources({"cpu": "4", "memory": "8Gi", "pods": "110"})
        made = Instance(
            provider_id=f"made-up:///{self.given.account}/{token}",
            claim_uid=claim.uid,
            labels={SHAPE: "round"},
            annotations={},
            capacity=amounts,
            allocatable=amounts,
        )
        return self.instances.setdefault(made.provider_id, made)

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        return next(
            (one for one in self.instances.values() if provider_id == one.provider_id or claim_uid == one.claim_uid),
            None,
        )

    async def terminate(self, provider_id: str, claim: str = "") -> Literal["terminating", "gone"]:
        self.instances.pop(provider_id, None)
        return "gone"

    async def reboot(self, provider_id: str, claim: str = "") -> None:
        raise Refused(f"NodeClaim/{claim}", "this cloud reboots nothing")

    async def list_instances(self) -> tuple[Instance, ...]:
        return tuple(self.instances.values())

    async def catalogue(self, pool: NodePool) -> Catalogue:
        shape = Expression(key=SHAPE, operator="In", values=("round",))
        sold = Offering(requirements=(shape,), price=1.0, available=True)
        amounts = parse_resources({"cpu": "4", "memory": "8Gi", "pods": "110"})
        kind = InstanceType(name="small", requirements=(shape,), offerings=(sold,), capacity=amounts, overhead={})
        return Catalogue(types=(kind,))

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        return NodeClassState(found=reference.name in self.cluster.node_classes(NODE_CLASS), ready="True")

    async def drift(self, claim: NodeClaim) -> str:
        return ""

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return frozenset({(NODE_CLASS.group, NODE_CLASS.kind)})

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return ()

    async def keep(self) -> float:
        """One Event for each class."""
        for name in self.cluster.node_classes(NODE_CLASS):
            notice = Notice(kind=NODE_CLASS.kind, name=name, reason="Seen", message="a class of the made-up cloud")
            await self.cluster.notices.publish(notice)
        return 0.0

    async def check(self) -> None:
        """It needs nothing."""

    async def close(self) -> None:
        self.closed = True


async def open_made_up(cluster: ProviderCluster, given: MadeUpEnvironment) -> OpenCloud:
    cloud = MadeUpCloud(given=given, cluster=cluster)
    await cloud.check()
    return OpenCloud(cloud=cloud, catalogues=cloud, classes=cloud, interruptions=None, close=cloud.close)


PROVIDER: Final = Provider(
    name="made-up",
    node_classes=(NODE_CLASS,),
    labels=frozenset({SHAPE, f"{names.ZONE}-rack"}),
    settings=MadeUpEnvironment,
    open=open_made_up,
)
