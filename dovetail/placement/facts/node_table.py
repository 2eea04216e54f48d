"""Which existing nodes could take a pod with these needs?

A set of nodes is the bits of an integer, in the order in which nodes are tried, so that the lowest set bit is the first
fit (PLC-67). Masks over labels, taints and requests are made when first asked for and shared by all passes over the
snapshot. They describe the nodes before the pass: a node that a mask admits is checked once more before it is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import sub
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail.model import names
from dovetail.model.objects.pod_index import NO_PODS, NodePods
from dovetail.model.objects.pod_rules import is_daemon, is_terminal
from dovetail.model.pods import HostPort, Pod, Toleration
from dovetail.model.scheduling.requirements import (
    NEGATIVE,
    Requirement,
    RequirementSet,
    from_labels,
    passes,
    requirement,
)
from dovetail.model.scheduling.taints import Taint, untolerated
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import Resources, fits, total
from dovetail.placement.facts.cluster_nodes import ClusterNode, settling
from dovetail.placement.facts.masks import mask_of
from dovetail.placement.facts.moving_pods import sizes_of
from dovetail.placement.facts.overhead import Daemon, expected_on_node
from dovetail.placement.facts.templates import usable_pools

_LARGEST: Final = 2**62  # beyond any amount that exists; larger ones compare equal here and exactly later


STANDING_SECONDS: Final = 300.0  # within which the pods of DaemonSets have come to a new node, if they can


def _stands(item: ClusterNode, since: float) -> bool:
    """Whether it has been ready for pods for so long."""
    claim = item.claim
    ready = claim.condition(names.INITIALIZED_CONDITION) if claim is not None else None
    at = ready.changed if ready is not None else item.node.created if item.node is not None else None
    return item.initialized and at is not None and at <= since


def taken_by(pods: NodePods) -> tuple[tuple[Resources, int], ...]:
    """What the pods that have not ended ask for, and how many ask for the same."""
    return sizes_of([pod for pod in pods if not is_terminal(pod)])


Vector = Callable[[Resources], tuple[int, ...]]  # requests as amounts in the order of the dimensions


class _Taken:
    """What bound pods take of each node. Numpy adds it up; plain integers took a third of the time to make an index."""

    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        self._sizes: dict[int, int] = {}  # by the identity of requests, which like pods share
        self._amounts: list[tuple[int, ...]] = []  # of each size
        self._pods: list[int] = []  # the size of like pods on one node
        self._times: list[int] = []  # how many they are
        self._nodes: list[int] = []  # and their node

    def add(self, bit: int, pods: NodePods) -> None:
        """Add the pods of one node; those that have ended take nothing."""
        sizes = self._sizes
        for requests, times in pods.kept(taken_by):
            size = sizes.get(id(requests))
            if size is None:
                size = sizes[id(requests)] = len(self._amounts)
                self._amounts.append(self._vector(requests))
            self._pods.append(size)
            self._times.append(times)
            self._nodes.append(bit)

    def left_of(self, sizes: Sequence[tuple[int, ...]], width: int) -> "np.ndarray[tuple[int, int], np.dtype[Any]]":
        """What is left of nodes of these sizes, in unbounded integers if 64 bits might be too few."""
        most = max((amount for amounts in self._amounts for amount in amounts), default=0)
        largest = max((abs(amount) for size in set(sizes) for amount in size), default=0)
        dtype = np.int64 if most * sum(self._times) < _LARGEST and largest < _LARGEST else object
        left = np.array(sizes, dtype=dtype).reshape(len(sizes), width)
        if self._pods:
            times = np.array(self._times, dtype=dtype).reshape(-1, 1)
            np.subtract.at(left, self._nodes, np.array(self._amounts, dtype=dtype)[self._pods] * times)
        return left


class _Size(NamedTuple):
    """How much a node has of each dimension, which ones it lists, and whether no entry is negative."""

    amounts: tuple[int, ...]
    listed: tuple[bool, ...]
    sound: bool

    @classmethod
    def of(cls, allocatable: Resources, dimensions: Sequence[str]) -> "_Size":
        return cls(
            amounts=tuple([allocatable.get(name, 0) for name in dimensions]),
            listed=tuple([name in allocatable for name in dimensions]),
            sound=min(allocatable.values(), default=0) >= 0,
        )


class _Expected:
    """What DaemonSets will still take on a node, worked out once for all nodes that look alike to them."""

    def __init__(self, daemons: Sequence[Daemon], dimensions: Sequence[str], vector: Vector) -> None:
        self._daemons = daemons
        self._nothing = [0] * len(dimensions)
        self._vector = vector
        self._keys = sorted({key for d in daemons for needs in d.alternatives for key in needs})
        self._all = total(daemon.requests for daemon in daemons)
        self._known: dict[tuple[object, ...], list[int]] = {}

    def on(self, item: ClusterNode, table: "NodeTable", bit: int, pods: Sequence[Pod]) -> list[int]:
        """Amounts in the order of the dimensions. Of what is expected, what runs already is left out; unexpected
        daemons give nothing back (PLC-66)."""
        small = not fits(self._all, item.allocatable)
        signature = (item.taints, tuple(item.labels.get(key) for key in self._keys), small and id(item.allocatable))
        expected = self._known.get(signature)
        if expected is None:
            coming = expected_on_node(self._daemons, item.taints, table.label_set(bit), item.allocatable)
            expected = self._known[signature] = self._sum(coming)
        return self._to_come(expected, pods)

    def beside(self, item: ClusterNode, labels: RequirementSet, pods: Sequence[Pod], since: float) -> list[int]:
        """The same without those that have no room beside the pods that run there and are not preempted for them: on a
        node that stands these wait for ever. `since`: when their DaemonSets were made at the latest."""
        there = [pod for pod in pods if not is_daemon(pod) and not is_terminal(pod) and pod.deleting_since is None]

        def taken(daemon: Daemon) -> Resources:
            if daemon.since > since:
                return {}
            own = daemon.pod.priority or 0
            return total(pod.requests for pod in there if not daemon.pod.preempts or (pod.priority or 0) >= own)

        coming = expected_on_node(self._daemons, item.taints, labels, item.allocatable, taken)
        return self._to_come(self._sum(coming), pods)

    def _to_come(self, expected: list[int], pods: Sequence[Pod]) -> list[int]:
        running = [pod.requests for pod in pods if is_daemon(pod) and not is_terminal(pod)]
        if not running:
            return expected
        return [max(0, amount - there) for amount, there in zip(expected, self._sum(running), strict=True)]

    def _sum(self, requests: Sequence[Resources]) -> list[int]:
        return [*map(sum, zip(self._nothing, *map(self._vector, requests), strict=True))]


class NodeTable:
    """The nodes that stay, in the order in which they are tried."""

    def __init__(
        self,
        snapshot: Snapshot,
        nodes: Sequence[ClusterNode],
        on_node: Mapping[str, NodePods],
        dimensions: Sequence[str],
    ) -> None:
        self.nodes = list(nodes)
        self.snapshot = snapshot
        self.every = (1 << len(nodes)) - 1
        self.number = {item.node_name: bit for bit, item in enumerate(nodes) if item.node_name}
        self.by_hostname: dict[str, tuple[int, ...]] = {}  # nearly always one
        self.settling = 0
        taking_part = {pool.name: pool for pool in usable_pools(snapshot)}
        for bit, item in enumerate(nodes):
            self.by_hostname[item.hostname] = (*self.by_hostname.get(item.hostname, ()), bit)
            if settling(item, taking_part.get(item.pool), snapshot.now):
                self.settling |= 1 << bit
        # The same if no two nodes share a hostname, as they should not; else None.
        self.bit_of_hostname: dict[str, int] | None = None
        if len(self.by_hostname) == len(self.nodes):
            self.bit_of_hostname = {item.hostname: bit for bit, item in enumerate(self.nodes)}
        self._dimensions = tuple(dimensions)
        self._on_node = on_node
        self._labels: dict[str, tuple[dict[str, int], int]] = {}
        self._label_sets: dict[int, RequirementSet] = {}
        self._tolerating: dict[tuple[Toleration, ...], int] = {}
        self._satisfying: dict[Requirement, int] = {}
        self._holding: dict[tuple[int, ...], int] = {}
        self.remaining: list[tuple[int, ...]] = []
        self.usable = 0
        self._room: np.ndarray[tuple[int, int], np.dtype[np.int64]] = np.zeros((0, 0), dtype=np.int64)

    def measure(self, daemons: Sequence[Daemon], vector: Vector) -> None:
        """Work out what is left on each node after its pods and the daemons that are still to come (PLC-66).

        A resource that the node does not list is 0, whatever its pods request: a device whose plugin was removed.
        """
        taken = _Taken(vector)
        sizes: list[tuple[int, ...]] = []
        known: dict[int, _Size] = {}  # by allocatable, which nodes of one type share
        sound: list[bool] = []
        listed: list[tuple[bool, ...]] = []
        expected = _Expected(daemons, self._dimensions, vector)
        for bit, item in enumerate(self.nodes):
            size = known.get(id(item.allocatable))
            if size is None:
                size = known[id(item.allocatable)] = _Size.of(item.allocatable, self._dimensions)
            pods = self._on_node.get(item.node_name, NO_PODS)
            taken.add(bit, pods)
            sound.append(size.sound)
            listed.append(size.listed)
            amounts = size.amounts
            sizes.append(tuple(map(sub, amounts, expected.on(item, self, bit, pods))) if daemons else amounts)
        left = taken.left_of(sizes, len(self._dimensions))
        since = self.snapshot.now - STANDING_SECONDS
        for bit in np.flatnonzero((left < 0).any(axis=1)).tolist() if daemons else ():
            item, pods = self.nodes[bit], self._on_node.get(self.nodes[bit].node_name, NO_PODS)
            if _stands(item, since):
                amounts = known[id(item.allocatable)].amounts
                kept = expected.beside(item, self.label_set(bit), pods, since)
                left[bit] += np.array(list(map(sub, map(sub, amounts, kept), sizes[bit])), dtype=left.dtype)
        left[~np.array(listed, dtype=bool).reshape(left.shape)] = 0
        self.remaining = list(map(tuple, left.tolist()))
        fits = (left >= 0).all(axis=1) & np.array(sound, dtype=bool)  # PLC-76: one negative entry and nothing fits
        self.usable = mask_of(fits)
        self._room = np.maximum(np.minimum(left, _LARGEST), -_LARGEST).astype(np.int64)

    def label_set(self, bit: int) -> RequirementSet:
        """The node's labels as requirements, its hostname included (PLC-69)."""
        known = self._label_sets.get(bit)
        if known is None:
            item = self.nodes[bit]
            labels = {**item.labels, "kubernetes.io/hostname": item.hostname}
            known = self._label_sets[bit] = from_labels(labels)
        return known

    def value_of(self, bit: int, key: str) -> str | None:
        item = self.nodes[bit]
        return item.hostname if key == "kubernetes.io/hostname" else item.labels.get(key)

    def with_label(self, key: str) -> tuple[dict[str, int], int]:
        """The nodes by their value of a label, and those without it."""
        known = self._labels.get(key)
        if known is None:
            values: dict[str, int] = {}
            without = 0
            for bit in range(len(self.nodes)):
                value = self.value_of(bit, key)
                if value is None:
                    without |= 1 << bit
                else:
                    values[value] = values.get(value, 0) | 1 << bit
            known = self._labels[key] = (values, without)
        return known

    def tolerating(self, tolerations: tuple[Toleration, ...]) -> int:
        """The nodes all of whose taints are tolerated (PLC-140)."""
        known = self._tolerating.get(tolerations)
        if known is None:
            verdicts: dict[tuple[Taint, ...], bool] = {}
            known = 0
            for bit, item in enumerate(self.nodes):
                verdict = verdicts.get(item.taints)
                if verdict is None:
                    verdict = verdicts[item.taints] = untolerated(item.taints, tolerations) is None
                if verdict:
                    known |= 1 << bit
            self._tolerating[tolerations] = known
        return known

    def satisfying(self, needs: RequirementSet) -> int:
        """The nodes whose labels satisfy every requirement; no label may be undefined (PLC-144)."""
        mask = self.every
        for item in needs.values():
            known = self._satisfying.get(item)
            if known is None:
                known = self._satisfying[item] = self._satisfying_one(item)
            mask &= known
            if not mask:
                break
        return mask

    def _satisfying_one(self, item: Requirement) -> int:
        values, without = self.with_label(item.key)
        if not item.complement and item.gte is None and item.lte is None:
            mask = 0
            for value in item.values:
                mask |= values.get(value, 0)
            return mask | (without if item.operator in NEGATIVE else 0)
        mask = without if item.operator in NEGATIVE else 0
        for value, nodes in values.items():
            if passes(requirement(item.key, "In", (value,)), item):
                mask |= nodes
        return mask

    def holding(self, wanted: tuple[int, ...]) -> int:
        """The nodes that have this much left before any pod of a pass is placed (PLC-143)."""
        known = self._holding.get(wanted)
        if known is None:
            if not self.nodes:
                known = 0
            else:
                row = np.array([min(amount, _LARGEST) for amount in wanted], dtype=np.int64)
                fits = (self._room >= row).all(axis=1)
                known = mask_of(fits) & self.usable
            self._holding[wanted] = known
        return known

    def ports_on(self, bit: int) -> list[tuple[str, HostPort]]:
        """The host ports taken by bound pods, each with the pod's key."""
        pods = self._on_node.get(self.nodes[bit].node_name, NO_PODS)
        return [
            (pod.key, port)
            for pod in pods
            if pod.shape.host_ports and pod.phase not in ("Succeeded", "Failed")
            for port in pod.shape.host_ports
        ]

    def pods_on(self, bit: int) -> Sequence[Pod]:
        return self._on_node.get(self.nodes[bit].node_name, NO_PODS)
