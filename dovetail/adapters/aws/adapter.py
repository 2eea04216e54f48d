"""The whole of this adapter, wired: what the composition root opens, uses and closes.

Opening makes no call; the first one says what is missing: no region or no credentials. `start()` begins what goes on in
the background: prices and instance types, twice a day.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from dovetail.adapters.aws.calls import Calls, Observer
from dovetail.adapters.aws.catalogue.catalogues import AwsCatalogues
from dovetail.adapters.aws.catalogue.offerings_cache import Shelves, Sources
from dovetail.adapters.aws.catalogue.pool_overlays import Overlaying
from dovetail.adapters.aws.catalogue.prices import PriceKeeper, Prices
from dovetail.adapters.aws.catalogue.shortages import Shortages, ShortageStore
from dovetail.adapters.aws.catalogue.zonal_shift import ZonalShift
from dovetail.adapters.aws.cloud import AwsCloud, Parts
from dovetail.adapters.aws.cluster import Cluster, VersionNow
from dovetail.adapters.aws.failures import refusal
from dovetail.adapters.aws.instance_types.observed_memory import SeenMemory, Standing
from dovetail.adapters.aws.instance_types.region_types import Stock
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.interruptions.queue import AwsInterruptions
from dovetail.adapters.aws.launch.launch import Buying
from dovetail.adapters.aws.launch.launch_templates import Templates
from dovetail.adapters.aws.launch.prepare_launch import Preparing
from dovetail.adapters.aws.meters import called
from dovetail.adapters.aws.node_class.drift import Drift
from dovetail.adapters.aws.node_class.node_class import NodeClasses, RawClasses
from dovetail.adapters.aws.node_class.objects import ClassObjects
from dovetail.adapters.aws.node_class.resolution import Resolvers, Resolving
from dovetail.adapters.aws.node_class.validation import Validation
from dovetail.adapters.aws.resources.images import Images
from dovetail.adapters.aws.resources.instance_profiles import Profiles
from dovetail.adapters.aws.resources.placement_groups import PlacementGroups
from dovetail.adapters.aws.resources.reservations import Reservations
from dovetail.adapters.aws.resources.security_groups import SecurityGroups
from dovetail.adapters.aws.resources.subnets import Subnets
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.adapters.aws.upkeep.clean_up import Cleaning
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow, KeeperParts, NodeClassKeeper
from dovetail.adapters.aws.upkeep.partitions import Partitions
from dovetail.adapters.aws.upkeep.reserved_instances import ReservedInstances
from dovetail.adapters.aws.upkeep.shift_notices import ShiftNotices
from dovetail.adapters.aws.upkeep.tagging import Tagging
from dovetail.adapters.aws.upkeep.upkeep_task import Chore
from dovetail.ports.failures import Misconfigured
from dovetail.ports.objects import NodeClaims, Nodes, Notices


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the adapter is given beside its settings."""

    node_classes: RawClasses
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    store: ShortageStore | None = None  # where shortages outlive a process
    standing: Standing = tuple  # claims with their nodes
    overlaying: Overlaying = field(default_factory=Overlaying)
    version_now: VersionNow | None = None  # the cluster's version; None: as it was at the start
    observe: Observer = called
    agent: str = "dovetail"
    calls: Calls | None = None  # shared clients; closed by who made them
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCluster:
    """Where the keeper reads and writes: the cluster beside the cloud."""

    objects: ClassObjects
    claims: NodeClaims | None
    notices: Notices
    nodes: Nodes | None = None
    now: ClusterNow = field(default_factory=ClusterNow)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsAdapter:
    """Every port that AWS answers, and what they are made of."""

    settings: AwsSettings
    cloud: AwsCloud
    catalogues: AwsCatalogues
    calls: Calls
    classes: NodeClasses
    shelves: Shelves
    cluster: Cluster
    inventory: Inventory
    templates: Templates
    running: list[asyncio.Task[None]]
    clock: Callable[[], float]
    owns_calls: bool

    @classmethod
    def open(cls, settings: AwsSettings, given: Surroundings) -> "AwsAdapter":
        """Wire everything; no call is made."""
        calls = given.calls or Calls(settings, given.observe, given.agent)
        region = calls.region
        if not region:
            raise Misconfigured("AWS_REGION", "not set, and no profile or instance metadata names a region")
        clock = given.clock
        classes = NodeClasses(given.node_classes)
        shelves = Shelves(
            Sources(
                settings=settings,
                stock=Stock(calls),
                prices=Prices(region, clock),
                shortages=Shortages(given.store, clock),
                subnets=Subnets(calls, settings.subnet_refresh, clock),
                reservations=Reservations(calls, clock),
                groups=PlacementGroups(calls, clock),
                memory=SeenMemory(given.standing, clock),
            ),
            classes,
        )
        cluster = Cluster(calls, settings, given.cluster, given.version_now, clock)
        inventory, templates = Inventory(calls, settings, clock), Templates(calls, clock)
        inventory.shifted = lambda: shelves.shifted
        parts = Parts(
            calls=calls,
            classes=classes,
            shelves=shelves,
            inventory=inventory,
            preparing=Preparing(classes, shelves, cluster, (region, given.overlaying)),
            buying=Buying(calls, shelves, cluster, templates, clock),
        )
        return cls(
            settings=settings,
            cloud=AwsCloud(parts),
            catalogues=AwsCatalogues(classes, shelves, Drift(classes, shelves, inventory, cluster)),
            calls=calls,
            classes=classes,
            shelves=shelves,
            cluster=cluster,
            inventory=inventory,
            templates=templates,
            running=[],
            clock=clock,
            owns_calls=given.calls is None,
        )

    async def check(self) -> None:
        """What must hold before a worker starts (W-159): the right to ask EC2, and a cluster known to zonal shifts."""
        denied = await self.calls.dry_run("DescribeInstanceTypes")
        if denied is not None:
            raise refusal("ec2:DescribeInstanceTypes", denied)
        if self.settings.enable_zonal_shift:
            self._shift(await ZonalShift(self.calls, self.settings.cluster, self.clock).zones())

    def _shift(self, zone_ids: frozenset[str]) -> None:
        self.shelves.shifted_ids = zone_ids

    @property
    def interruptions(self) -> AwsInterruptions | None:
        """The cloud's warnings; None where no queue is named. Ask once and keep it."""
        if not self.settings.interruption_queue:
            return None
        known = (self.shelves.sources.shortages, self.shelves.sources.reservations)
        return AwsInterruptions(self.calls, self.settings.interruption_queue, known, self.clock)

    def keeper(self, cluster: KeptCluster) -> NodeClassKeeper:
        """What keeps EC2NodeClasses resolved; one per process is enough, and several do no harm."""
        clock, calls, settings, sources = self.clock, self.calls, self.settings, self.shelves.sources
        profiles = Profiles(calls, settings, clock)
        resolvers = Resolvers(
            cluster=self.cluster,
            images=Images(calls, settings.image_refresh, clock),
            subnets=sources.subnets,
            groups=SecurityGroups(calls, clock),
            profiles=profiles,
            reservations=sources.reservations,
            placement=sources.groups,
        )
        parts = KeeperParts(
            classes=self.classes,
            objects=cluster.objects,
            claims=cluster.claims,
            notices=cluster.notices,
            resolving=Resolving(resolvers, reserved_capacity=settings.reserved_capacity),
            validation=Validation(calls, settings, self.shelves, (self.templates, self.cluster), clock),
            cleaning=Cleaning(calls, settings, (profiles, self.templates), clock),
            chores=self._chores(cluster),
            cluster=self.cluster,
        )
        return NodeClassKeeper(parts, cluster.now, clock)

    def _chores(self, cluster: KeptCluster) -> tuple[Chore, ...]:
        """What is kept beside the classes. Without claims to write there is only what AWS itself is told."""
        clock, inventory, claims, settings = self.clock, self.inventory, cluster.claims, self.settings
        chores: list[Chore] = [Tagging(self.calls, inventory, (settings.cluster, claims), clock)]
        if claims is not None:
            chores.append(Partitions(inventory, claims, clock))
            if cluster.nodes is not None and settings.reserved_capacity:
                chores.append(ReservedInstances(inventory, self.classes, (claims, cluster.nodes), clock))
        if settings.enable_zonal_shift:
            shelves, now = self.shelves, cluster.now
            chores.append(ShiftNotices(lambda: shelves.shifted, self.classes, now.pools, cluster.notices, clock))
        return tuple(chores)

    @property
    def prices_since(self) -> str:
        """The date of the static price table while it is in use; empty otherwise. For `doctor`."""
        return self.shelves.sources.prices.static_since

    def start(self) -> None:
        """Begin to refresh prices and types."""
        sources = self.shelves.sources
        keeper = PriceKeeper(self.calls, sources.prices, self.settings)
        for name, work in (("prices", keeper.run()), ("instance types", sources.stock.run())):
            self.running.append(_task(work, name))
        if self.settings.enable_zonal_shift:
            shift = ZonalShift(self.calls, self.settings.cluster, self.clock)
            self.running.append(_task(shift.run(self._shift), "zonal shift"))

    async def close(self) -> None:
        """Stop refreshing; let the calls under way end."""
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        self.running.clear()
        if self.owns_calls:
            await self.calls.close()


def _task(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    return asyncio.create_task(work, name=f"aws {name}")
