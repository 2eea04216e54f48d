"""What the steps get in such a world: the product's own parts, over its ports."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from dovetail.activities.disruption.breakers import BreakerMemory
from dovetail.activities.disruption.delete_claim import DeleteClaims, DeletePorts
from dovetail.activities.disruption.live_budgets import LiveBudgets
from dovetail.activities.disruption.mark_and_unmark_nodes import MarkPorts
from dovetail.activities.disruption.places import Places
from dovetail.activities.disruption.returned_moves import ReturnedMoves
from dovetail.activities.launch.await_registered_and_initialized import JoinPorts
from dovetail.activities.launch.kept_places import KeptPlaces
from dovetail.activities.provisioning.create_node_claims import CreateTies
from dovetail.activities.shared.every_step.heartbeats import HeartbeatInterceptor
from dovetail.activities.shared.every_step.step_health import StepHealth
from dovetail.activities.shared.every_step.step_notices import StepNotices
from dovetail.activities.shared.looks.flights import DecisionFollowers, NoFlights, nothing_beside
from dovetail.activities.shared.looks.live_pauses import LivePauses
from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.shared.owner_starts import OwnerStarts
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.await_detached import AwaitDetached, DetachPorts
from dovetail.activities.termination.begin_and_end_departure import DeparturePorts
from dovetail.activities.termination.drain_node import DrainPorts, EvictionLimits
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.holds import HoldPorts, Holds
from dovetail.activities.termination.mover import NoMoves
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.activities.termination.unused_launches import UnusedLaunches
from dovetail.activities.upkeep.questions import MetricQuestions
from dovetail.messages.plans import DisruptionPlan, Target
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.own.claim_memory import CalledOff
from dovetail.notices.notice import Notice
from dovetail.ports.clock import SameClock
from dovetail.ports.cloud import NodeClassState
from dovetail.telemetry.metrics.duties import Duties
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.telemetry.metrics.karpenters.provisioning import Decisions
from dovetail.telemetry.metrics.ours.faults import Faults
from dovetail.telemetry.metrics.ours.last_day import LastDay
from dovetail.telemetry.metrics.scrape import Scrape
from worlds.fakes.cloud import FakeCloud
from worlds.fakes.lookups import FakeLookups
from worlds.fakes.nodes import FakeClaims, FakeNodes
from worlds.fakes.pods import FakePods
from worlds.fakes.pools import FakeNamespaces, FakePools, FakeRules
from worlds.fakes.world import World


class FakeNotices:
    """Events."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def publish(self, *notices: Notice) -> None:
        self.world.notices += notices


class FakeStarts(OwnerStarts):
    """Workflows of claims, which run nowhere."""

    def __init__(self, world: World) -> None:
        super().__init__("c")
        self.world = world

    async def start(self, kind: str, claim: ClaimRef, node: str = "") -> None:
        self.world.started.append(claim_owner_id(self.cluster, claim.name))


def unlimited(pace: EvictionPace) -> EvictionLimits:
    """No pod waits for others of its owner."""
    return EvictionLimits(pace=pace, turns=OwnerTurns(0.0, tuple, time.time))


def followers(**others: Any) -> DecisionFollowers:
    """What hears of decisions: the metrics alone."""

    async def not_kept(plan: DisruptionPlan, target: Target, off: CalledOff) -> None:
        return None

    faults = Faults()
    decisions = Decisions(PodTimes(duties=on_duty()), faults)
    made = DecisionFollowers(
        decisions=decisions, faults=faults, flights=NoFlights(), beside=nothing_beside, called_off=not_kept
    )
    return replace(made, **others)


def live_pauses(world: World, **others: Any) -> LivePauses:
    """What is paused, frozen or closed in this world: nothing, until a test says so."""
    made = LivePauses(
        pools=FakePools(world),
        namespaces=FakeNamespaces(world),
        rules=FakeRules(world),
        fleet=FakeLookups(world).snapshot,
        now=world.now,
    )
    return replace(made, **others)


def breaker_memory(world: World) -> BreakerMemory:
    return BreakerMemory(FakePools(world), live_pauses(world), world.now)


def returned_moves(world: World) -> ReturnedMoves:
    return ReturnedMoves(FakePools(world), FakeNotices(world), world.now)


def delete_ports(world: World, **others: Any) -> DeletePorts:
    """The ports of the steps that delete claims in this world, some of them replaced."""
    made = DeletePorts(
        claims=FakeClaims(world),
        nodes=FakeNodes(world),
        notices=FakeNotices(world),
        lookups=FakeLookups(world),
        repairs=no_repairs(world.now),
    )
    return replace(made, **others)


def deleting(world: World, **others: Any) -> DeleteClaims:
    """The steps that delete claims."""
    return DeleteClaims(delete_ports(world, **others), FakeStarts(world), returned_moves(world))


def create_ties(world: World, **others: Any) -> CreateTies:
    """What may forbid a creation in this world, and what follows it."""
    made = CreateTies(pauses=live_pauses(world), owners=FakeStarts(world), returned=returned_moves(world))
    return replace(made, **others)


