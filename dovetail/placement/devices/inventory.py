"""Which devices are there, on which nodes, and which instance types would bring which?

Made once per snapshot. An initialised node has what its drivers have published. Until then, for drivers that have
published nothing, it has what its instance type says (PLC-202), like a new node. A device pool that is incomplete, or
lists a device twice, gives nothing to anybody. Devices that belong to no single node count if the slice lets every node
use them, or nodes with certain labels.
"""

from collections.abc import Iterable
from typing import NamedTuple

from dovetail.model import names
from dovetail.model.pods import Pod
from dovetail.model.scheduling.devices import (
    Device,
    DevicePool,
    NodeChoice,
    ResourceClaim,
    ResourceSlice,
    is_whole,
    newest_slices,
)
from dovetail.model.scheduling.requirements import compatible, from_expressions
from dovetail.model.snapshot import Snapshot
from dovetail.placement.devices.matching import Matcher
from dovetail.placement.devices.needs import DeviceNeeds, NeedsReader
from dovetail.placement.facts.cluster_nodes import ClusterNode
from dovetail.placement.facts.node_table import NodeTable
from dovetail.placement.facts.templates import Template
from dovetail.placement.facts.type_table import TypeTable


class Stock(NamedTuple):
    """The devices within reach of a node. `own`: those that a new node brings, whose names are placeholders."""

    devices: tuple[Device, ...]
    whole: bool
    own: tuple[Device, ...] = ()


class TypeGroup(NamedTuple):
    """The rows of a template whose types bring the same devices."""

    devices: tuple[Device, ...]
    rows: int


class DeviceInventory:
    def __init__(self, snapshot: Snapshot, table: NodeTable) -> None:
        self.snapshot, self.table, self.matcher = snapshot, table, Matcher()
        self._needs = NeedsReader(snapshot)
        self._on_node: dict[str, list[Device]] = {}
        self._incomplete: set[str] = set()  # names of nodes; empty: nodes that are not known
        self._elsewhere: list[tuple[NodeChoice, tuple[Device, ...]]] = []
        self._sort(snapshot.resource_slices.values())
        self.everywhere = tuple(d for nodes, devices in self._elsewhere if nodes.everywhere for d in devices)
        self.allocated: list[ResourceClaim] = [c for c in snapshot.resource_claims.values() if c.allocation is not None]
        self._stocks: dict[int, Stock] = {}
        self._groups: dict[TypeTable, list[TypeGroup]] = {}
        self._of_types: dict[int, tuple[tuple[DevicePool, ...], tuple[Device, ...]]] = {}

    def needs_of(self, pod: Pod) -> DeviceNeeds:
        return self._needs.of(pod)

    def _sort(self, slices: Iterable[ResourceSlice]) -> None:
        found = tuple(slices)
        newest = newest_slices(found)
        faulty = {pool for pool, held in newest.items() if not is_whole(held) or _names_one_twice(held)}
        for each in found:
            pool = (each.driver, each.pool)
            if each.generation != newest[pool][0].generation:
                continue
            if pool in faulty:
                self._incomplete.add(each.node_name)
            elif each.node_name:
                self._on_node.setdefault(each.node_name, []).extend(each.devices)
            else:
                self._elsewhere.append((each.nodes, each.devices))

    def stock(self, bit: int) -> Stock:
        """What is within reach of an existing node."""
        known = self._stocks.get(bit)
        if known is None:
            known = self._stocks[bit] = self._stock(bit, self.table.nodes[bit])
        return known

    def _stock(self, bit: int, item: ClusterNode) -> Stock:
        shared = [d for nodes, devices in self._elsewhere if self.suits(nodes, bit) for d in devices]
        whole = not {item.node_name, ""} & self._incomplete
        if item.initialized:
            return Stock(devices=(*self._on_node.get(item.node_name, ()), *shared), whole=whole)
        published = tuple(self._on_node.get(item.node_name, ()))
        drivers = {device.id.driver for device in published}
        own = tuple(device for device in self._of_type(item) if device.id.driver not in drivers)
        return Stock(devices=(*published, *own, *shared), whole=whole, own=own)

    def suits(self, nodes: NodeChoice, bit: int) -> bool:
        """Whether an existing node is among those."""
        if nodes.everywhere or self.table.nodes[bit].node_name in nodes.names:
            return True
        labels = self.table.label_set(bit)
        return any(compatible(labels, from_expressions(term.expressions)) for term in nodes.terms)

    def _of_type(self, item: ClusterNode) -> tuple[Device, ...]:
        catalogue = self.snapshot.catalogues.get(item.pool)
        name = item.labels.get(names.INSTANCE_TYPE, "")
        types = catalogue.types if catalogue is not None else ()
        return next((self._flat(each.devices) for each in types if each.name == name), ())

    def _flat(self, pools: tuple[DevicePool, ...]) -> tuple[Device, ...]:
        known = self._of_types.get(id(pools))
        if known is None:
            known = self._of_types[id(pools)] = (pools, tuple(d for pool in pools for d in pool.devices))
        return known[1]

    def groups(self, template: Template) -> list[TypeGroup]:
        """The rows of a template by what their types bring; those that bring something come first."""
        known = self._groups.get(template.table)
        if known is None:
            by_devices: dict[int, tuple[tuple[Device, ...], int]] = {}
            for number, source in enumerate(template.table.sources):
                devices = self._flat(source.devices)
                rows = by_devices.get(id(devices), (devices, 0))[1]
                by_devices[id(devices)] = (devices, rows | template.table.type_rows[number])
            known = [TypeGroup(*each) for each in by_devices.values()]
            self._groups[template.table] = known
        return known


def _names_one_twice(slices: Iterable[ResourceSlice]) -> bool:
    named = [device.id for each in slices for device in each.devices]
    return len(set(named)) < len(named)
