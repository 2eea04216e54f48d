"""The whole adapter, wired: what the composition root opens, uses and closes.

Opening makes no call; it notices a missing region, and the first call notices missing credentials. `start()` begins the
background work: prices and instance types are refreshed twice a day.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from dovetail.adapters.aws.account import Account
from dovetail.adapters.aws.calls import Calls, Observer
from dovetail.adapters.aws.catalogue.offerings_cache import OfferingsCache, Sources
from dovetail.adapters.aws.catalogue.pool_overlays import PoolOverlays
from dovetail.adapters.aws.catalogue.prices import PriceRefresh, Prices
from dovetail.adapters.aws.catalogue.shortages import Shortages, ShortageStore
from dovetail.adapters.aws.catalogue.zonal_shift import ZonalShift
from dovetail.adapters.aws.catalogues import AwsCatalogues, repair_policies_of
from dovetail.adapters.aws.cloud import AwsCloud, Parts
from dovetail.adapters.aws.cluster import Cluster, ServerNow
from dovetail.adapters.aws.drift import Drift
from dovetail.adapters.aws.failures import refusal
from dovetail.adapters.aws.instance_types.observed_memory import ClaimsWithNodes, ObservedMemory
from dovetail.adapters.aws.instance_types.region_types import RegionTypes
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.interruptions.announcements import AwsInterruptions, WarningSources
from dovetail.adapters.aws.interruptions.queue import WarningQueue
from dovetail.adapters.aws.launch.launch import Launcher, LaunchParts
from dovetail.adapters.aws.launch.launch_templates import LaunchTemplates
from dovetail.adapters.aws.launch.prepare_launch import LaunchPreparer
from dovetail.adapters.aws.meters import called
from dovetail.adapters.aws.node_class.node_class import NodeClasses, RawClasses
from dovetail.adapters.aws.resources.available_images import AvailableImages
from dovetail.adapters.aws.resources.images import Images
from dovetail.adapters.aws.resources.instance_profiles import NamedProfiles, Profiles
from dovetail.adapters.aws.resources.placement_groups import PlacementGroups
from dovetail.adapters.aws.resources.reservations import Reservations
from dovetail.adapters.aws.resources.resolution import ClassResources, Resolution
from dovetail.adapters.aws.resources.security_groups import SecurityGroups
from dovetail.adapters.aws.resources.subnets import Subnets
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.adapters.aws.sized_instances import SizedInstances
from dovetail.adapters.aws.upkeep.clean_up import CleanUp
from dovetail.adapters.aws.upkeep.cluster_tag import ClusterTag
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow, Ec2NodeClassUpkeep, UpkeepParts
from dovetail.adapters.aws.upkeep.partitions import Partitions
from dovetail.adapters.aws.upkeep.reserved_instances import ReservationSources, ReservedInstances
from dovetail.adapters.aws.upkeep.shift_notices import ShiftNotices
from dovetail.adapters.aws.upkeep.supposed_classes import AwsSupposedClasses, SupposedSources
from dovetail.adapters.aws.upkeep.tagging import Tagging
from dovetail.adapters.aws.upkeep.upkeep_task import UpkeepTask
from dovetail.adapters.aws.upkeep.validation import Validation
from dovetail.background.supervised import stop, supervised
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Misconfigured
from dovetail.ports.objects import NodeClaims, Nodes, Notices
from dovetail.ports.raw_objects import RawObjects

_PRICED_WITHIN: Final = 20.0  # seconds that a command waits for the cloud's own prices
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the adapter is given besides its settings."""

    node_classes: RawClasses
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    store: ShortageStore | None = None  # where shortages outlive a process
    account: Account | None = None  # that was seen before; None: not looked at
    claims: Callable[[], Iterable[NodeClaim]] = tuple  # as the cache has them
    claims_with_nodes: ClaimsWithNodes = tuple
    overlays: PoolOverlays = field(default_factory=PoolOverlays)
    server: ServerNow | None = None  # None: as it was at the start
    observe: Observer = called
    agent: str = "dovetail"
    read_only: bool = False
    calls: Calls | None = None  # shared clients, closed by their owner
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepCluster:
    """Where upkeep reads and writes in the cluster, in addition to the cloud."""

    objects: RawObjects  # EC2NodeClasses
    claims: NodeClaims | None
    notices: Notices
    nodes: Nodes | None
    now: ClusterNow


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsAdapter:
    """Every port that AWS answers, and their parts."""

    settings: AwsSettings
    cloud: AwsCloud
    catalogues: AwsCatalogues
    drift: Drift
    calls: Calls
    classes: NodeClasses
    offerings: OfferingsCache
    cluster: Cluster
    inventory: Inventory
    templates: LaunchTemplates
    account: Account | None
    running: list[asyncio.Task[None]]
    clock: Callable[[], float]
    owns_calls: bool

    @classmethod
    def open(cls, settings: AwsSettings, given: Surroundings) -> "AwsAdapter":
        """Wire everything; no call is made."""
        made = given.calls or Calls(settings, given.observe, given.agent, read_only=given.read_only)
        calls, clock = made, given.clock
        if not calls.region:
            raise Misconfigured("AWS_REGION", "not set, and no profile or instance metadata names a region")
        classes = NodeClasses(given.node_classes)
        offerings = OfferingsCache(_sources(settings, given, calls), classes, clock)
        cluster = Cluster(calls, settings, given.cluster, given.server, clock)
        inventory = Inventory(calls, settings, clock, lambda: offerings.shifted, given.claims)
        templates = LaunchTemplates(calls, clock)
        sized = SizedInstances(offerings, given.overlays)
        drift = Drift(classes, offerings, inventory, cluster)
        made_of = LaunchParts(templates=templates, sized=sized, inventory=inventory)
        parts = Parts(
            calls=calls,
            classes=classes,
            offerings=offerings,
            inventory=inventory,
            preparer=LaunchPreparer(classes, offerings, cluster, calls.region, given.overlays),
            launcher=Launcher(calls, offerings, cluster, made_of, clock),
            sized=sized,
        )
        return cls(
            settings=settings,
            cloud=AwsCloud(parts),
            catalogues=AwsCatalogues(classes, offerings, drift, repair_policies_of(settings)),
            drift=drift,
            calls=calls,
            classes=classes,
            offerings=offerings,
            cluster=cluster,
            inventory=inventory,
            templates=templates,
            account=given.account,
            running=[],
            clock=clock,
            owns_calls=given.calls is None,
        )

    async def check(self) -> None:
        """What must hold before a worker starts (AWS-159): the right to call EC2, the same account as before, a cluster
        with a known endpoint and version, a region that offers instance types, a cluster registered for zonal
        shifts."""
        denied = await self.calls.dry_run("DescribeInstanceTypes")
        if denied is not None:
            raise refusal("ec2:DescribeInstanceTypes", denied)
        if self.account is not None:
            await self.account.check(self.calls)
        facts = await self.cluster.for_launch(with_cidr=False)
        if not facts.endpoint:
            raise Misconfigured("CLUSTER_ENDPOINT", f"not set, and EKS names none for cluster {self.settings.cluster}")
        if not await self.cluster.version():
            raise Misconfigured("CLUSTER_NAME", f"the Kubernetes version of {self.settings.cluster} is not known")
        region = await self.offerings.sources.region_types.region()
        if not region.types:
            raise Misconfigured("AWS_REGION", f"EC2 knows no instance types in {self.calls.region!r}")
        if not region.offered:
            raise Misconfigured("AWS_REGION", f"EC2 offers no instance types in any zone of {self.calls.region!r}")
        if self.settings.enable_zonal_shift:
            self._shift(await ZonalShift(self.calls, self.settings.cluster).zones())

    def _shift(self, zone_ids: dict[str, float]) -> None:
        self.offerings.shifted_ids = zone_ids

    @property
    def interruptions(self) -> AwsInterruptions:
        """The cloud's warnings; without a queue name, only what EC2's own checks find. Each access makes a new one."""
        sources, queue = self.offerings.sources, self.settings.interruption_queue
        return AwsInterruptions(
            WarningSources(
                calls=self.calls,
                queue=WarningQueue(self.calls, queue, self.clock) if queue else None,
                shortages=sources.shortages,
                reservations=sources.reservations,
            ),
            self.clock,
        )

    def node_class_upkeep(self, cluster: UpkeepCluster) -> Ec2NodeClassUpkeep:
        """Keeps EC2NodeClasses resolved; one per process is enough, and several do no harm."""
        clock, calls, settings, sources = self.clock, self.calls, self.settings, self.offerings.sources
        profiles = Profiles(calls, settings, clock)
        resources = ClassResources(
            cluster=self.cluster,
            images=Images(calls, settings.image_refresh, clock),
            subnets=sources.subnets,
            groups=SecurityGroups(calls, settings.security_group_refresh, clock),
            profiles=profiles,
            reservations=sources.reservations,
            placement=sources.groups,
        )
        parts = UpkeepParts(
            classes=self.classes,
            objects=cluster.objects,
            claims=cluster.claims,
            notices=cluster.notices,
            resolution=Resolution(resources, reserved_capacity=settings.reserved_capacity),
            validation=Validation(calls, self.offerings, self.templates, self.cluster, clock),
            clean_up=CleanUp(calls, settings, profiles, self.templates, clock),
            tasks=self._upkeep_tasks(cluster),
            cluster=self.cluster,
            drift=self.drift,
        )
        return Ec2NodeClassUpkeep(parts, cluster.now, clock)

    def supposed_classes(self) -> AwsSupposedClasses:
        """What changed classes would mean, without applying them. Its look-ups are kept apart from all others: a
        supposed class has the UID and generation that a real one may get."""
        clock, calls, settings = self.clock, self.calls, self.settings

        def sources() -> Sources:
            return replace(
                self.offerings.sources,
                subnets=Subnets(calls, settings.subnet_refresh, clock),
                reservations=Reservations(calls, clock),
            )

        def resources(found: Sources) -> ClassResources:
            return ClassResources(
                cluster=self.cluster,
                images=Images(calls, settings.image_refresh, clock),
                subnets=found.subnets,
                groups=SecurityGroups(calls, settings.security_group_refresh, clock),
                profiles=NamedProfiles(calls, settings, clock),
                reservations=found.reservations,
                placement=found.groups,
            )

        return AwsSupposedClasses(
            self.classes, self.inventory, self.cluster, SupposedSources(sources, resources), clock
        )

    def _upkeep_tasks(self, cluster: UpkeepCluster) -> tuple[UpkeepTask, ...]:
        """The upkeep tasks besides the classes. Without claims to write, only those that write to AWS alone."""
        clock, inventory, claims, settings = self.clock, self.inventory, cluster.claims, self.settings
        tasks: list[UpkeepTask] = [Tagging(self.calls, inventory, settings.cluster, claims, clock)]
        if claims is not None:
            tasks += [Partitions(inventory, claims, clock), ClusterTag(self.calls, inventory, claims, clock)]
            if cluster.nodes is not None and settings.reserved_capacity:
                known = ReservationSources(
                    inventory=inventory,
                    classes=self.classes,
                    reservations=self.offerings.sources.reservations,
                )
                tasks.append(ReservedInstances(known, claims, cluster.nodes, clock))
        if settings.enable_zonal_shift:
            offerings, now = self.offerings, cluster.now
            tasks.append(ShiftNotices(lambda: offerings.shifted, self.classes, now.pools, cluster.notices, clock))
        return tuple(tasks)

    def start(self) -> None:
        """Start refreshing prices and types; a task that fails unexpectedly is restarted, and counted."""
        sources = self.offerings.sources
        prices = PriceRefresh(self.calls, sources.prices, self.settings)
        self.running.append(supervised("aws prices", prices.run))
        self.running.append(supervised("aws instance types", sources.region_types.run))
        if self.settings.enable_zonal_shift:
            shift = ZonalShift(self.calls, self.settings.cluster)
            self.running.append(supervised("aws zonal shift", partial(shift.run, self._shift)))

    async def priced(self) -> None:
        """Wait until AWS has been asked for its prices, and so long at most: a command that answered at once would
        reckon with those that came with the release."""
        try:
            async with asyncio.timeout(_PRICED_WITHIN):
                await self.offerings.sources.prices.asked.wait()
        except TimeoutError:
            _log.warning(
                "prices are those that came with the release: AWS has named none within %.0f s", _PRICED_WITHIN
            )

    async def close(self) -> None:
        """Stop refreshing; let calls in progress finish."""
        await stop(*self.running)
        self.running.clear()
        if self.owns_calls:
            await self.calls.close()


def _sources(settings: AwsSettings, given: Surroundings, calls: Calls) -> Sources:
    clock = given.clock
    return Sources(
        settings=settings,
        region_types=RegionTypes(calls),
        prices=Prices(calls.region, clock),
        shortages=Shortages(given.store, clock),
        subnets=Subnets(calls, settings.subnet_refresh, clock),
        reservations=Reservations(calls, clock),
        groups=PlacementGroups(calls, clock),
        memory=ObservedMemory(given.claims_with_nodes, clock),
        images=AvailableImages(calls, clock),
    )
