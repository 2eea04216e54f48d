"""The nodes of a snapshot, each with its claim and its pods, and what is known about them (DIS-19 to DIS-21).

A claim without a node and a node without a claim are members too: the checks must see them to leave them alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from dovetail.disruption.nodes.promises import Promises, promises_of
from dovetail.disruption.settings import DisruptionSettings
from dovetail.lifecycle.faults import NodeFault, fault_of
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim, NodeClassRef
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_index import NO_PODS, NodePods, by_key
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.places.moved_pods import movable_pods
from dovetail.model.pools import InstanceType, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.pdbs import PdbIndex
from dovetail.rules.expiry.expiries import replaced_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A node with its claim, or one of them alone. `managed`: it has a claim of a NodeClass that is ours."""

    name: str
    node: Node | None
    claim: NodeClaim | None
    managed: bool
    labels: Mapping[str, str]
    pods: NodePods  # by namespace and name

    @property
    def pool_name(self) -> str:
        """The pool that its label names; empty without one."""
        return self.labels.get(names.NODE_POOL, "")

    @property
    def is_initialized(self) -> bool:
        """Whether the node is initialised; unmanaged nodes always are (DIS-21)."""
        if not self.managed:
            return True
        if self.claim is not None and self.claim.is_rebooting:
            return False
        return self.node is not None and self.node.labels.get(names.INITIALIZED) == "true"

    @property
    def is_ready(self) -> bool:
        """Whether the node's condition says so; a missing one does not."""
        condition = self.node.condition(names.READY) if self.node else None
        return condition is not None and condition.status == "True"


class Fleet:
    """All members of one snapshot, and what a decision knows about them."""

    def __init__(self, snapshot: Snapshot, settings: DisruptionSettings) -> None:
        self.snapshot = snapshot
        self.judging = Judging()  # what this decision cannot judge
        self.settings = settings
        self.now = snapshot.now
        self.movable = movable_pods(snapshot)
        self.pdbs = PdbIndex(snapshot.pdbs.values(), snapshot.now, self.movable)
        self.members = _members(snapshot)
        self._types: dict[str, dict[str, InstanceType]] = {}

    @cached_property
    def pools(self) -> dict[str, NodePool]:
        """The pools that are ours, by name."""
        ours = self.snapshot.supported_node_classes
        return {name: p for name, p in sorted(self.snapshot.pools.items()) if _is_ours(p.template.node_class, ours)}

    @cached_property
    def has_waiting_pods(self) -> bool:
        """Whether any pod without promised room needs some: a pending one, or one on a node that is leaving."""
        promised = self.promises.pods
        if any(m.pods and self.is_leaving(m) and any(p.uid not in promised for p in m.pods) for m in self.members):
            return True
        return any(p.unschedulable and p.uid not in promised for p in self.snapshot.unbound_pods)

    @cached_property
    def by_name(self) -> dict[str, Member]:
        return {m.name: m for m in self.members}

    @cached_property
    def by_pool(self) -> dict[str, list[Member]]:
        result: dict[str, list[Member]] = {}
        for member in self.members:
            result.setdefault(member.pool_name, []).append(member)
        return result

    @cached_property
    def replaced_from(self) -> dict[str, float]:
        """When each claim becomes due for replacement because of its age, by name."""
        found: dict[str, float] = {}
        for name, pool in self.pools.items():
            claims = [member.claim for member in self.by_pool.get(name, ()) if member.claim is not None]
            found |= replaced_from(self.snapshot.policies, pool, claims)
        return found

    @cached_property
    def faults(self) -> dict[str, NodeFault]:
        """What is to be repaired now, by the names of nodes; nothing while an instance is being rebooted."""
        found: dict[str, NodeFault] = {}
        policies = self.snapshot.repair_policies if self.settings.repairs else ()
        for member in self.members if policies else ():
            node, claim = member.node, member.claim
            if node is None or claim is None or not member.managed or claim.is_rebooting:
                continue
            fault = self.judging.judge(node, "repair", fault_of, node, claim, policies, self.now)
            if fault is not None and not isinstance(fault, Unjudged):
                found[member.name] = fault
        return found

    @cached_property
    def unreadable(self) -> dict[str, Unreadable]:
        """For each node, a pod on it that cannot be read and still holds it."""
        found = (u for u in self.snapshot.unreadable if u.kind == "Pod" and u.node)
        return {u.node: u for u in found if u.holds_its_node(self.now)}

    @cached_property
    def promises(self) -> Promises:
        """The claims whose room is promised to pods."""
        return promises_of(self.snapshot)

    def is_taken(self, member: Member) -> bool:
        """Whether a running plan of ours has taken it, by the caller's word or by the mark."""
        claim = member.claim
        if claim is None:
            return False
        return claim.name in self.snapshot.disrupting or names.OWNER in claim.annotations

    def is_leaving(self, member: Member) -> bool:
        """Whether it will be deleted, whatever decided that (DIS-19)."""
        claim = member.claim
        if claim is None:
            return member.node is not None and member.node.deleting_since is not None
        if claim.deleting_since is not None or claim.name in self.snapshot.leaving:
            return True
        if claim.is_true(names.INSTANCE_TERMINATING):
            return True
        return self.settings.profile.taken_nodes_leave and self.is_taken(member)

    def is_held(self, member: Member) -> bool:
        """Whether it counts as leaving only because of a plan that waits for its second look."""
        claim = member.claim
        if claim is None or claim.name not in self.snapshot.disrupting or not member.is_ready:
            return False
        alone = names.OWNER not in claim.annotations and claim.deleting_since is None
        return alone and claim.name not in self.snapshot.leaving and self.settings.profile.taken_nodes_leave

    def is_nominated(self, member: Member) -> bool:
        """Whether a pod is expected on it (DIS-20)."""
        return self.snapshot.nominations.get(member.name, 0.0) > self.now

    def types_of(self, pool: str) -> dict[str, InstanceType]:
        """The instance types of a pool, by name."""
        if pool not in self._types:
            catalogue = self.snapshot.catalogues.get(pool)
            self._types[pool] = {t.name: t for t in catalogue.types} if catalogue and not catalogue.error else {}
        return self._types[pool]


def _is_ours(node_class: NodeClassRef, supported: frozenset[tuple[str, str]]) -> bool:
    return not supported or (node_class.group, node_class.kind) in supported


def _members(snapshot: Snapshot) -> tuple[Member, ...]:
    pairing = snapshot.pairing
    result = [_member(node, pairing.claim_of(node), snapshot) for node in snapshot.nodes.values()]
    alone = (claim for claim in snapshot.claims.values() if pairing.node_of(claim) is None)
    result.extend(_member(None, claim, snapshot) for claim in alone)
    return tuple(sorted(result, key=lambda m: m.name))


def _member(node: Node | None, claim: NodeClaim | None, snapshot: Snapshot) -> Member:
    registered = node is not None and (claim is None or node.labels.get(names.REGISTERED) == "true")
    source: Node | NodeClaim | None = node if registered else claim
    name = node.name if node is not None else claim.name if claim is not None else ""
    return Member(
        name=name,
        node=node,
        claim=claim,
        managed=claim is not None and _is_ours(claim.node_class, snapshot.supported_node_classes),
        labels=source.labels if source is not None else {},
        pods=snapshot.pods_by_node.get(name, NO_PODS).kept(by_key),
    )
