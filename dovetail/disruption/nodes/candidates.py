"""Which nodes may be disrupted at all, before any method's own question (DIS-25 to DIS-48).

Each check returns a Block with a reason from the closed list, and publishes nothing. There are two classes of
candidates. For the eventual class, drift and expiration, the blocks of pods are waived if the claim has a termination
grace period; no other block ever is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from dovetail.disruption.nodes.costs import node_price, reschedule_cost
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.disruption.nodes.resting import read_rest
from dovetail.lifecycle.faults import NodeFault
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_index import NodePods, asking_to_stay
from dovetail.model.objects.pod_rules import is_evictable, is_protected, is_reschedulable, protection
from dovetail.model.pods import Pod
from dovetail.model.pools import InstanceType, NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.values.time import format_time
from dovetail.termination.hooks import denial


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Why a node stays. `event`: the reason of the Event on Node and NodeClaim; None where none is published."""

    why: WhyNot
    message: str
    event: str | None = "DisruptionBlocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node that may be disrupted, with what ordering and replacing it need (DIS-30)."""

    member: Member
    claim: NodeClaim
    pool: NodePool
    instance_type: InstanceType | None
    zone: str
    capacity_type: str
    pods: tuple[Pod, ...]  # the reschedulable ones
    price: float
    cost: float
    fault: NodeFault | None = None  # for which it is repaired
    held: Block | None = None  # the first block of its pods, where it is repaired

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def ratio(self) -> float:
        """Its price per disturbance (DIS-35)."""
        return self.price / self.cost

    @property
    def is_empty(self) -> bool:
        """Whether none of its pods counts as disturbed (DIS-36)."""
        return self.cost <= 1.0

    @property
    def reboots(self) -> bool:
        """Whether its instance is rebooted for its repair, so that no node is made for it."""
        return self.fault is not None and self.fault.reboots

    @property
    def is_static(self) -> bool:
        """Whether its pool has a fixed number of nodes (DIS-37)."""
        return self.pool.replicas is not None


Check = Callable[[Fleet, Member], Block | None]


def _taken(fleet: Fleet, member: Member) -> Block | None:
    return _silent(WhyNot.BEING_DISRUPTED, "candidate is already being disrupted") if fleet.is_taken(member) else None


def _unmanaged(_: Fleet, member: Member) -> Block | None:
    return None if member.managed else _silent(WhyNot.UNMANAGED, "node isn't managed by karpenter")


def _no_node(_: Fleet, member: Member) -> Block | None:
    if member.node is not None:
        return None
    return Block(why=WhyNot.NO_NODE, message="Nodeclaim does not have an associated node")


def _uninitialized(_: Fleet, member: Member) -> Block | None:
    return None if member.is_initialized else Block(why=WhyNot.NOT_INITIALIZED, message="Node isn't initialized")


def _leaving(fleet: Fleet, member: Member) -> Block | None:
    if not fleet.is_leaving(member):
        return None
    return Block(why=WhyNot.DELETING, message="Node is deleting or marked for deletion")


def _nominated(fleet: Fleet, member: Member) -> Block | None:
    if not fleet.is_nominated(member):
        return None
    return Block(why=WhyNot.NOMINATED, message="Node is nominated for a pending pod")


def _protected(_: Fleet, member: Member) -> Block | None:
    node = member.node
    if node is None or node.annotations.get(names.DO_NOT_DISRUPT) != "true":
        return None
    message = f'Disruption is blocked through the "{names.DO_NOT_DISRUPT}" annotation'
    return Block(why=WhyNot.NODE_PROTECTED, message=message)


def _no_pool_label(_: Fleet, member: Member) -> Block | None:
    if names.NODE_POOL in member.labels:
        return None
    return Block(why=WhyNot.NO_POOL_LABEL, message=f"Node doesn't have required label (label={names.NODE_POOL})")


def _pool_not_found(fleet: Fleet, member: Member) -> Block | None:
    # A pool whose instance types cannot be listed is "not found" too; users rely on the text (DIS-26, DIQ-17).
    pool = member.pool_name
    if pool in fleet.pools and fleet.types_of(pool):
        return None
    return Block(why=WhyNot.POOL_NOT_FOUND, message=f"NodePool not found (NodePool={pool})")


def _unreadable(fleet: Fleet, member: Member) -> Block | None:
    # Waived for no class: when the node is marked its pods are read live, and that would fail.
    pod = fleet.unreadable.get(member.name)
    return None if pod is None else Block(why=WhyNot.POD_UNREADABLE, message=pod.says)


def _promised(fleet: Fleet, member: Member) -> Block | None:
    if not fleet.promises.holds(member.claim):
        return None
    return _silent(WhyNot.PROMISED, "Node is promised to pods that are on their way")


def _resting(fleet: Fleet, member: Member) -> Block | None:
    return None if _may_go_empty(fleet, member) else rest_of(fleet, member)


