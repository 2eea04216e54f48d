"""Every step of every singleton fails in every way that there is: the singleton goes on, and forgets nothing.

A workflow sees of a failure what `translate` makes of it, and whether a person has to put it right. Of the failures
that look alike to it `make test` plays the first, the soak the others.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.exceptions import ApplicationError

from dovetail.activities.disruption.await_disruption_plan import AwaitDisruptionPlan
from dovetail.activities.disruption.await_progress import AwaitProgress
from dovetail.activities.interruptions.watch_interruptions import WatchInterruptions
from dovetail.activities.provisioning.await_provisioning_plan import AwaitProvisioningPlan
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.shared.every_step.temporal_errors import translate
from dovetail.messages.inputs import CaretakerInput
from dovetail.messages.interruptions import InterruptionsInput
from dovetail.messages.orders import FillPool, Order, Orders
from dovetail.messages.outcomes import CreateOutcome, Go, Hold, NothingPlanned, StepOutcome
from dovetail.messages.states import SchedulerState
from dovetail.messages.workflow_ids import caretaker_id, interruptions_id, scheduler_id, task_queue
from dovetail.model.values.backoff import Backoff
from dovetail.ports import failures
from dovetail.workflows import loops
from dovetail.workflows.caretaker import Caretaker
from dovetail.workflows.interruptions import Interruptions
from dovetail.workflows.options import FOR_A_PERSON
from dovetail.workflows.scheduler import Scheduler
from tests.waiting import until, until_answered
from tests.workflows.conftest import serving_on
from tests.workflows.fake_steps import FakeSteps, not_yet
from tests.workflows.test_caretaker import FILL, ONE_OF_EACH
from tests.workflows.test_caretaker import STEPS as CARETAKER
from tests.workflows.test_scheduler import disruption_plan, provisioning_plan, state_of

pytestmark = pytest.mark.temporal


def leaves(cls: type[Any]) -> list[type]:
    """The classes of failure that are raised: those that no other is made of, and the two that adapters raise."""
    below = [leaf for sub in cls.__subclasses__() if sub.__module__ == failures.__name__ for leaf in leaves(sub)]
    return [cls, *below]


FAILURES = {cls.__name__: cls for cls in leaves(failures.Failure)}


def a_failure(name: str) -> BaseException:
    """As the worker hands it to Temporal; a bug of ours as it is."""
    if name == "bug":
        return RuntimeError("a bug of ours")
    return translate(FAILURES[name]("Kind/name", "it does not go"))


def seen(name: str) -> tuple[object, ...]:
    """What a workflow can tell one failure from another by."""
    error = a_failure(name)
    if not isinstance(error, ApplicationError):
        return (type(error),)
    return error.non_retryable, bool(error.next_retry_delay), error.category, name in FOR_A_PERSON


def ways_to_fail() -> list[Any]:
    """All of them; those that look like an earlier one are for the soak."""
    names = [*FAILURES, "bug"]
    firsts = {seen(name): name for name in reversed(names)}
    return [name if firsts[seen(name)] == name else pytest.param(name, marks=pytest.mark.soak) for name in names]


@dataclass
class Failing:
    """A step that fails for its first calls, and then answers."""

    name: str
    then: Any
    times: int = 2
    calls: int = 0
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, given: Any) -> Any:
        self.calls += 1
        if self.calls <= self.times:
            raise a_failure(self.name)
        self.answered.set()
        return self.then(given) if callable(self.then) else self.then


def waits_on(given: Any) -> Any:
    raise not_yet()


def once(*answers: Any) -> Callable[[Any], Any]:
    """These answers, then nothing more."""
    left = deque(answers)

    def answer(given: Any) -> Any:
        if not left:
            raise not_yet()
        return left.popleft()

    return answer


def again(answer: Any) -> Callable[[Any], Any]:
    """The same answer at the first calls: what a refused step has left undone is found again."""
    return once(*[answer] * 4)


@dataclass(frozen=True)
class Play:
    """A singleton, its steps, and what the other steps answer so that a step is reached."""

    workflow: type
    steps: tuple[type, ...]
    others: Callable[[], Mapping[str, Callable[[Any], Any]]]  # made anew for each test


SCHEDULER = (AwaitProgress, CreateNodeClaims, AwaitDisruptionPlan, AwaitProvisioningPlan)
IDLE_SCHEDULER = {"await_provisioning_plan": waits_on, "await_disruption_plan": waits_on}
IDLE_CARETAKER = {"await_orders": waits_on, "keep_up": waits_on}


def ordering(order: Order) -> Play:
    """A Caretaker that is told to carry this order out."""
    return Play(Caretaker, CARETAKER, lambda: {**IDLE_CARETAKER, "await_orders": again(Orders(orders=(order,)))})


PLAYS: dict[str, Play] = {
    "await_provisioning_plan": Play(Scheduler, SCHEDULER, lambda: IDLE_SCHEDULER),
    "await_disruption_plan": Play(Scheduler, SCHEDULER, lambda: IDLE_SCHEDULER),
    "create_node_claims": Play(
        Scheduler, SCHEDULER, lambda: {**IDLE_SCHEDULER, "await_provisioning_plan": again(provisioning_plan())}
    ),
    "await_marked": Play(
        Scheduler, SCHEDULER, lambda: {**IDLE_SCHEDULER, "await_disruption_plan": once(Go(plan=disruption_plan()))}
    ),
    "await_orders": Play(Caretaker, CARETAKER, lambda: IDLE_CARETAKER),
    "keep_up": Play(Caretaker, CARETAKER, lambda: IDLE_CARETAKER),
    "watch_interruptions": Play(Interruptions, (WatchInterruptions,), dict),
    **{step: ordering(order) for step, order in {**ONE_OF_EACH, "create_node_claims of a static pool": FILL}.items()},
}

ANSWERS: dict[str, Any] = {
    "create_node_claims": CreateOutcome(),
    "await_marked": StepOutcome(),
    **dict.fromkeys(ONE_OF_EACH, StepOutcome()),
}


async def start(client: Client, cluster: str, kind: type) -> WorkflowHandle[Any, Any]:
    given: dict[type, tuple[str, Any]] = {
        Scheduler: (scheduler_id(cluster), SchedulerState(cluster=cluster)),
        Caretaker: (caretaker_id(cluster), CaretakerInput(cluster=cluster)),
        Interruptions: (interruptions_id(cluster), InterruptionsInput(cluster=cluster)),
    }
    identity, state = given[kind]
    return await client.start_workflow(kind.__name__, state, id=identity, task_queue=task_queue(cluster, "control"))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second instead of five: this suite runs in real time."""
    monkeypatch.setattr(loops, "PAUSES", Backoff(first=0.1, longest=60.0))
    monkeypatch.setattr("dovetail.activities.shared.every_step.temporal_errors.SLOW", Backoff(first=0.1, longest=60.0))


