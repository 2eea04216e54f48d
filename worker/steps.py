"""Which step runs on which queue.

Every step is made here from the ports of a world and can reach nothing else.
"""

import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from temporalio import activity
from temporalio.client import Client

from dovetail.activities.disruption.await_disruption_plan import AwaitDisruptionPlan
from dovetail.activities.disruption.await_progress import AwaitProgress
from dovetail.activities.disruption.breakers import BreakerMemory
from dovetail.activities.disruption.delete_claim import DeleteClaims, DeletePorts
from dovetail.activities.disruption.deletion_cost_writer import DeletionCostWriter
from dovetail.activities.disruption.dropped_plans import DroppedPlans
from dovetail.activities.disruption.give_back import GiveBack
from dovetail.activities.disruption.live_budgets import LiveBudgets
from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes, MarkPorts
from dovetail.activities.disruption.places import Places
from dovetail.activities.disruption.publish_notices import PublishNotices
from dovetail.activities.disruption.returned_moves import ReturnedMoves
from dovetail.activities.identity.judge_version import Findings, JudgeVersion, nobody_looks
from dovetail.activities.interruptions.answer_interruptions import AnswerInterruptions
from dovetail.activities.interruptions.direct_answers import DirectAnswers
from dovetail.activities.interruptions.tell_interruptions import InterruptionNotices
from dovetail.activities.interruptions.watch_interruptions import WatchInterruptions
from dovetail.activities.launch.await_registered_and_initialized import AwaitRegisteredAndInitialized, JoinPorts
from dovetail.activities.launch.kept_places import KeptPlaces
from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.orders.await_orders import AwaitOrders
from dovetail.activities.orders.carry_out_orders import CarryOutOrders, OrderPorts
from dovetail.activities.orders.finders import Again, Finder
from dovetail.activities.orders.lost_nodes import LostNodeFinder
from dovetail.activities.orders.reboot_nodes import RebootNodes, RebootPorts
from dovetail.activities.orders.repairs import RepairFinder
from dovetail.activities.orders.replicas import ReplicaFinder
from dovetail.activities.orders.vanished_instances import LostInstanceFinder
from dovetail.activities.provisioning.await_provisioning_plan import AwaitProvisioningPlan, ProvisioningSettings
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims, CreateTies
from dovetail.activities.provisioning.launch_brake import BrakedSnapshots, LaunchBrake
from dovetail.activities.provisioning.placement_publisher import PlacementPublisher
from dovetail.activities.shared.every_step.step_guard import time_of_steps
from dovetail.activities.shared.every_step.step_health import StepHealth
from dovetail.activities.shared.looks.flights import DecisionFollowers, Flights, NoFlights, nothing_beside
from dovetail.activities.shared.looks.live_pauses import LivePauses
from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.shared.looks.shared_reads import SharedReads
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.shared.owner_starts import OwnerStarts
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.await_detached import AwaitDetached, DetachPorts
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture, DeparturePorts
from dovetail.activities.termination.drain_node import DrainNode, DrainPorts, EvictionLimits
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.evictor import Evictor
from dovetail.activities.termination.holds import HoldPorts, Holds
from dovetail.activities.termination.mover import Mover, NoMoves
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.activities.termination.unused_launches import UnusedLaunches
from dovetail.activities.upkeep.breakers import BreakerUpkeep
from dovetail.activities.upkeep.buffers import BufferUpkeep
from dovetail.activities.upkeep.cancels import CancelUpkeep
from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.activities.upkeep.consistency import ConsistencyUpkeep
from dovetail.activities.upkeep.faults import FaultUpkeep
from dovetail.activities.upkeep.keep_up import KeepUp, UpkeepTask
from dovetail.activities.upkeep.labels import LabelUpkeep
from dovetail.activities.upkeep.notices import NoticeUpkeep
from dovetail.activities.upkeep.overlays import OverlayUpkeep
from dovetail.activities.upkeep.pauses import PauseUpkeep
from dovetail.activities.upkeep.pools import PoolUpkeep
from dovetail.activities.upkeep.questions import MetricQuestions
from dovetail.activities.upkeep.rollouts import RolloutUpkeep
from dovetail.activities.upkeep.settled import WhileSettled
from dovetail.activities.upkeep.time_rules import TimeRuleUpkeep
from dovetail.activities.upkeep.waiting_drift import WaitingDriftUpkeep
from dovetail.connection.presence import TemporalPresence
from dovetail.model.objects.watched_kinds import FLEET, NODES_AND_CLAIMS, POOLS
from dovetail.model.snapshot import Snapshot
from dovetail.settings.deciding import brake_settings, disruption_settings, placement_settings, well_known_labels
from dovetail.settings.settings import Role, Settings
from dovetail.telemetry.metrics.duties import Duties
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.telemetry.metrics.karpenters.provisioning import Decisions
from dovetail.telemetry.metrics.ours.faults import Faults
from dovetail.telemetry.metrics.ours.last_day import LastDay
from dovetail.wiring.world import World
from dovetail.worker.absence.departures import Departures, DepartureSteps
from dovetail.worker.absence.stand_in import StandIn, Warnings
from dovetail.worker.otlp.observing import Observed

