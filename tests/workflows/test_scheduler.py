"""Scheduler: two loops, and what they must never lose (docs/decisions/0001)."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType, ParentClosePolicy
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle, WorkflowHistory

from dovetail.activities.disruption.await_disruption_plan import AwaitDisruptionPlan
from dovetail.activities.disruption.await_progress import AwaitProgress
from dovetail.activities.disruption.delete_claim import DeleteClaims
from dovetail.activities.disruption.give_back import GiveBack
from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.disruption.publish_notices import PublishNotices
from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.provisioning.await_provisioning_plan import AwaitProvisioningPlan
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.outcomes import (
    CreateOutcome,
    Drop,
    Due,
    Go,
    Hold,
    LaunchOutcome,
    MarkOutcome,
    NothingPlanned,
    StepOutcome,
)
from dovetail.messages.plans import (
    DisruptionCommand,
    DisruptionPlan,
    ProposedNode,
    ProvisioningPlan,
    Seen,
    Target,
    claim_name,
)
from dovetail.messages.requests import CreateRequest, DisruptionRequest, MarkRequest, ProvisioningRequest
from dovetail.messages.states import Remembered, SchedulerState
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.workflow_ids import claim_owner_id, disruption_id, scheduler_id, task_queue
from dovetail.messages.writes import Write
from dovetail.model.nodes import NodeClassRef
from dovetail.workflows.claim_owners import STARTS_AT_ONCE
from dovetail.workflows.disrupt_nodes import DisruptNodes
from dovetail.workflows.launch_node import LaunchNode
from dovetail.workflows.scheduler import Scheduler
from dovetail.workflows.terminate_node import TerminateNode
from tests.waiting import until
from tests.workflows.conftest import serving_on
from tests.workflows.fake_steps import FakeSteps, not_yet

pytestmark = pytest.mark.temporal

STEPS = (
    AwaitProgress,
    CreateNodeClaims,
    DeleteClaims,
    BeginAndEndDeparture,
    AwaitDisruptionPlan,
    GiveBack,
    LaunchInstance,
    MarkAndUnmarkNodes,
    PublishNotices,
    AwaitProvisioningPlan,
)
PLANNERS = ("await_provisioning_plan", "await_disruption_plan")
WORKFLOWS: list[type] = [Scheduler, LaunchNode, DisruptNodes, TerminateNode]
SEEN = Seen(taken_at=0.0, versions=(("Node", 1000), ("NodeClaim", 1000)))


def provisioning_plan(nominated: tuple[str, ...] = (), nodes: int = 1) -> ProvisioningPlan:
    proposed = ProposedNode(
        pool="pool",
        pool_uid="pool-uid",
        node_class=NodeClassRef(group="test", kind="TestNodeClass", name="default"),
        requirements=(),
        type_list=0,
    )
    return ProvisioningPlan(seen=SEEN, proposed=(proposed,) * nodes, type_lists=(("t",),), nominated=nominated)


def disruption_plan(node: str = "node-1", seen: Seen = SEEN) -> DisruptionPlan:
    target = Target(
        claim=f"claim-of-{node}", claim_uid="uid", node=node, node_uid="nuid", provider_id="test://1", pool="pool"
    )
    command = DisruptionCommand(reason="Empty", method="emptiness", targets=(target,))
    return DisruptionPlan(seen=seen, commands=(command,))


@dataclass
class Script:
    """What the planners answer, one thing after another, and the steps that they answer in."""

    provisioning: deque[Any] = field(default_factory=deque)
    disruption: deque[Any] = field(default_factory=deque)
    marked: deque[Any] = field(default_factory=deque)
    writes: tuple[Write, ...] = ()

    def steps(self) -> FakeSteps:
        return FakeSteps(
            await_provisioning_plan=lambda given: next_of(self.provisioning, given),
            await_disruption_plan=lambda given: next_of(self.disruption, given),
            await_marked=lambda given: next_of(self.marked, given) if self.marked else StepOutcome(),
            create_node_claims=self.create,
            launch_instance=LaunchOutcome(kind="gone"),
            begin_departure=lambda ref: Departure(claim=ref, claim_gone=True),
            mark_nodes=mark_all,
            delete_claim=StepOutcome(),
            await_gone=StepOutcome(),
        )

    def create(self, request: CreateRequest) -> CreateOutcome:
        names = [claim_name(p.pool, request.plan_id, i) for i, p in enumerate(request.proposed)]
        return CreateOutcome(claims=tuple(ClaimRef(name=n, uid=f"uid-of-{n}") for n in names), writes=self.writes)


def next_of(answers: deque[Any], given: Any) -> Any:
    """The next answer; none yet is tried again in a second. A function is asked and may refuse by raising."""
    if not answers:
        raise not_yet()
    answer = answers[0](given) if callable(answers[0]) else answers[0]
    answers.popleft()
    return answer


def gone_after(event: asyncio.Event) -> Callable[[ClaimRef], LaunchOutcome]:
    """A launch that says that it was reached."""

    def launch(ref: ClaimRef) -> LaunchOutcome:
        event.set()
        return LaunchOutcome(kind="gone")

    return launch


def mark_all(request: MarkRequest) -> MarkOutcome:
    return MarkOutcome(marked=tuple(t.claim for t in request.command.targets))


async def start(client: Client, cluster: str, state: SchedulerState | None = None) -> WorkflowHandle[Any, Any]:
    state = state or SchedulerState(cluster=cluster)
    return await client.start_workflow(
        Scheduler.run, state, id=scheduler_id(cluster), task_queue=task_queue(cluster, "control")
    )


async def state_of(handle: WorkflowHandle[Any, Any]) -> SchedulerState:
    found: SchedulerState = await handle.query(Scheduler.status)
    return found


def asked(steps: FakeSteps, name: str) -> Any:
    """The last request; None where there was none."""
    return (steps.arguments(name) or [None])[-1]


def must_see(steps: FakeSteps, name: str) -> tuple[Write, ...]:
    last = asked(steps, name)
    return () if last is None else tuple(last.must_see)


def requests(steps: FakeSteps, name: str) -> list[Any]:
    """What a planner was asked; an attempt that only repeats the last one left out."""
    found: list[Any] = []
    for argument in steps.arguments(name):
        if not found or found[-1] != argument:
            found.append(argument)
    return found


async def test_a_plan_for_pods_becomes_claims_and_a_launch_for_each(full_server: Client) -> None:
    script = Script(provisioning=deque([provisioning_plan(nodes=3)]))
    steps = script.steps()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: len(steps.arguments("launch_instance")) == 3)
        await handle.terminate()

    plan_id = steps.arguments("create_node_claims")[0].plan_id
    launched = sorted(ref.name for ref in steps.arguments("launch_instance"))
    assert launched == [claim_name("pool", plan_id, i) for i in range(3)]


async def test_launches_that_the_creating_step_has_started_are_no_children(full_server: Client) -> None:
    """Decision 286: each child was five events of the Scheduler's history, and an action more."""
    script = Script(provisioning=deque([provisioning_plan()]))
    steps = script.steps()
    steps.answers["create_node_claims"] = lambda request: replace(script.create(request), owned=True)

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: len(requests(steps, "await_provisioning_plan")) > 1)
        launching = (await state_of(handle)).launching
        history = await handle.fetch_history()
        await handle.terminate()

    assert len(launching) == 1
    assert sum(starts_by_task(history, "LaunchNode")) == 0