def test_no_step_of_a_singleton_is_left_out() -> None:
    names = {name.partition(" ")[0] for name in PLAYS}
    assert names == {
        *("await_provisioning_plan", "await_disruption_plan", "create_node_claims", "await_marked"),
        *("await_orders", "keep_up", "watch_interruptions"),
        *ONE_OF_EACH,
    }
    assert set(FOR_A_PERSON) < set(FAILURES)
    assert isinstance(FILL, FillPool)


async def until_step_answers(handle: WorkflowHandle[Any, Any], failing: Failing, step: str) -> None:
    """The step was asked again and has answered; else what the singleton did instead."""
    try:
        # Longer than a heartbeat timeout: a busy server hands a step to a poll that has just ended, and gives it to
        # nobody else before that.
        await asyncio.wait_for(failing.answered.wait(), 150)
    except TimeoutError:
        events = [f"{e.event_time.ToJsonString()} {e.event_type}" async for e in handle.fetch_history_events()]
        pending = (await handle.describe()).raw_description.pending_activities
        pytest.fail(f"{step} was called {failing.calls} times; pending: {pending}; events: {events[-40:]}")


@pytest.mark.parametrize("failure", ways_to_fail())
async def test_a_singleton_goes_on_whichever_of_its_steps_fails(full_server: Client, failure: str) -> None:
    """One cluster for each step, all side by side."""

    async def run(step: str, play: Play) -> None:
        name = step.partition(" ")[0]
        failing = Failing(failure, ANSWERS.get(name, waits_on))
        steps = FakeSteps(**{**ANSWERS, **play.others(), name: failing})
        async with serving_on(full_server, sandboxed=False)([play.workflow], steps.of(*play.steps)) as cluster:
            handle = await start(full_server, cluster, play.workflow)
            try:
                await until_step_answers(handle, failing, step)
                described = await full_server.get_workflow_handle(handle.id).describe()
                assert described.status == WorkflowExecutionStatus.RUNNING, step
                assert described.run_id == handle.first_execution_run_id, f"{step}: it has begun anew"
            finally:
                await handle.terminate()

    await asyncio.gather(*[run(step, play) for step, play in PLAYS.items()])