Step = Callable[..., Awaitable[object]]

CONTROL_QUEUES = ("control", "waits", "watches", "cloud")


def never() -> bool:
    """The default of `is_away`: Temporal is never away."""
    return False


@dataclass(frozen=True, kw_only=True)  # without slots, for the steps that are made once
class Wiring:
    """A world and the steps over it. `is_away`: whether Temporal is known not to answer."""

    settings: Settings
    world: World
    client: Callable[[], Client] = activity.client  # a step of an hour outlives the client that it began with
    times: PodTimes
    faults: Faults = field(default_factory=Faults)
    last_day: LastDay = field(default_factory=LastDay)
    is_away: Callable[[], bool] = never
    observed: Observed = field(default_factory=Observed)
    flights: Flights = field(default_factory=NoFlights)  # what keeps what decisions are made from
    findings: Findings = nobody_looks  # what must stop the version of this worker

    def activities(self, roles: Sequence[Role]) -> dict[str, list[Step]]:
        """The steps by queue. Planning has its own, so that a slow decision never delays a drain."""
        queues: dict[str, list[Step]] = {}
        if "control" in roles:
            control = steps_of(*self._control())
            queues.update(dict.fromkeys(CONTROL_QUEUES, control))
        if "plan" in roles:
            queues["plan"] = steps_of(*self._plan())
        return queues

    @cached_property
    def now(self) -> Callable[[], float]:
        """The time for all steps, none of which goes on while this worker may not act."""
        return time_of_steps(self.world.clock.now, self.world.why_unfit)

    @cached_property
    def departure(self) -> DepartureSteps:
        """What begins the departure of a node. All drains of the process share its pace and its turns: those of
        workflows and those of the stand-in."""
        w, now = self.world, self.now
        drain = DrainPorts(
            lookups=w.view,
            claims=w.claims,
            nodes=w.nodes,
            pods=w.pods,
            notices=w.notices,
            cloud=w.cloud,
            pauses=w.view,
            detaching=self.detaching,
            mover=self.mover,
            holds=self.holds,
            repairs=self.live_repairs,
        )
        known, unused = KnownClaims(w.view, w.claims), UnusedLaunches(w.view, w.pools, now)
        departing = DeparturePorts(
            known=known,
            nodes=w.nodes,
            cloud=w.cloud,
            unused=unused,
            places=self.places,
            holds=self.holds,
            console=self.settings.provider.console,
        )
        return DepartureSteps(
            departing=BeginAndEndDeparture(departing, now),
            draining=DrainNode(drain, EvictionLimits(pace=self.pace, turns=self.turns), now),
        )

    @cached_property
    def rebooting(self) -> RebootNodes:
        w = self.world
        ports = RebootPorts(
            claims=w.claims,
            nodes=w.nodes,
            pods=w.pods,
            notices=w.notices,
            cloud=w.cloud,
            repairs=self.live_repairs,
            pauses=w.view,
            holds=self.holds,
            turns=self.turns,
        )
        return RebootNodes(ports, Evictor(w.pods, w.notices, self.pace, self.now), self.now)

    @cached_property
    def live_repairs(self) -> LiveRepairs:
        """What is to be repaired as it is marked or drained."""
        return LiveRepairs(self.world.catalogues, self.now, self.settings.repairs_by_disruption)

    @cached_property
    def pace(self) -> EvictionPace:
        """How fast pods leave, over all drains of the process."""
        return EvictionPace(time.monotonic)

    @cached_property
    def turns(self) -> OwnerTurns:
        """How many pods of one owner leave at once, over all drains and reboots of the process."""
        return OwnerTurns(self.settings.owner_share, self.world.view.all_pods, self.now)

    @cached_property
    def mover(self) -> Mover | NoMoves:
        """Moves pods by a roll-out of their Deployment, unless that is turned off."""
        w = self.world
        return NoMoves() if w.deployments is None else Mover(w.deployments, w.view, w.notices, self.pace, self.now)

    @cached_property
    def detaching(self) -> AwaitDetached:
        w = self.world
        ports = DetachPorts(
            lookups=w.view, claims=w.claims, nodes=w.nodes, notices=w.notices, holds=self.holds, cloud=w.cloud
        )
        return AwaitDetached(ports, self.now)

    @cached_property
    def holds(self) -> Holds:
        """Keeps the clock of everything that holds a drain."""
        w = self.world
        ports = HoldPorts(claims=w.claims, pods=w.pods, notices=w.notices, lookups=w.view, pauses=w.view)
        return Holds(ports, self.now)

    @cached_property
    def places(self) -> KeptPlaces:
        """Nominates pods for the nodes that were made for them."""
        w = self.world
        return KeptPlaces(w.view, w.pods, w.notices, self.now, w.view)

    @cached_property
    def answers(self) -> DirectAnswers | None:
        """Answers the cloud's warnings, with workflows or without; None where the cloud announces nothing."""
        w, queue = self.world, self.world.interruptions
        if queue is None:
            return None
        answering, notices = (
            AnswerInterruptions(w.view, w.claims, queue, self.now),
            InterruptionNotices(w.notices, w.view),
        )
        return DirectAnswers(answering, notices, self.now, self.is_away, w.why_unfit)

    def _control(self) -> list[object]:
        """The steps that act, and those that wait on the cluster."""
        w, now = self.world, self.now
        pools = SharedReads(w.pools.read)
        spaces, rules = SharedReads(w.namespaces.read), SharedReads(w.times.read)
        fleet = partial(w.view.snapshot, NODES_AND_CLAIMS | POOLS)
        pauses = LivePauses(pools=pools, namespaces=spaces, now=now, rules=rules, fleet=fleet)
        mark = MarkPorts(
            claims=w.claims,
            nodes=w.nodes,
            pods=w.pods,
            lookups=w.view,
            pauses=pauses,
            places=Places(w.pools, pauses, now),
            budgets=LiveBudgets(partial(w.view.snapshot, NODES_AND_CLAIMS), w.claims, w.nodes, now),
            mover=self.mover,
            repairs=self.live_repairs,
            reboots=self.rebooting.begin,
        )
        join = JoinPorts(lookups=w.view, claims=w.claims, nodes=w.nodes, places=self.places)
        owners = OwnerStarts(self.settings.cluster)
        marking, known = MarkAndUnmarkNodes(mark, now), KnownClaims(w.view, w.claims)
        delete = DeletePorts(
            claims=w.claims, nodes=w.nodes, notices=w.notices, lookups=w.view, repairs=self.live_repairs
        )
        memory, returned = BreakerMemory(w.pools, pauses, now), ReturnedMoves(w.pools, w.notices, now)
        ties = CreateTies(pauses=pauses, owners=owners, returned=returned)
        return [
            AwaitProgress(w.view, known, now),
            CarryOutOrders(self.settings.cluster, self._order_ports(), marking, now),
            CreateNodeClaims(w.claims, pools, w.notices, now, ties),
            DeleteClaims(delete, owners, returned),
            self.departure.departing,
            self.detaching,
            self.departure.draining,
            GiveBack(w.claims, w.pods, memory),
            AwaitRegisteredAndInitialized(join, now),
            JudgeVersion(self.findings),
            LaunchInstance(known, w.cloud, w.notices, now, w.catalogues),
            marking,
            PublishNotices(w.notices, w.view),
            self.rebooting,
            TerminateInstance(known, w.cloud, now, self.departure.departing),
            *self._of_interruptions(),
        ]

    def _of_interruptions(self) -> list[object]:
        """The steps that read and answer the cloud's warnings, if it gives any."""
        queue, answers = self.world.interruptions, self.answers
        if queue is None or answers is None:
            return []
        watching = WatchInterruptions(self.settings.cluster, queue, time.monotonic, answers, self.client)
        return [watching, answers.answering, answers.notices]

    def _plan(self) -> list[object]:
        """The steps that decide, and those that look over everything."""
        w, now, settings = self.world, self.now, self.settings
        snapshots = Snapshots(w.view, w.catalogues)
        placement, disruption = placement_settings(settings), disruption_settings(settings)
        provisioning = ProvisioningSettings(
            placement=placement,
            idle=settings.batch_idle,
            longest=settings.batch_max,
            seconds=settings.pass_limit,
            claims=w.claims,
        )
        braked = BrakedSnapshots(w.view, w.catalogues, self._brake())
        publisher, decisions = PlacementPublisher(w.notices, w.buffers, now), Decisions(self.times, self.faults)
        costs = DeletionCostWriter(w.pods, disruption, now) if disruption.manages_deletion_costs else None
        followers = DecisionFollowers(
            decisions=decisions,
            faults=self.faults,
            flights=self.flights,
            beside=costs.write_beside if costs is not None else nothing_beside,
            called_off=DroppedPlans(settings.cluster, w.claims).keep,
        )
        return [
            AwaitProvisioningPlan(braked, publisher, provisioning, now, followers),
            AwaitDisruptionPlan(snapshots, w.notices, disruption, now, followers),
            KeepUp(snapshots, self._upkeep_tasks, w.classes, now, self.questions),
            AwaitOrders(settings.cluster, snapshots, self._finders(), now),
        ]

    @cached_property
    def questions(self) -> MetricQuestions:
        return MetricQuestions(self.world.metrics, self.now)

    def _brake(self) -> LaunchBrake:
        w, settings = self.world, self.settings
        return LaunchBrake(
            pools=w.pools,
            notices=w.notices,
            settings=brake_settings(settings),
            well_known=well_known_labels(settings),
            now=self.now,
        )

    def _order_ports(self) -> OrderPorts:
        """What orders are judged by as they are carried out."""
        w = self.world
        again: dict[str, Again] = {"unhealthy": self.repairs}
        if self.settings.gates["StaticCapacity"]:
            again["static_scale_down"] = self.replicas
        return OrderPorts(claims=w.claims, cloud=w.cloud, fleet=self._fleet, again=again)

    def _fleet(self) -> Snapshot:
        w = self.world
        return replace(w.view.snapshot(FLEET), supported_node_classes=w.catalogues.supported_classes())

    @cached_property
    def repairs(self) -> RepairFinder:
        """Finds what is to be repaired, and whether it still is."""
        w, settings = self.world, self.settings
        legacy = settings.gates["NodeRepair"] and not settings.repairs_by_disruption
        return RepairFinder(w.catalogues, w.notices, self.now, repairs=legacy)

    @cached_property
    def replicas(self) -> ReplicaFinder:
        """Finds what static pools lack and what they have too much of."""
        return ReplicaFinder(self.now, self.world.catalogues, well_known_labels(self.settings))

    def _finders(self) -> list[Finder]:
        """The finders of orders, beside those for owners, marks and expiry."""
        w, now, gates = self.world, self.now, self.settings.gates
        finders: list[Finder] = [
            LostInstanceFinder(w.cloud, w.notices, now),
            LostNodeFinder(now),
            self.repairs,
        ]
        if gates["StaticCapacity"]:
            finders.append(self.replicas)
        return finders

    def _upkeep_tasks(self) -> list[UpkeepTask]:
        w, now, settings = self.world, self.now, self.settings
        overlays = [] if w.overlays is None else [OverlayUpkeep(w.overlays, now)]
        buffers = [] if w.buffers is None else [BufferUpkeep(w.buffers, now)]
        return [
            *overlays,
            *buffers,
            ClaimUpkeep(w.claims, w.catalogues, now, well_known_labels(settings), settings.provider.reservation_labels),
            PoolUpkeep(w.pools, w.claims, w.catalogues, now),
            LabelUpkeep(w.claims, w.nodes),
            ConsistencyUpkeep(w.claims, w.notices, now),
            NoticeUpkeep(w.notices),
            FaultUpkeep(w.notices),
            PauseUpkeep(w.notices),
            TimeRuleUpkeep(w.times, now, w.catalogues, w.notices, self.questions),
            RolloutUpkeep(w.times, w.notices),
            WhileSettled(BreakerUpkeep(w.pools, w.notices, now), now),
            WhileSettled(WaitingDriftUpkeep(w.notices), now),
            WhileSettled(CancelUpkeep(settings.cluster, w.claims, w.notices, now), now),
        ]


def times_of(steps: StepHealth, presence: TemporalPresence) -> PodTimes:
    """The times of pods, which this worker publishes while it reports for the cluster."""
    return PodTimes(duties=Duties(steps.works_on, lambda: presence.is_away))


def stand_in_of(wiring: Wiring, presence: TemporalPresence, running: StepHealth) -> StandIn:
    """What this worker does while Temporal is away, with the steps that it serves."""
    world, answers = wiring.world, wiring.answers
    warnings = None if world.interruptions is None or answers is None else Warnings(world.interruptions, answers)
    departures = Departures(wiring.settings.cluster, world.view, world.catalogues, wiring.departure, running.runs)
    return StandIn(
        presence=presence,
        departures=departures,
        view=world.view,
        notices=world.notices,
        warnings=warnings,
        why_unfit=world.why_unfit,
    )


def steps_of(*owners: object) -> list[Step]:
    """Every activity method of these objects."""
    return [
        method
        for owner in owners
        for _, method in inspect.getmembers(owner, inspect.ismethod)
        if hasattr(method, "__temporal_activity_definition")
    ]