def mark_ports(world: World, **others: Any) -> MarkPorts:
    """The ports of the steps that mark in this world, some of them replaced; no pod is moved. Rates and budgets are
    those of the pools and rules that the steps are given."""
    pools: Any = (pauses := others.pop("pauses", None) or live_pauses(world)).pools
    claims, nodes = others.pop("claims", None) or FakeClaims(world), others.pop("nodes", None) or FakeNodes(world)
    made = MarkPorts(
        claims=claims,
        nodes=nodes,
        pods=FakePods(world),
        lookups=FakeLookups(world),
        pauses=pauses,
        places=Places(pools, pauses, world.now),
        budgets=LiveBudgets(FakeLookups(world).snapshot, claims, nodes, world.now),
        mover=NoMoves(),
        repairs=no_repairs(world.now),
        reboots=no_reboot,
    )
    return replace(made, **others)


def no_repairs(now: Callable[[], float]) -> LiveRepairs:
    """As where the gate NodeRepair is closed."""
    return LiveRepairs(cast(Any, None), now, wanted=False)


async def no_reboot(_: NodeClaim) -> str:
    return "no instance is rebooted"


def kept_places(world: World, **others: Any) -> KeptPlaces:
    """What nominates the pods that a claim keeps places for."""
    given: dict[str, Any] = {"lookups": FakeLookups(world), "pods": FakePods(world), "notices": FakeNotices(world)}
    return KeptPlaces(**{**given, "now": world.now, "view": FakeLookups(world), **others})


def holds(world: World, **others: Any) -> Holds:
    """The clock of what holds a drain in this world."""
    lookups: Any = others.pop("lookups", None) or FakeLookups(world)
    made = HoldPorts(
        claims=FakeClaims(world), pods=FakePods(world), notices=FakeNotices(world), lookups=lookups, pauses=lookups
    )
    return Holds(replace(made, **others), world.now)


def detach_ports(world: World, **others: Any) -> DetachPorts:
    """The ports of the wait for volumes in this world."""
    made = DetachPorts(
        lookups=FakeLookups(world),
        claims=FakeClaims(world),
        nodes=FakeNodes(world),
        notices=FakeNotices(world),
        holds=holds(world),
        cloud=FakeCloud(world),
    )
    return replace(made, **others)


def drain_ports(world: World, **others: Any) -> DrainPorts:
    """The ports of a drain in this world; no pod is moved."""
    lookups: Any = others.get("lookups") or FakeLookups(world)
    made = DrainPorts(
        lookups=lookups,
        claims=FakeClaims(world),
        nodes=FakeNodes(world),
        pods=FakePods(world),
        notices=FakeNotices(world),
        cloud=FakeCloud(world),
        pauses=lookups,
        detaching=AwaitDetached(detach_ports(world), world.now, world.pause),
        mover=NoMoves(),
        holds=holds(world),
        repairs=no_repairs(world.now),
    )
    return replace(made, **others)


def departure_ports(world: World, **others: Any) -> DeparturePorts:
    """The ports of the steps around a drain in this world."""
    view: Any = FakeLookups(world)
    made = DeparturePorts(
        known=KnownClaims(view, FakeClaims(world)),
        nodes=FakeNodes(world),
        cloud=FakeCloud(world),
        unused=UnusedLaunches(view, FakePools(world), world.now),
        places=kept_places(world),
        holds=holds(world),
        console="",
    )
    return replace(made, **others)


def join_ports(world: World, **others: Any) -> JoinPorts:
    """The ports of the wait for a node in this world."""
    made = JoinPorts(
        lookups=FakeLookups(world), claims=FakeClaims(world), nodes=FakeNodes(world), places=kept_places(world)
    )
    return replace(made, **others)


class FakeCatalogues:
    """NodeClasses that are there, and of which nothing else is known."""

    async def node_class(self, _: NodeClassRef) -> NodeClassState:
        return NodeClassState(found=True)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nobody asks for {name} here")


def unasked() -> MetricQuestions:
    """There is no Prometheus."""
    return MetricQuestions(None, time.time)


def step_notices(world: World) -> StepNotices:
    """Who publishes what fails."""
    view: Any = FakeLookups(world)
    return StepNotices(FakeNotices(world), view)


def heartbeating() -> HeartbeatInterceptor:
    """What every worker puts around its steps."""
    return HeartbeatInterceptor(StepHealth(), step_notices(World()))


def on_duty(runs: Callable[[str], bool] = lambda _: True, is_away: Callable[[], bool] = lambda: False) -> Duties:
    """Of a worker that speaks for these loops, all of them where nothing is said, beside a Temporal that answers."""
    return Duties(runs, is_away)


def a_scrape(**given: Any) -> Scrape:
    """What a worker measures; what is not given is as in one that has just begun."""
    made = {
        "version": "",
        "times": PodTimes(duties=on_duty()),
        "clock": SameClock(),
        "why_unfit": str,
        "catalogues": None,
        "faults": Faults(),
        "last_day": LastDay(),
        "conditions": None,
        "observed": True,
        "duties": on_duty(),
        "sources": (),
    }
    return Scrape(**{**made, **given})