async def test_more_launches_and_disruptions_than_begin_at_once_are_started_in_parts(full_server: Client) -> None:
    commands = tuple(disruption_plan(f"node-{number}").commands[0] for number in range(25))
    script = Script(
        provisioning=deque([provisioning_plan(nodes=25)]),
        disruption=deque([Go(plan=DisruptionPlan(seen=SEEN, commands=commands))]),
    )
    steps = script.steps()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("await_marked"), 60)
        await until(lambda: len(launched_by(steps)) == 25, 60)
        history = await handle.fetch_history()
        await handle.terminate()

    assert starts_by_task(history, "LaunchNode") == starts_by_task(history, "DisruptNodes") == [STARTS_AT_ONCE, 5]
    assert len(steps.arguments("await_marked")[0]) == 25


async def test_no_command_waits_for_the_end_of_another(full_server: Client) -> None:
    """DIT-116: while each of them still waits for its nodes to be gone, all have been begun and their marks awaited."""
    commands = tuple(disruption_plan(f"node-{number}").commands[0] for number in range(2))
    steps = Script(disruption=deque([Go(plan=DisruptionPlan(seen=SEEN, commands=commands))])).steps()
    steps.answers["await_gone"] = lambda given: wait_long()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("await_marked"))
        await until(lambda: len(steps.arguments("mark_nodes")) == 2)
        await handle.terminate()

    assert len(steps.arguments("await_marked")[0]) == 2
    assert {target.node for request in steps.arguments("mark_nodes") for target in request.command.targets} == {
        "node-0",
        "node-1",
    }


