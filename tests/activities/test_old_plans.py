"""A plan is begun within a minute of its snapshot, or not at all; what was begun goes on."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.disruption.superseded import HELD_UP_SECONDS
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.disruption.methods.static_drift import node_from_template
from dovetail.messages.outcomes import CreateOutcome, MarkOutcome
from dovetail.messages.plans import PLAN_SECONDS, DisruptionCommand, Seen
from dovetail.messages.requests import CreateRequest, MarkRequest
from dovetail.messages.states import FRESH_QUIET_SECONDS, SchedulerState, fresh_state
from dovetail.messages.workflow_ids import scheduler_id
from dovetail.model import names
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.ports.failures import Postponed
from tests.activities.test_gated_orders import OnePool
from tests.lifecycle.objects import a_joined_claim, a_joined_node, target_of
from worlds.fakes import FakeClaims, FakeNotices, World, create_ties, mark_ports

OWNER = "c/disrupt/0199"


def a_request(world: World) -> MarkRequest:
    claim, node = world.claims["pool-1"], world.nodes["node-1"]
    target = target_of(claim, node)
    command = DisruptionCommand(reason=DisruptionReason.DRIFTED, method="drift", targets=(target,))
    return MarkRequest(owner=OWNER, command=command, seen=Seen(taken_at=world.clock))


class Schedulers:
    """A client that knows one Scheduler, by its state."""

    status = WorkflowExecutionStatus.RUNNING

    def __init__(self, state: SchedulerState, began: float | None = None) -> None:
        """`began`: its run; with its state where it is not given, as that of one that has not handed over to itself."""
        self.state, self.asked, self.queries = state, list[str](), 0
        self.start_time = datetime.fromtimestamp(state.quiet_until if began is None else began, tz=UTC)

    async def describe(self, **_: object) -> "Schedulers":
        return self

    def get_workflow_handle(self, identity: str) -> "Schedulers":
        self.asked.append(identity)
        return self

    async def query(self, name: str, **_: object) -> SchedulerState:
        self.queries += 1
        return self.state


class Overloaded(Schedulers):
    """A Scheduler whose worker does not come to answer; the server does."""

    async def query(self, name: str, **_: object) -> SchedulerState:
        self.queries += 1
        raise RPCError("Timeout expired", RPCStatusCode.CANCELLED, b"")


async def mark(world: World, request: MarkRequest, scheduler: Schedulers | None = None) -> MarkOutcome:
    marking = MarkAndUnmarkNodes(
        mark_ports(world),
        world.now,
    )
    place = ActivityEnvironment(client=scheduler)  # type: ignore[arg-type]  # a mark asks nothing else of it
    outcome: MarkOutcome = await place.run(marking.mark_nodes, request)
    return outcome


def a_ready_world() -> World:
    world = World()
    world.put(a_joined_claim(), a_joined_node())
    return world


async def test_a_mark_that_was_held_up_for_long_is_refused_and_leaves_nothing() -> None:
    world = a_ready_world()
    request = a_request(world)
    world.clock += PLAN_SECONDS + 1

    outcome = await mark(world, request)

    assert outcome.refused == (("pool-1", "it was decided 61 s ago, on what may have changed since"),)
    assert (world.nodes["node-1"].taints, world.claims["pool-1"].annotations.get(names.OWNER)) == ((), None)


async def test_a_mark_that_was_begun_in_time_is_finished_however_late() -> None:
    world = a_ready_world()
    request = a_request(world)
    begun = world.claims["pool-1"]
    world.put(replace(begun, annotations={**begun.annotations, names.OWNER: OWNER}))
    world.clock += 10 * PLAN_SECONDS

    outcome = await mark(world, request, Schedulers(SchedulerState(cluster="c")))

    assert outcome.marked == ("pool-1",)
    assert [taint.key for taint in world.nodes["node-1"].taints] == [names.DISRUPTED_TAINT]


async def test_a_mark_that_is_quick_asks_no_scheduler() -> None:
    world = a_ready_world()
    request = a_request(world)
    world.clock += HELD_UP_SECONDS - 1

    assert (await mark(world, request)).marked == ("pool-1",)


async def test_a_mark_of_a_scheduler_that_is_no_more_comes_off_before_its_taint() -> None:
    """DIS-51: terminated by a person, another one has planned since; it could not know of this disruption."""
    world = a_ready_world()
    request = a_request(world)
    another = Schedulers(fresh_state("c", world.clock + 1))
    world.clock += FRESH_QUIET_SECONDS + 2
    same = Schedulers(fresh_state("c", world.clock - 10 * FRESH_QUIET_SECONDS))

    refused = await mark(world, request, another)
    tainted = world.nodes["node-1"].taints

    assert (refused.marked, tainted) == ((), ())
    assert names.OWNER not in world.claims["pool-1"].annotations
    assert set(another.asked) == {scheduler_id("c")}
    assert (await mark(world, request, same)).marked == ("pool-1",)


async def test_fifty_marks_that_are_held_up_together_ask_the_scheduler_twice_at_most() -> None:
    """Each asked a workflow of an overloaded worker for all that it knows, and failed where that took five seconds."""
    world = a_ready_world()
    request = replace(a_request(world), owner="c/disrupt/other")
    world.clock += FRESH_QUIET_SECONDS + 2
    scheduler = Schedulers(fresh_state("c", world.clock - 10 * FRESH_QUIET_SECONDS))
    marking = MarkAndUnmarkNodes(mark_ports(world), world.now)
    place = ActivityEnvironment(client=scheduler)  # type: ignore[arg-type]  # a mark asks nothing else of it

    async def all_of_them() -> list[bool]:
        return await asyncio.gather(*[marking._is_superseded(request) for _ in range(50)])

    assert await place.run(all_of_them) == [False] * 50
    assert 1 <= len(scheduler.asked) <= 2


async def test_a_mark_that_was_held_up_does_not_wait_for_a_scheduler_that_has_no_time_to_answer() -> None:
    """A drift of 200 nodes on a machine with ten times its load stood still for 75 s: every mark asked, no answer came
    within five seconds, and all began anew."""
    world = a_ready_world()
    world.clock += 10 * FRESH_QUIET_SECONDS
    request = a_request(world)
    scheduler = Overloaded(fresh_state("c", 1000.0), began=world.clock - FRESH_QUIET_SECONDS)
    world.clock += FRESH_QUIET_SECONDS + 2

    outcome = await mark(world, request, scheduler)

    assert (outcome.marked, scheduler.queries) == (("pool-1",), 0)


async def test_a_mark_waits_for_a_scheduler_that_has_just_begun_and_has_no_time_to_answer() -> None:
    """As for something outside: a failure of each of fifty marks was written with fifty tracebacks."""
    world = a_ready_world()
    request = a_request(world)
    scheduler = Overloaded(fresh_state("c", world.clock), began=world.clock)
    world.clock += FRESH_QUIET_SECONDS + 2

    with pytest.raises(Postponed):
        await mark(world, request, scheduler)

    assert world.nodes["node-1"].taints == ()
    assert (await mark(world, request, Schedulers(fresh_state("c", 0.0), began=world.clock))).marked == ("pool-1",)


@pytest.mark.parametrize("after", [-FRESH_QUIET_SECONDS + 0.1, 0.0, 5.0])
@pytest.mark.parametrize("anew", [False, True])
async def test_a_scheduler_whose_run_began_about_the_decision_says_itself_whether_it_knows(
    after: float, anew: bool
) -> None:
    """It hands over to itself with all that it knows; one that begins anew knows nothing of what another decided."""
    world = a_ready_world()
    world.clock += 10 * FRESH_QUIET_SECONDS
    request = a_request(world)
    began = world.clock + after
    scheduler = Schedulers(fresh_state("c", began if anew else 1000.0), began=began)
    world.clock += FRESH_QUIET_SECONDS + 6

    outcome = await mark(world, request, scheduler)

    assert (bool(outcome.marked), scheduler.queries) == (not anew, 1)


POOL = NodePool(name="pool", uid="u", template=ClaimTemplate(node_class=a_joined_claim().node_class))


async def create(world: World, request: CreateRequest) -> CreateOutcome:
    creating = CreateNodeClaims(FakeClaims(world), OnePool(POOL), FakeNotices(world), world.now, create_ties(world))
    outcome: CreateOutcome = await ActivityEnvironment().run(creating.create_node_claims, request)
    return outcome


async def test_claims_for_pods_of_long_ago_are_not_made_but_those_that_were_are_kept() -> None:
    world = World()
    node = node_from_template(POOL)
    seen = Seen(taken_at=world.clock)
    one = CreateRequest(plan_id="p", proposed=(node,), type_lists=((),), seen=seen)
    two = replace(one, proposed=(node, node))
    made = await create(world, one)
    world.clock += PLAN_SECONDS + 1

    again = await create(world, two)

    assert again.claims == made.claims
    assert [why for _, why in again.refused] == ["it was decided 61 s ago, on what may have changed since"]
    assert len(world.claims) == 1