async def test_a_failed_turn_forgets_nothing_and_the_other_loop_goes_on(full_server: Client) -> None:
    """Held plan, awaited mark and nominations outlive a refused step; its text stands in the details."""
    refused = translate(failures.Forbidden("NodeClaim/a", "an admission policy says no"))

    def refuse(given: Any) -> Any:
        raise refused

    held = Hold(plan=disruption_plan("node-9"), due=9e9)
    steps = FakeSteps(
        await_provisioning_plan=once(provisioning_plan(nominated=("node-5",))),
        create_node_claims=refuse,
        await_disruption_plan=once(held, Go(plan=disruption_plan("node-1"))),
        await_marked=waits_on,
    )
    async with serving_on(full_server, sandboxed=False)([Scheduler], steps.of(*SCHEDULER)) as cluster:
        handle = await start(full_server, cluster, Scheduler)
        await until(lambda: steps.arguments("await_marked") and len(steps.arguments("await_provisioning_plan")) >= 2)
        state = await state_of(handle)
        description = await handle.describe()
        await handle.terminate()

    assert description.run_id == handle.first_execution_run_id
    assert [h.plan for h in state.held] == [held.plan]
    assert len(state.awaiting) == 1
    assert [node for node, _ in state.nominations] == ["node-5"]


async def test_what_fails_stands_in_the_details_until_it_succeeds(full_server: Client) -> None:
    gate = {"open": False}

    def plan(given: Any) -> Any:
        if not gate["open"]:
            raise translate(failures.Refused("NodePool/a", "this very request is wrong"))
        return NothingPlanned() if len(steps.arguments("await_provisioning_plan")) < 8 else waits_on(given)

    steps = FakeSteps(await_provisioning_plan=plan, await_disruption_plan=waits_on)
    async with serving_on(full_server, sandboxed=False)([Scheduler], steps.of(*SCHEDULER)) as cluster:
        handle = await start(full_server, cluster, Scheduler)
        await until(lambda: len(steps.arguments("await_provisioning_plan")) >= 2)
        failing = await details(handle)
        gate["open"] = True
        await until_answered(lambda: nothing_fails(handle))
        await handle.terminate()

    assert "**provisioning fails**" in failing
    assert "await_provisioning_plan: Refused: NodePool/a: this very request is wrong" in failing


async def test_a_poke_ends_the_wait_after_a_failure(full_server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "PAUSES", Backoff(first=60.0, longest=60.0))
    steps = FakeSteps(
        await_orders=Failing("Refused", waits_on, times=1),
        keep_up=waits_on,
    )
    async with serving_on(full_server, sandboxed=False)([Caretaker], steps.of(*CARETAKER)) as cluster:
        handle = await start(full_server, cluster, Caretaker)
        await until_answered(lambda: has_timer(handle))
        await handle.signal("poke")
        await until(lambda: len(steps.arguments("await_orders")) >= 2)
        await handle.terminate()


async def test_a_loop_that_fails_for_ever_begins_as_new_with_its_state(full_server: Client) -> None:
    """Its history must not grow without end, and no wait after a failure may hold the renewal up."""
    steps = FakeSteps(
        await_provisioning_plan=Failing("Refused", waits_on, times=1000),
        await_disruption_plan=waits_on,
    )
    async with serving_on(full_server, sandboxed=False)([Scheduler], steps.of(*SCHEDULER)) as cluster:
        state = SchedulerState(cluster=cluster, max_history=30, quiet_until=7.0)
        handle = await full_server.start_workflow(
            Scheduler.run, state, id=scheduler_id(cluster), task_queue=task_queue(cluster, "control")
        )
        latest = full_server.get_workflow_handle(handle.id)
        await until_answered(lambda: renewed(latest))
        found = await state_of(latest)
        await latest.terminate()

    assert found.generation >= 1
    assert found.quiet_until == 7.0


def test_pauses_grow_from_five_seconds_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert [loops.Trouble(times=n, text="").pause for n in range(1, 8)] == [5, 10, 20, 40, 60, 60, 60]


def test_what_a_person_mends_is_tried_again_slowly_and_what_is_wrong_is_not() -> None:
    found = {name: translate(cls("Kind/name", "no")) for name, cls in FAILURES.items()}
    final = {name for name, error in found.items() if isinstance(error, ApplicationError) and error.non_retryable}
    slow = {name for name, error in found.items() if isinstance(error, ApplicationError) and error.next_retry_delay}
    assert final == {"Permanent", "Refused", "Taken"}
    assert slow == {"Forbidden", "Misconfigured", "Unauthenticated"}


async def renewed(handle: WorkflowHandle[Any, Any]) -> bool:
    return (await state_of(handle)).generation >= 1


async def has_timer(handle: WorkflowHandle[Any, Any]) -> bool:
    return any(event.HasField("timer_started_event_attributes") for event in (await handle.fetch_history()).events)


async def nothing_fails(handle: WorkflowHandle[Any, Any]) -> bool:
    return "fails" not in await details(handle)


async def details(handle: WorkflowHandle[Any, Any]) -> str:
    """What the Web UI shows."""
    found = await handle.query("__temporal_workflow_metadata")
    return str(found)
