"""Can an existing node take this pod?

The first question of every try (PLC-140 to PLC-148). Nodes are tried in a fixed order, and the first that accepts the
pod gets it. Masks rule out the nodes that cannot; the first one left is then checked exactly, because other pods of
this pass may have been placed on it. If a pod requires a label that its node does not carry, the requirement binds that
node for the rest of the pass (PLC-148).
"""

from dovetail.model.pods import HostPort, Pod
from dovetail.model.scheduling.host_ports import first_conflict
from dovetail.model.scheduling.requirements import Requirement, RequirementSet, compatible, intersect, merge
from dovetail.placement.constraints.demands import Demand, ShapeInPass
from dovetail.placement.constraints.domain_choices import node_values
from dovetail.placement.constraints.topology_groups import DomainGroup, HostGroup
from dovetail.placement.constraints.volumes import (
    VolumeLookupError,
    attached_by,
    attached_on,
    exceeds_limit,
)
from dovetail.placement.devices.ledger import DeviceLedger
from dovetail.placement.facts.node_table import NodeTable


class NodePlacer:
    """The existing nodes in one pass: what was placed on them, and what is left."""

    def __init__(self, table: NodeTable, active: int, devices: DeviceLedger | None) -> None:
        self.table, self.devices = table, devices
        self.active = active
        self.spared = 0  # nodes that no pod is put on for now
        self.placed: dict[int, list[Pod]] = {}
        self._left: dict[int, tuple[int, ...]] = {}
        self._ports: dict[int, list[tuple[str, HostPort]]] = {}
        self._attached: dict[int, dict[str, set[str]]] = {}
        self._extra: dict[int, dict[str, Requirement]] = {}
        self._extra_mask = 0

    def _suiting(self, demand: Demand) -> int:
        """The nodes whose taints and labels suit such pods."""
        shape = demand.shape
        if shape.node_mask is None:
            facts = shape.facts
            mask = self.active & self.table.tolerating(facts.pod_shape.tolerations)
            labels = self.table.satisfying(facts.needs.requirements)
            if len(facts.alternatives) > 1 or facts.alternatives[0].requirements:
                alternatives = 0
                for alternative in facts.alternatives:
                    alternatives |= self.table.satisfying(alternative.requirements)
                labels &= alternatives
            shape.node_mask = mask & labels
        mask = shape.node_mask
        if self._extra_mask:  # nodes with further requirements from this pass are judged one by one
            mask |= self._extra_mask & self.active & self.table.tolerating(shape.facts.pod_shape.tolerations)
        if demand.spares_settling:
            mask &= ~self.table.settling
        return mask & ~self.spared

    def _by_topology(self, shape: ShapeInPass, mask: int) -> int:
        for group, own in shape.hosts:
            mask ^= mask & group.rejects(group.nodes, own, self.table.every)
        if mask and shape.domains:
            for key, values in node_values(shape):
                by_value, _ = self.table.with_label(key)
                allowed = 0
                for value in values:
                    allowed |= by_value.get(value, 0)
                mask &= allowed
        return mask

    def place(self, demand: Demand, pod: Pod) -> bool:
        """Put the pod on the first node that accepts it."""
        return self._place(demand, pod, self._suiting(demand)) if self.active else False

    def place_on(self, demand: Demand, pod: Pod, bit: int) -> bool:
        """Put the pod on exactly this node, if it accepts the pod."""
        return self._place(demand, pod, self._suiting(demand) & (1 << bit))

    def takes(self, demand: Demand, pod: Pod, bit: int) -> bool:
        """Whether exactly this node accepts the pod, which is not put there."""
        return self._first(demand, pod, self._suiting(demand) & (1 << bit)) is not None

    def _place(self, demand: Demand, pod: Pod, mask: int) -> bool:
        bit = self._first(demand, pod, mask) if mask else None
        if bit is None:
            return False
        self._commit(demand, pod, bit)
        return True

    def _first(self, demand: Demand, pod: Pod, mask: int) -> int | None:
        mask &= self.table.holding(demand.wanted)
        mask ^= mask & demand.node_dead
        if mask:
            mask = self._by_topology(demand.shape, mask)
        while mask:
            low = mask & -mask
            bit = low.bit_length() - 1
            if self._accepts(demand, pod, bit):
                return bit
            mask ^= low
        return None

    def left(self, bit: int) -> tuple[int, ...]:
        return self._left.get(bit) or self.table.remaining[bit]

    def _accepts(self, demand: Demand, pod: Pod, bit: int) -> bool:
        for wanted, left in zip(demand.wanted, self.left(bit), strict=True):
            if wanted > left:
                demand.node_dead |= 1 << bit
                return False
        pod_shape = demand.shape.facts.pod_shape
        if pod_shape.volumes and not self._attaches(pod, bit):
            return False
        if pod_shape.host_ports and self._port_conflict(pod, bit):
            return False
        if self._extra_mask >> bit & 1 and not self._suits_known(demand, bit):
            return False
        return demand.shape.plain or self._has_devices(demand, bit)

    def _has_devices(self, demand: Demand, bit: int) -> bool:
        """Whether the node has what the pod's resource claims ask for (PLC-147); within a pass it never gains any."""
        needs = demand.shape.facts.devices
        if needs is None or self.devices is None or self.devices.fits_node(needs, bit):
            return True
        demand.node_dead |= 1 << bit
        return False

    def _known(self, bit: int) -> RequirementSet:
        """The node's labels, and the requirements on further labels that this pass has added."""
        extra = self._extra.get(bit)
        return {**self.table.label_set(bit), **extra} if extra else self.table.label_set(bit)

    def _suits_known(self, demand: Demand, bit: int) -> bool:
        """Whether the pod suits a node that has requirements on labels which it does not carry (PLC-144, PLC-145)."""
        have = self._known(bit)
        needs = demand.shape.facts.needs.requirements
        if not compatible(have, needs):
            return False
        narrowed = merge(have, needs)
        return any(compatible(narrowed, a.requirements) for a in demand.shape.facts.alternatives)

    def taken_ports(self, bit: int) -> list[tuple[str, HostPort]]:
        """The host ports that are taken on the node, each with its pod."""
        known = self._ports.get(bit)
        if known is None:
            known = self._ports[bit] = self.table.ports_on(bit)
        return known

    def _port_conflict(self, pod: Pod, bit: int) -> bool:
        """Whether another pod has one of its host ports; a pod never conflicts with itself (PLC-142)."""
        taken = [port for key, port in self.taken_ports(bit) if key != pod.key]
        return first_conflict(pod.shape.host_ports, taken) is not None

    def attached(self, bit: int) -> dict[str, set[str]]:
        """The volume claims of the node's pods, per driver."""
        known = self._attached.get(bit)
        if known is None:
            known = self._attached[bit] = attached_on(self.table.pods_on(bit), self.table.snapshot)
        return known

    def _attaches(self, pod: Pod, bit: int) -> bool:
        """Whether the node can attach its volumes; if they cannot be looked up, no node can (PLC-141, PLC-85)."""
        snapshot = self.table.snapshot
        try:
            added = attached_by(pod, snapshot)
        except VolumeLookupError:
            return False
        limits = snapshot.csi_nodes.get(self.table.nodes[bit].node_name)
        return limits is None or not added or not exceeds_limit(self.attached(bit), added, limits.limits)

    def _commit(self, demand: Demand, pod: Pod, bit: int) -> None:
        self._left[bit] = tuple([have - want for have, want in zip(self.left(bit), demand.wanted, strict=True)])
        self.placed.setdefault(bit, []).append(pod)
        pod_shape = demand.shape.facts.pod_shape
        if pod_shape.host_ports:
            self.taken_ports(bit).extend((pod.key, port) for port in pod_shape.host_ports)
        if pod_shape.volumes:
            for driver, keys in attached_by(pod, self.table.snapshot).items():
                self.attached(bit).setdefault(driver, set()).update(keys)
        if self.devices is not None and (needs := demand.shape.facts.devices) is not None:
            self.devices.commit_node(needs, bit)
        self._keep_requirements(demand, bit)
        self.record(demand.shape, bit)

    def _keep_requirements(self, demand: Demand, bit: int) -> None:
        """Keep requirements on labels that the node does not carry for the rest of the pass (PLC-148)."""
        labels = self.table.label_set(bit)
        facts = demand.shape.facts
        for needs in (facts.needs, *facts.alternatives[:1]):
            for key, item in needs.requirements.items():
                if key not in labels:
                    extra = self._extra.setdefault(bit, {})
                    extra[key] = intersect(extra[key], item) if key in extra else item
                    self._extra_mask |= 1 << bit

    def record(self, shape: ShapeInPass, bit: int) -> None:
        """Count a pod of this shape on the node in all groups that count such pods (PLC-181)."""
        for group in shape.recording.everything:
            self.record_in(group, bit)

    def record_in(self, group: DomainGroup | HostGroup, bit: int) -> None:
        """Count one pod on a node in one group, if the group counts pods of such nodes."""
        item, labels = self.table.nodes[bit], self._known(bit)
        if group.term.filter is not None and not group.term.filter.accepts(item.taints, labels):
            return
        if isinstance(group, HostGroup):
            group.record(group.nodes, bit)
        else:
            group.record_placement(labels.get(group.term.key))
