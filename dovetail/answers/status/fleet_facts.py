"""One pass over the nodes, claims and pods of a snapshot: what all parts of `status` and `nodes` need.

100,000 pods are read once, not once for each node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dovetail.answers.status.answer import Use
from dovetail.answers.status.not_ours import Types
from dovetail.disruption.nodes.costs import claim_price
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.pod_rules import is_active
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import CPU, MEMORY, NANO


@dataclass(slots=True)
class Room:
    """One node's resources, and what its pods ask for. Cpu in cores, memory in bytes."""

    cpu: float = 0.0
    memory: float = 0.0
    cpu_used: float = 0.0
    memory_used: float = 0.0
    pods: int = 0

    @property
    def cpu_share(self) -> float:
        """The share of cpu that is requested; 0 if there is none."""
        return self.cpu_used / self.cpu if self.cpu else 0.0

    @property
    def memory_share(self) -> float:
        """The share of memory that is requested; 0 if there is none."""
        return self.memory_used / self.memory if self.memory else 0.0


@dataclass(kw_only=True)
class FleetFacts:
    """The nodes with their room, their claims with their prices, and the pods that matter."""

    snapshot: Snapshot
    rooms: dict[str, Room] = field(default_factory=dict)  # by node
    pods_of: dict[str, list[Pod]] = field(default_factory=dict)  # of the nodes in `closer`
    pending: list[Pod] = field(default_factory=list)
    running: int = 0
    prices: dict[str, float | None] = field(default_factory=dict)  # by claim; None: not known
    types: Types = field(default_factory=dict)  # of the catalogues

    @classmethod
    def of(cls, snapshot: Snapshot, closer: frozenset[str] = frozenset()) -> "FleetFacts":
        """The facts; the pods themselves are kept only for the nodes in `closer`."""
        facts = cls(snapshot=snapshot, pods_of={name: [] for name in closer})
        facts.rooms = {name: _room(node) for name, node in snapshot.nodes.items()}
        for pod in snapshot.pods.values():
            facts._count(pod)
        types = {pool: {each.name: each for each in catalogue.types} for pool, catalogue in snapshot.catalogues.items()}
        facts.types = types
        facts.prices = {name: claim_price(claim, types) for name, claim in snapshot.claims.items()}
        return facts

    def _count(self, pod: Pod) -> None:
        room = self.rooms.get(pod.node_name)
        if room is None:
            if pod.unschedulable and not pod.node_name:
                self.pending.append(pod)
            return
        kept = self.pods_of.get(pod.node_name)
        if kept is not None:
            kept.append(pod)
        if not is_active(pod):
            return
        self.running += 1
        room.pods += 1
        # A pod that asks for more than its node has, which no kubelet admits, just fills it: people write 1e400.
        room.cpu_used += min(pod.requests.get(CPU, 0) / NANO, room.cpu)
        room.memory_used += min(pod.requests.get(MEMORY, 0), room.memory)

    def use_of(self, nodes: Mapping[str, object] | list[str] | None = None) -> tuple[Use, Use]:
        """Cpu and memory of these nodes, or of all."""
        rooms = self.rooms.values() if nodes is None else [self.rooms[n] for n in nodes if n in self.rooms]
        cpu = Use(used=sum(r.cpu_used for r in rooms), room=sum(r.cpu for r in rooms))
        return cpu, Use(used=sum(r.memory_used for r in rooms), room=sum(r.memory for r in rooms))

    def node_of(self, claim: NodeClaim) -> Node | None:
        return self.snapshot.nodes.get(claim.node_name) if claim.node_name else None


def _room(node: Node) -> Room:
    return Room(cpu=node.allocatable.get(CPU, 0) / NANO, memory=float(node.allocatable.get(MEMORY, 0)))


def spot_share(claims: Iterable[NodeClaim]) -> float:
    """The share of spot among those that have a capacity type."""
    known = [kind for claim in claims if (kind := claim.labels.get(names.CAPACITY_TYPE))]
    return known.count(names.CAPACITY_SPOT) / len(known) if known else 0.0


def selected_pool(pod: Pod) -> str:
    """The NodePool that the pod's node selector names; empty if it names none."""
    return dict(pod.shape.node_selector).get(names.NODE_POOL, "")


def is_marked(claim: NodeClaim) -> bool:
    reason = claim.condition(names.DISRUPTION_REASON)
    return reason is not None and reason.status == "True"


def is_busy(claim: NodeClaim) -> bool:
    """Whether it is coming or leaving."""
    return claim.deleting_since is not None or is_marked(claim) or not claim.is_true(names.INITIALIZED_CONDITION)