def starts_by_task(history: WorkflowHistory, kind: str) -> list[int]:
    """How many children of a type each workflow task has started, where it has."""
    asked = [event.start_child_workflow_execution_initiated_event_attributes for event in history.events]
    tasks = [start.workflow_task_completed_event_id for start in asked if start.workflow_type.name == kind]
    return [tasks.count(task) for task in sorted(set(tasks))]


async def test_a_claim_that_has_its_owner_already_holds_nothing_up(full_server: Client) -> None:
    script = Script(provisioning=deque([provisioning_plan(nodes=1)]))
    steps = script.steps()
    steps.answers["launch_instance"] = lambda ref: wait_long()
    steps.answers["create_node_claims"] = CreateOutcome(claims=(ClaimRef(name="known", uid="uid", pool="pool"),))

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        claim = ClaimInput(cluster=cluster, claim=ClaimRef(name="known", uid="uid", pool="pool"))
        queue = task_queue(cluster, "control")
        owner = await full_server.start_workflow(
            LaunchNode.run, claim, id=claim_owner_id(cluster, "known"), task_queue=queue
        )
        handle = await start(full_server, cluster)
        await until(lambda: requests(steps, "await_provisioning_plan")[1:])
        state = await state_of(handle)
        await handle.terminate()
        await owner.terminate()

    assert [claim.name for claim in state.launching] == ["known"]
    assert len(steps.arguments("launch_instance")) == 1


async def test_no_carry_out_loses_its_child_in_many_generations_with_pokes(full_server: Client) -> None:
    """A run that began anew as soon as one loop wanted to lost 3 plans of 51 (docs/decisions/0001)."""
    rounds = 15
    script = Script(
        provisioning=deque([provisioning_plan() for _ in range(rounds)]),
        disruption=deque([Go(plan=disruption_plan(f"node-{n}")) for n in range(rounds)]),
    )
    steps = script.steps()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster, SchedulerState(cluster=cluster, max_history=40))
        current = full_server.get_workflow_handle(handle.id)
        poking = asyncio.create_task(poke_at_any_moment(current, steps))
        # Both loops ask once more: then the last plans have been carried out, or a poke has taken them away.
        await until(lambda: not script.provisioning and not script.disruption, 120)
        await until(both_ask_again(steps), 30)
        poking.cancel()
        await until(lambda: created_by(steps) == launched_by(steps) and started_by(steps) <= marked_by(steps), 30)
        generation = (await state_of(current)).generation
        await current.terminate()

    assert generation >= 3
    assert len(created_by(steps)) > 4 and len(started_by(steps)) > 4  # a poke may take a plan away before it begins
    assert created_by(steps) == launched_by(steps)
    assert started_by(steps) <= marked_by(steps)  # the last one may have marked before it was asked about


def created_by(steps: FakeSteps) -> set[str]:
    return {claim_name("pool", r.plan_id, 0) for r in steps.arguments("create_node_claims")}


def launched_by(steps: FakeSteps) -> set[str]:
    return {ref.name for ref in steps.arguments("launch_instance")}


def started_by(steps: FakeSteps) -> set[str]:
    return {one.workflow_id for given in steps.arguments("await_marked") for one in given}


def marked_by(steps: FakeSteps) -> set[str]:
    return {request.owner for request in steps.arguments("mark_nodes")}


def both_ask_again(steps: FakeSteps) -> Callable[[], bool]:
    """Whether both loops have asked for a plan since this was called."""
    before = {name: len(steps.arguments(name)) for name in PLANNERS}
    return lambda: all(len(steps.arguments(name)) > before[name] for name in PLANNERS)


async def poke_at_any_moment(handle: WorkflowHandle[Any, Any], steps: FakeSteps) -> None:
    """Of what both loops do once they have asked again. That is measured: on a slow machine, pokes in the rhythm of a
    fast one take nearly every plan away before it begins."""
    chance, took = random.Random(1), 0.1
    while True:
        await asyncio.sleep(chance.uniform(0, 4 * took))
        asked, since = both_ask_again(steps), time.monotonic()
        await handle.signal("poke")
        await until(asked, 60, "both loops ask again after a poke")
        took = time.monotonic() - since