def _may_go_empty(fleet: Fleet, member: Member) -> bool:
    """Whether it has become empty, and nothing but its own rest from another reason keeps it."""
    if member.claim is None or member.pods.kept(reschedulable):
        return False
    rest = read_rest(member.claim)
    return rest.reason != DisruptionReason.EMPTY and rest.until >= fleet.snapshot.resting.get(member.name, 0.0)


def rest_of(fleet: Fleet, member: Member) -> Block | None:
    """Why it is left alone after its last disruption; a method that deletes empty nodes asks `node_blocks` alone."""
    if fleet.snapshot.resting.get(member.name, 0.0) <= fleet.now:
        return None
    if member.claim is not None and read_rest(member.claim).cancelled:
        return _silent(WhyNot.RESTING, "A person called its last disruption off, it is looked at again later")
    return _silent(WhyNot.RESTING, "Node's last disruption failed, it is tried again later")


def _called_off(_: Fleet, member: Member) -> Block | None:
    if member.claim is None or names.CANCEL not in member.claim.annotations:
        return None
    return _silent(WhyNot.RESTING, "A person has called its disruption off")


def _denied(_: Fleet, member: Member) -> Block | None:
    hook = denial(member.claim) if member.claim is not None else None
    return None if hook is None else Block(why=WhyNot.HOOK_DENIES, message=f"A {hook.words}")


def _silent(why: WhyNot, message: str) -> Block:
    return Block(why=why, message=message, event=None)


NODE_CHECKS: Final[tuple[Check, ...]] = (
    _taken,
    _unmanaged,
    _no_node,
    _uninitialized,
    _leaving,
    _nominated,
    _protected,
    _no_pool_label,
    _pool_not_found,
    _unreadable,
    _promised,
    _resting,
    _called_off,
    _denied,
)


def pod_blocks(fleet: Fleet, member: Member) -> Iterator[Block]:
    """Why the node's pods hold it: first the protected pods, then those that are not moved (TRM-44), then each one held
    by a PDB (DIS-43)."""
    for pod in member.pods.kept(asking_to_stay):
        if not is_protected(pod, fleet.now):
            continue
        held = protection(pod, fleet.now)
        if held.why:
            end = "" if held.until is None else f" until {format_time(held.until)}"
            yield Block(why=WhyNot.POD_WINDOW, message=f"Pod {held.says}{end} (Pod={pod.key})")
        else:
            yield Block(why=WhyNot.POD_PROTECTED, message=f'Pod has "{held.by}" annotation (Pod={pod.key})')
    yield from _held_pods(fleet, member)
    for pod in member.pods if fleet.pdbs.any else ():
        blocking = fleet.pdbs.blocking(pod)
        if not blocking:
            continue
        texts = " ".join(f"{b.namespace}/{b.name}" for b in blocking)
        if len(blocking) > 1:
            message = f"Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{texts}])"
            yield Block(why=WhyNot.SEVERAL_PDBS, message=message)
        else:
            message = f"Pdb prevents pod evictions (PodDisruptionBudget=[{texts}])"
            yield Block(why=WhyNot.PDB_BLOCKS, message=message)


def _held_pods(fleet: Fleet, member: Member) -> Iterator[Block]:
    if fleet.movable is None:
        return
    for pod in member.pods:
        why_held = fleet.movable.why_held(pod) if is_evictable(pod, fleet.now) else ""
        if why_held:
            yield Block(why=WhyNot.MOVE_HELD, message=f"Pod is not moved (Pod={pod.key}): {why_held}")


def node_blocks(fleet: Fleet, member: Member) -> Iterator[Block]:
    """Every block except those of pods, in order; worked out one by one, because most callers want only the first."""
    for check in NODE_CHECKS:
        block = check(fleet, member)
        if block is not None:
            yield block


def reschedulable(pods: NodePods) -> tuple[Pod, ...]:
    return tuple([pod for pod in pods if is_reschedulable(pod)])


def own_cost(pods: NodePods) -> float:
    """The cost of moving them, by what people have written on them."""
    return reschedule_cost(pods.kept(reschedulable))


def managed_cost(pods: NodePods) -> float:
    """The same if their deletion costs are ours to write."""
    return reschedule_cost(pods.kept(reschedulable), managed=True)


def candidate_of(fleet: Fleet, member: Member) -> Candidate:
    claim, pool = member.claim, fleet.pools[member.pool_name]
    assert claim is not None  # the checks came before
    labels = member.labels
    instance_type = fleet.types_of(pool.name).get(labels.get(names.INSTANCE_TYPE, ""))
    zone, capacity_type = labels.get(names.ZONE, ""), labels.get(names.CAPACITY_TYPE, "")
    return Candidate(
        member=member,
        claim=claim,
        pool=pool,
        instance_type=instance_type,
        zone=zone,
        capacity_type=capacity_type,
        pods=member.pods.kept(reschedulable),
        price=node_price(instance_type, zone, capacity_type),
        cost=member.pods.kept(managed_cost if fleet.settings.manages_deletion_costs else own_cost),
    )
