"""What can be worked out about a snapshot before any pod is placed?

An index is made once per snapshot and used by any number of passes: provisioning makes one, disruption hundreds
(PLF-22). No pass changes it; what it remembers (masks, states, counts per term) only saves the next pass from working
it out again. Karpenter rebuilds nodes, templates and topology for every simulation, which is where its time goes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from dovetail.model import names
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_index import NO_PODS, NodePods
from dovetail.model.places.placements import EmptyPool, IgnoredPod
from dovetail.model.pods import Pod, PodShape
from dovetail.model.pools import InstanceType, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import Resources
from dovetail.placement.buffers.virtual_pods import virtual_pods
from dovetail.placement.constraints.default_spread import DefaultSpread
from dovetail.placement.constraints.demands import Beyond, Ground, ShapeFacts, alternatives_as_needs
from dovetail.placement.constraints.limits import starting_limits
from dovetail.placement.constraints.reservations import starting_reservations
from dovetail.placement.constraints.topology import ClusterCounts
from dovetail.placement.constraints.topology_terms import TermBook
from dovetail.placement.constraints.volumes import Alternatives, VolumeLookupError, volume_alternatives
from dovetail.placement.devices.inventory import DeviceInventory
from dovetail.placement.devices.needs import DeviceNeeds
from dovetail.placement.earlier_claims import EarlierClaims, earlier_claims
from dovetail.placement.facts.cluster_nodes import ClusterNode, cluster_nodes
from dovetail.placement.facts.dimensions import Dimensions
from dovetail.placement.facts.moving_pods import Moving, reschedulable
from dovetail.placement.facts.node_table import NodeTable
from dovetail.placement.facts.overhead import daemons_of
from dovetail.placement.facts.states import NeedsPool
from dovetail.placement.facts.templates import Template, TemplateCompiler, usable_pools
from dovetail.placement.facts.type_table import CompiledType, Compilers, TypeCompiler
from dovetail.placement.facts.universe import Universe
from dovetail.placement.facts.within_reason import KnownLabels, within_reason
from dovetail.placement.held_pools import HeldPool, held_pool
from dovetail.placement.index.waiting_pods import (
    WaitingPods,
    leaving_pods,
    pending_pods,
    with_virtual,
)
from dovetail.placement.launch_brake import HeldBack, pods_held_back
from dovetail.placement.pdbs import pdbs_of
from dovetail.placement.settings import PlacementSettings

T = TypeVar("T")


def distinct_requests(pods: NodePods) -> dict[int, Resources]:
    """What they ask for, by identity, which pods that are alike share."""
    return {id(pod.requests): pod.requests for pod in pods}


def _listed(snapshot: Snapshot, nodes: Sequence[ClusterNode]) -> Iterator[Resources]:
    """What nodes have, and what new ones could have."""
    yield from (item.allocatable for item in nodes)
    for catalogue in snapshot.catalogues.values():
        for item in catalogue.types:
            yield item.capacity
            yield from (offering.capacity_override for offering in item.offerings if offering.capacity_override)


def _daemon_sets(pods: Sequence[Pod]) -> frozenset[str]:
    owned = ((pod, owner) for pod in pods for owner in pod.owners if owner.kind == "DaemonSet" and owner.controller)
    return frozenset(f"{pod.namespace}/{owner.name}" for pod, owner in owned)


class Index:
    """A snapshot, compiled for placement."""

    def __init__(self, snapshot: Snapshot, settings: PlacementSettings, judging: Judging | None = None) -> None:
        """`judging`: collects what cannot be judged, for the decision that this index is made for."""
        self.snapshot = snapshot
        self.settings = settings
        self.judging = judging or Judging()
        self._labels = KnownLabels(snapshot, settings.well_known)
        self.daemons = daemons_of(snapshot, settings, self._labels, self.judging)
        self.virtual = virtual_pods(snapshot, self.judging)
        self.on_node = snapshot.pods_by_node
        distinct = {id(pod.requests): pod.requests for pod in snapshot.unbound_pods}
        for pods in self.on_node.values():
            distinct.update(pods.kept(distinct_requests))
        daemons = [daemon.requests for daemon in self.daemons]
        virtual = [pod.requests for pod in (*self.virtual.pending, *self.virtual.promised)]
        everything = cluster_nodes(snapshot, self.judging)
        self.dimensions = Dimensions([*distinct.values(), *daemons, *virtual], _listed(snapshot, everything))
        self.leaving: list[ClusterNode] = [item for item in everything if item.leaving]
        self.table = NodeTable(snapshot, [i for i in everything if not i.leaving], self.on_node, self.dimensions.names)
        self._compile_pools()
        self._vectors: dict[int, tuple[Resources, tuple[int, ...]]] = {}
        self.table.measure(self.daemons, self.vector)
        self.needs = NeedsPool()
        self.book = TermBook(snapshot.namespaces, settings.profile.spread_identity)
        self._ground = Ground(self.needs, self.book, self.templates, settings.respects_preferences)
        self.counts = ClusterCounts(snapshot.nodes, self.table, self.universe, self.book)
        if settings.profile.daemons_are_company:
            self.counts.daemons = tuple(daemon.pod.shape for daemon in self.daemons)
        self.counts.add_bound(self.on_node, self.judging)
        self.pdbs = pdbs_of(snapshot)
        self.limits = starting_limits(self.pools, self.table.nodes)
        self.reservations = starting_reservations(self.templates)
        self.devices = None if settings.ignore_dra else DeviceInventory(snapshot, self.table)
        self._default_spread = DefaultSpread(snapshot, settings)
        self._facts: dict[object, ShapeFacts | None] = {}
        self.emptied: frozenset[str] = frozenset()  # nodes whose pods all leave, whatever holds them now
        self._waiting: WaitingPods | None = None
        self._moving: dict[str, Moving] = {}
        self._nodes_of: dict[frozenset[str], int] = {}
        self._kept: dict[object, object] = {}

    def _compile_pools(self) -> None:
        """The templates in the order in which they are tried, and the domains that they offer (PLC-13 to PLC-15,
        PLC-60)."""
        compiler = Compilers.current()
        templates = TemplateCompiler(self.daemons, self.dimensions, self.settings, self.snapshot.now)
        self.pools = usable_pools(self.snapshot)
        self.templates: list[Template] = []
        self.empty_pools: list[EmptyPool] = []
        self.types_of_empty: dict[str, list[CompiledType]] = {}
        sources = []
        self.held_pools: list[HeldPool] = []
        for pool in self.pools:
            held = held_pool(self.snapshot, pool)
            if held is not None:
                self.held_pools.append(held)
                continue
            catalogue = self.snapshot.catalogues.get(pool.name)
            listed = catalogue.types if catalogue is not None and not catalogue.error else ()
            types = [t for item in listed if not isinstance(t := self._compiled(compiler, pool, item), Unjudged)]
            if not types:
                sources.append((pool, types))
                self.empty_pools.append(EmptyPool(pool=pool.name, because_of_min_values=False))
                continue
            result = self.judging.judge(pool, "placement", templates.compile, pool, types, len(self.templates))
            if isinstance(result, Unjudged):
                continue
            sources.append((pool, types))
            if isinstance(result, EmptyPool):
                self.empty_pools.append(result)
                self.types_of_empty[pool.name] = types
            else:
                self.templates.append(result)
        self.universe = Universe(sources, self.settings.profile.domains_listed)
        # PLC-108: every pool in the list counts, also one whose types are gone.
        self.prefer_no_schedule = any(
            taint.effect == "PreferNoSchedule" for pool in self.pools for taint in pool.template.taints
        )

    def _compiled(self, compiler: TypeCompiler, pool: NodePool, item: InstanceType) -> CompiledType | Unjudged:
        """One type as tables hold it; an overlay may have made it what cannot be judged."""
        return self.judging.judge(pool, f"instance type {item.name}", compiler.compile, item)

    @property
    def zones(self) -> frozenset[str]:
        """The zones that have nodes, or whose instance types a pool lists."""
        return frozenset(self.universe.sources(names.ZONE)) | {
            node.labels[names.ZONE] for node in self.snapshot.nodes.values() if names.ZONE in node.labels
        }

    def kept(self, make: Callable[[PlacementSettings], T]) -> T:
        """What another part of placement keeps between passes; made when first asked for."""
        found = self._kept.get(make)
        if found is None:
            found = self._kept[make] = make(self.settings)
        return cast(T, found)

    def vector(self, requests: Resources) -> tuple[int, ...]:
        """The requests as amounts in the order of the dimensions; worked out once for pods that are alike."""
        known = self._vectors.get(id(requests))
        if known is None:
            known = self._vectors[id(requests)] = (requests, self.dimensions.of(requests))
        return known[1]

    def facts(self, pod: Pod) -> ShapeFacts | None:
        """The facts about the pod's shape; None: the pod is refused, as its volumes cannot be looked up (PLQ-13)."""
        shape = self._default_spread.shape_of(pod)
        devices = self.devices.needs_of(pod) if self.devices is not None and shape.device_claims else None
        if not shape.volumes and devices is None:
            found = self._facts.get(shape)
            if found is None:
                found = self._facts[shape] = self._new_facts(shape, ({},))
            return found
        try:
            alternatives = volume_alternatives(pod, self.snapshot)
        except VolumeLookupError:
            if self.settings.profile.unknown_volumes is None:
                return None
            alternatives = self.settings.profile.unknown_volumes
        key = (shape, tuple(frozenset(alternative.values()) for alternative in alternatives), devices)
        found = self._facts.get(key)
        if found is None:
            found = self._facts[key] = self._new_facts(shape, alternatives, devices)
        return found

    def device_fault(self, pod: Pod) -> str:
        """Why the pod's resource claims cannot be judged; empty if they can."""
        return "" if self.devices is None else self.devices.needs_of(pod).fault

    def _new_facts(self, shape: PodShape, alternatives: Alternatives, devices: DeviceNeeds | None = None) -> ShapeFacts:
        return ShapeFacts(
            self._labels.narrowed(within_reason(shape)),
            Beyond(alternatives_as_needs(alternatives, self.needs), devices),
            self._ground,
        )

    def waiting(self) -> WaitingPods:
        """The pods that need room whichever nodes are disrupted (PLC-19, PLC-30)."""
        if self._waiting is None:
            pending = pending_pods(self.snapshot, self.settings, self.snapshot.unbound_pods, self.judging)
            found = with_virtual(pending, self.virtual)
            self._waiting = WaitingPods(
                pending=found.pending,
                leaving=tuple(leaving_pods(self.leaving, self.on_node, self.pdbs, self.judging)),
                promised=found.promised,
                ignored=found.ignored,
            )
        return self._waiting

    def earlier_claims(self, pods: Sequence[Pod], takes: Callable[[str, Pod], bool]) -> EarlierClaims:
        """Which of these pods wait for a claim, or get no further one. `takes`: whether a node takes a pod now."""
        found = earlier_claims(self.snapshot, pods, self.on_node, self.settings.claims_per_pod, takes)
        others = [pod for pod in pods if pod.uid not in found and not pod.node_name]
        refused = self.snapshot.refused_pods
        if refused:
            found = replace(found, refused={pod.uid: refused[pod.uid] for pod in others if pod.uid in refused})
            others = [pod for pod in others if pod.uid not in refused]
        held = pods_held_back(others, self.snapshot, self.on_node, self.settings) if others else HeldBack()
        return replace(found, held=held.why, trials=held.trials) if held.why else found

    @property
    def ignored(self) -> tuple[IgnoredPod, ...]:
        """The pending pods that take no part; known once `waiting` was asked for."""
        return self._waiting.ignored if self._waiting is not None else ()

    def moving_from(self, node_name: str) -> Moving:
        """The pods of a node that would need another place if it left (PLC-217)."""
        known = self._moving.get(node_name)
        if known is None:
            pods = self.on_node.get(node_name, NO_PODS)
            known = pods.kept(reschedulable)
            if node_name not in self.emptied and not self.pdbs.leave_alone(pods):
                left = [pod for pod in known.pods if self.pdbs.needs_room(pod)]
                known = known if len(left) == len(known.pods) else Moving.of(left)
            self._moving[node_name] = known
        return known

    def daemon_sets_on(self, node_name: str) -> frozenset[str]:
        """The DaemonSets that have a pod on the node, with their namespaces."""
        return self.on_node.get(node_name, NO_PODS).kept(_daemon_sets)

    def nodes_of(self, claims: frozenset[str]) -> int:
        """The nodes of the claims of these names, as bits of the table."""
        if not claims:
            return 0
        known = self._nodes_of.get(claims)
        if known is None:
            items = enumerate(self.table.nodes)
            known = sum(1 << bit for bit, item in items if item.claim is not None and item.claim.name in claims)
            self._nodes_of[claims] = known
        return known