async def test_a_write_must_be_seen_by_every_request_of_the_next_minute(full_server: Client) -> None:
    """27 of 150 creates are answered before the watch delivers them."""
    write = Write(kind="NodeClaim", name="pool-1", uid="u", version=7)
    script = Script(provisioning=deque([provisioning_plan()]), writes=(write,))
    steps = script.steps()
    began = time.time()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: must_see(steps, "await_provisioning_plan") == (write,))
        await handle.signal("poke")
        await until(lambda: must_see(steps, "await_disruption_plan") == (write,))
        remembered = (await state_of(handle)).must_see
        ended = time.time()
        await handle.terminate()

    assert [began < r.until - 60.0 < ended for r in remembered] == [True], "for a minute from when it was created"


async def test_a_write_that_was_remembered_long_enough_is_forgotten(full_server: Client) -> None:
    """Nothing is said of when: a busy machine may come to a request late."""
    soon, later = (Write(kind="NodeClaim", name=name, uid=name, version=7) for name in ("soon", "later"))
    steps = Script().steps()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        ends = {soon: time.time() + 2, later: time.time() + 3600}
        state = SchedulerState(
            cluster=cluster,
            must_see=tuple(Remembered(write=write, until=ends[write]) for write in ends),
            nominations=tuple((write.name, ends[write]) for write in ends),
        )
        handle = await start(full_server, cluster, state)
        poking = asyncio.create_task(poke_at_any_moment(handle, steps))
        await until(lambda: must_see(steps, "await_disruption_plan") == (later,))
        poking.cancel()
        requests = steps.arguments("await_disruption_plan")
        await handle.terminate()

    assert all(later in request.must_see and "later" in dict(request.nominations) for request in requests)
    assert [name for name, _ in requests[-1].nominations] == ["later"]


async def test_a_plan_that_has_not_seen_what_was_written_meanwhile_is_thrown_away_and_asked_for_again(
    full_server: Client,
) -> None:
    write = Write(kind="NodeClaim", name="pool-1", uid="u", version=7)
    blind = disruption_plan("blind", Seen(taken_at=0, versions=(("NodeClaim", 6),)))
    created = asyncio.Event()

    def not_before_the_write(given: DisruptionRequest) -> Go:
        if not created.is_set():
            raise not_yet()
        return Go(plan=blind)

    script = Script(
        provisioning=deque([provisioning_plan()]),
        disruption=deque([not_before_the_write, Go(plan=disruption_plan("sighted"))]),
        writes=(write,),
    )
    steps = script.steps()
    steps.answers["launch_instance"] = gone_after(created)

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("mark_nodes"))
        await handle.terminate()

    assert [r.command.targets[0].node for r in steps.arguments("mark_nodes")] == ["sighted"]
    assert requests(steps, "await_disruption_plan")[-1].must_see == (write,)


async def test_a_nominated_node_is_named_to_the_planner_and_not_disrupted(full_server: Client) -> None:
    """STA-10: pods are expected to land on it."""
    planned = asyncio.Event()

    def after_the_nomination(given: DisruptionRequest) -> Go:
        if not planned.is_set():
            raise not_yet()
        return Go(plan=disruption_plan("node-9"))

    def nominate(given: ProvisioningRequest) -> ProvisioningPlan:
        return replace(
            provisioning_plan(nominated=("node-9",)), seen=Seen(taken_at=0.0, versions=(*SEEN.versions, ("Pod", 5)))
        )

    script = Script(
        provisioning=deque([nominate]),
        disruption=deque([after_the_nomination, Go(plan=disruption_plan("node-1"))]),
    )
    steps = script.steps()
    steps.answers["launch_instance"] = gone_after(planned)

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("mark_nodes"))
        await handle.terminate()

    assert [r.command.targets[0].node for r in steps.arguments("mark_nodes")] == ["node-1"]
    second = requests(steps, "await_disruption_plan")[1]
    assert ([n for n, _ in second.nominations], second.expected, second.expected_seen) == (["node-9"], ("node-9",), 5)


async def test_a_nominated_node_is_disrupted_by_a_decision_that_knew_of_it(full_server: Client) -> None:
    """DIS-20: the pods that it was nominated for wait no more; the decision saw that, and asked in vain for it."""

    planned = asyncio.Event()

    def nothing_before_it(given: DisruptionRequest) -> NothingPlanned:
        if not planned.is_set():
            raise not_yet()
        return NothingPlanned()

    script = Script(
        provisioning=deque([provisioning_plan(nominated=("node-9",))]),
        disruption=deque([nothing_before_it, Go(plan=disruption_plan("node-9"))]),
    )
    steps = script.steps()
    steps.answers["launch_instance"] = gone_after(planned)

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("mark_nodes"))
        await handle.terminate()

    assert [r.command.targets[0].node for r in steps.arguments("mark_nodes")] == ["node-9"]


