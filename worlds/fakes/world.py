"""What a world of a few dictionaries holds, and its clock."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.workloads import Namespace, PodDisruptionBudget, Volume, VolumeAttachment, VolumeClaim
from dovetail.model.own.policies import TimeRules
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.devices import ResourceSlice
from dovetail.notices.notice import Notice
from dovetail.ports.cloud import Instance


@dataclass(slots=True)
class World:
    """Everything that exists, and everything that was done."""

    clock: float = 1000.0
    claims: dict[str, NodeClaim] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    pools: dict[str, NodePool] = field(default_factory=dict)  # as look-ups know them
    system: Namespace | None = None  # kube-system
    rules: TimeRules = field(default_factory=TimeRules)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)
    instances: dict[str, Instance] = field(default_factory=dict)
    attachments: dict[str, VolumeAttachment] = field(default_factory=dict)
    volume_claims: dict[str, VolumeClaim] = field(default_factory=dict)
    volumes: dict[str, Volume] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    ledger: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)  # the ids of workflows
    hidden: set[str] = field(default_factory=set)  # names that the cache does not know yet
    unreadable: set[str] = field(default_factory=set)  # objects that no parser understands: the cache lacks them too
    later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    slices: dict[str, tuple[ResourceSlice, ...]] | None = None  # by node; None: devices are ignored
    versions: int = 100

    def now(self) -> float:
        return self.clock

    async def pause(self, seconds: float) -> None:
        """The only thing that moves the clock."""
        self.clock += seconds
        if self.clock > 10**6:
            raise AssertionError("the step waits for ever")
        for item in sorted((one for one in self.later if one[0] <= self.clock), key=lambda one: one[0]):
            self.later.remove(item)
            item[1]()

    def at(self, moment: float, act: Callable[[], None]) -> None:
        self.later.append((moment, act))

    def version(self) -> str:
        self.versions += 1
        return str(self.versions)

    def put(self, *objects: Node | NodeClaim | Pod) -> None:
        """As another writer would write them."""
        for one in objects:
            if isinstance(one, NodeClaim):
                self.claims[one.name] = replace(one, resource_version=self.version())
            elif isinstance(one, Node):
                self.nodes[one.name] = replace(one, resource_version=self.version())
            else:
                self.pods[one.uid] = one

    def kill(self, pod: Pod) -> None:
        self.pods.pop(pod.uid, None)

    def said(self) -> set[str]:
        """The reasons of the notices."""
        return {notice.reason for notice in self.notices}