@pytest.mark.parametrize("verdict", ["go", "drop"])
async def test_a_held_plan_travels_with_the_request_until_it_is_judged(full_server: Client, verdict: str) -> None:
    """DIS-134, docs/decisions/0001-scheduler.md."""
    plan = disruption_plan("node-1")
    judged = Go(plan=plan, held=0) if verdict == "go" else Drop(held=0, why="a pod was bound")
    script = Script(disruption=deque([Hold(plan=plan, due=15.0), judged, Hold(plan=disruption_plan("n2"), due=99.0)]))
    steps = script.steps()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: not script.disruption)
        await until(lambda: [h.due for h in asked(steps, "await_disruption_plan").held] == [99.0])
        state = await state_of(handle)
        await handle.terminate()

    sent = requests(steps, "await_disruption_plan")
    assert [h.plan for h in sent[1].held] == [plan]
    assert [h.plan.commands[0].targets[0].node for h in state.held] == ["n2"]
    marked = [r.command.targets[0].node for r in steps.arguments("mark_nodes")]
    assert marked == (["node-1"] if verdict == "go" else [])
    assert verdict == "go" or "a pod was bound" in state.recent[-1].text


async def test_held_plans_that_are_due_together_are_marked_before_the_next_decision(full_server: Client) -> None:
    """docs/decisions/0001-scheduler.md: one after another, each waited for the marks of those before it."""
    first, between, last = (disruption_plan(f"node-{i}") for i in (1, 2, 3))
    script = Script(
        disruption=deque(
            [
                *[Hold(plan=plan, due=15.0) for plan in (first, between, last)],
                Go(plan=first, held=0, others=(Due(plan=last, held=2),)),
            ]
        )
    )
    steps = script.steps()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: len(requests(steps, "await_disruption_plan")) == 5)
        awaited = steps.arguments("await_marked")
        await handle.terminate()

    assert sorted(r.command.targets[0].node for r in steps.arguments("mark_nodes")) == ["node-1", "node-3"]
    assert [len(marks) for marks in awaited] == [2]
    assert [h.plan for h in requests(steps, "await_disruption_plan")[4].held] == [between]


def wait() -> Any:
    raise not_yet()


async def test_nothing_is_planned_between_a_disruption_and_its_mark(full_server: Client) -> None:
    """One plan at a time is between decision and mark: budgets are arithmetic on a snapshot that holds every mark."""
    seen = asyncio.Event()
    script = Script(
        disruption=deque([Go(plan=disruption_plan())]),
        marked=deque([lambda given: StepOutcome() if seen.is_set() else wait()]),
    )
    steps = script.steps()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("await_marked"))
        before = len(steps.arguments("await_disruption_plan"))
        await handle.signal("poke")
        await asyncio.sleep(3)
        during = len(steps.arguments("await_disruption_plan"))
        seen.set()
        await until(lambda: len(steps.arguments("await_disruption_plan")) > before)
        await handle.terminate()

    assert during == before


async def test_a_poke_asks_both_planners_again(full_server: Client) -> None:
    steps = Script().steps()
    for name in ("await_provisioning_plan", "await_disruption_plan"):
        steps.answers[name] = lambda given: wait_long()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("await_provisioning_plan") and steps.arguments("await_disruption_plan"))
        before = len(steps.calls)
        await handle.signal("poke")
        await until(lambda: len(steps.calls) == before + 2)
        await handle.terminate()


def wait_long() -> Any:
    raise not_yet(86_400)


async def test_children_are_abandoned_and_outlive_the_scheduler(full_server: Client) -> None:
    """The default kills running children when the parent continues as new."""
    script = Script(provisioning=deque([provisioning_plan()]), disruption=deque([Go(plan=disruption_plan())]))
    steps = script.steps()
    steps.answers["launch_instance"] = lambda ref: wait_long()
    steps.answers["await_gone"] = lambda given: wait_long()

    async with serving_on(full_server)(WORKFLOWS, steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("launch_instance") and steps.arguments("await_gone"))
        await until(lambda: steps.arguments("await_marked"))
        history = await handle.fetch_history()
        await handle.terminate()
        owner = steps.arguments("mark_nodes")[0].owner
        child = await full_server.get_workflow_handle(owner).describe()
        await full_server.get_workflow_handle(owner).terminate()

    policies = [
        event.start_child_workflow_execution_initiated_event_attributes.parent_close_policy
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
    ]
    assert policies == [ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON] * 2
    assert child.status == WorkflowExecutionStatus.RUNNING
    assert owner.startswith(disruption_id(cluster, ""))
