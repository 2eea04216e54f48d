"""DisruptNodes: forward to the delete, undone before it, never after it (DIS-144 to DIS-158)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.testing import WorkflowEnvironment

from dovetail.activities.disruption.await_progress import AwaitProgress
from dovetail.activities.disruption.delete_claim import DeleteClaims
from dovetail.activities.disruption.give_back import GiveBack
from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.disruption.publish_notices import PublishNotices
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.shared.every_step.temporal_errors import translate
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.messages.inputs import DisruptInput
from dovetail.messages.outcomes import (
    CreateOutcome,
    DisruptionRecord,
    DrainOutcome,
    MarkOutcome,
    ReadyOutcome,
    StepOutcome,
)
from dovetail.messages.plans import DisruptionCommand, ProposedNode, Seen, Target, claim_name
from dovetail.messages.requests import CreateRequest, MarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_ids import disruption_id, task_queue
from dovetail.model.nodes import NodeClassRef
from dovetail.ports.failures import Forbidden, Refused
from dovetail.telemetry.metrics.ours import outcomes
from dovetail.workflows.disrupt_nodes import DisruptNodes
from dovetail.workflows.launch_node import LaunchNode
from tests.metrics.test_lifecycle import Meter
from tests.system.histories import replayer
from tests.workflows.conftest import Serving, serving_on
from tests.workflows.fake_steps import FakeSteps, not_yet

pytestmark = pytest.mark.temporal

STEPS = (AwaitProgress, CreateNodeClaims, DeleteClaims, DrainNode, GiveBack, MarkAndUnmarkNodes, PublishNotices)
PLAN = "0190-plan"
FORWARD = ["mark_nodes", "delete_claim", "await_gone"]
WITH_REPLACEMENT = ["mark_nodes", "create_node_claims", "await_ready", "delete_claim", "await_gone"]


def a_target(number: int = 1) -> Target:
    return Target(
        claim=f"claim-{number}",
        claim_uid=f"uid-{number}",
        node=f"node-{number}",
        node_uid=f"node-uid-{number}",
        provider_id=f"test://{number}",
        pool="pool",
    )


def a_replacement() -> ProposedNode:
    return ProposedNode(
        pool="pool",
        pool_uid="pool-uid",
        node_class=NodeClassRef(group="test", kind="TestNodeClass", name="default"),
        requirements=(),
        type_list=0,
    )


def a_command(targets: int = 1, replacements: int = 0) -> DisruptionCommand:
    return DisruptionCommand(
        reason="Drifted" if replacements else "Empty",
        method="drift" if replacements else "emptiness",
        targets=tuple(a_target(n) for n in range(1, targets + 1)),
        replacements=tuple(a_replacement() for _ in range(replacements)),
    )


def mark_all(request: MarkRequest) -> MarkOutcome:
    return MarkOutcome(marked=tuple(t.claim for t in request.command.targets))


def create_all(request: CreateRequest) -> CreateOutcome:
    names = [claim_name(p.pool, request.plan_id, i) for i, p in enumerate(request.proposed)]
    return CreateOutcome(claims=tuple(ClaimRef(name=name, uid=f"uid-of-{name}") for name in names))


def willing(**other: Any) -> FakeSteps:
    """Steps that all succeed at once."""
    answers: dict[str, Any] = {
        "mark_nodes": mark_all,
        "unmark_nodes": StepOutcome(),
        "create_node_claims": create_all,
        "await_ready": ReadyOutcome(kind="ready"),
        "drain_node": DrainOutcome(),
        "delete_claim": StepOutcome(),
        "delete_claims": StepOutcome(),
        "await_gone": StepOutcome(),
        "give_back": StepOutcome(),
        "publish": None,
        "launch_instance": lambda given: (_ for _ in ()).throw(not_yet(3600)),
    }
    return FakeSteps(**{**answers, **other})


async def start(env: WorkflowEnvironment, cluster: str, command: DisruptionCommand) -> WorkflowHandle[Any, Any]:
    return await start_on(env.client, cluster, command)


async def start_on(client: Client, cluster: str, command: DisruptionCommand) -> WorkflowHandle[Any, Any]:
    given = DisruptInput(
        cluster=cluster, plan_id=PLAN, command=command, type_lists=(("m5.large",),), seen=Seen(taken_at=0)
    )
    return await client.start_workflow(
        DisruptNodes.run, given, id=disruption_id(cluster, PLAN), task_queue=task_queue(cluster, "control")
    )


async def result_of(handle: WorkflowHandle[Any, Any]) -> DisruptionRecord:
    record: DisruptionRecord = await handle.result()
    return record


async def test_an_empty_node_is_marked_deleted_and_awaited(skipping: WorkflowEnvironment, serving: Serving) -> None:
    steps = willing()

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, a_command()))

    assert (record.outcome, record.deleted, steps.names()) == ("done", ("claim-1",), FORWARD)


async def test_an_instance_that_is_rebooted_is_neither_deleted_nor_undone(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """GCR-19."""
    steps = willing()
    command = replace(a_command(), reason="Unhealthy", method="repair", reboots=True)

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, command))

    assert (record.outcome, record.deleted, steps.names()) == ("done", (), ["mark_nodes"])


async def test_several_nodes_are_deleted_in_one_step_and_each_gets_its_termination(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """More than are started at once."""
    steps = willing()

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        handle = await start(skipping, cluster, a_command(targets=25))
        record = await result_of(handle)
        started = [event for event in (await handle.fetch_history()).events if is_child(event)]

    assert steps.names() == ["mark_nodes", "delete_claims", "await_gone"]
    assert len(steps.arguments("delete_claims")) == 1
    assert len(record.deleted) == len(started) == 25


def is_child(event: Any) -> bool:
    return bool(event.HasField("child_workflow_execution_started_event_attributes"))


async def test_a_replacement_that_is_refused_undoes_the_command_and_what_was_created(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """DIS-157."""

    def all_but_one(request: CreateRequest) -> CreateOutcome:
        made = create_all(request).claims
        return CreateOutcome(claims=made[1:], refused=((made[0].name, "an admission policy says no"),))

    steps = willing(create_node_claims=all_but_one)

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, a_command(replacements=2)))

    assert record.outcome == "failed" and "an admission policy says no" in record.message
    assert steps.names() == ["mark_nodes", "create_node_claims", "unmark_nodes", "give_back"]


@pytest.mark.parametrize("targets", [1, 2])
async def test_what_the_steps_have_started_is_not_started_again(
    skipping: WorkflowEnvironment, serving: Serving, targets: int
) -> None:
    """Decision 286."""
    deleted = StepOutcome(owned=True)
    steps = willing(
        create_node_claims=lambda request: replace(create_all(request), owned=True),
        delete_claim=deleted,
        delete_claims=deleted,
    )

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        handle = await start(skipping, cluster, a_command(targets=targets, replacements=1))
        record = await result_of(handle)
        started = [event for event in (await handle.fetch_history()).events if is_child(event)]

    assert (record.outcome, len(record.deleted), started) == ("done", targets, [])


async def test_a_replacement_is_ready_before_the_delete(skipping: WorkflowEnvironment, serving: Serving) -> None:
    steps = willing()

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, a_command(replacements=1)))

    assert (record.outcome, steps.names()) == ("done", WITH_REPLACEMENT)


async def test_a_pure_delete_goes_on_with_the_nodes_that_could_be_marked(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """DIS-145."""
    steps = willing(mark_nodes=MarkOutcome(marked=("claim-2",), refused=(("claim-1", "a pod was bound"),)))

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, a_command(targets=2)))

    assert (record.outcome, record.deleted) == ("done", ("claim-2",))


async def test_what_a_disruption_saves_is_counted_once_at_its_end(
    skipping: WorkflowEnvironment, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two nodes one stays, and with it half of the promise; a disruption that is undone saves nothing."""
    meter = Meter()
    counting = replace(outcomes.INSTRUMENTS, meter=meter.provider.get_meter("test"), made={})
    monkeypatch.setattr(outcomes, "INSTRUMENTS", counting)
    saving = replace(a_command(targets=2), savings=0.4)
    one_stays = MarkOutcome(marked=("claim-2",), refused=(("claim-1", "a pod was bound"),))
    steps = willing(mark_nodes=one_stays)

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        handle = await start(skipping, cluster, saving)
        assert (await result_of(handle)).outcome == "done"
        history = await handle.fetch_history()
    undone = willing(mark_nodes=replace(one_stays, marked=()))
    async with serving([DisruptNodes, LaunchNode], undone.of(*STEPS)) as cluster:
        assert (await result_of(await start(skipping, cluster, saving))).outcome == "refused"
    await replayer().replay_workflow(history)

    assert meter.kept == [("dovetail_realised_savings_dollars_per_hour_total", 0.2, {"reason": "empty"})]


async def test_a_delete_of_which_no_node_could_be_marked_ends_there(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """DIS-145."""
    steps = willing(mark_nodes=MarkOutcome(refused=(("claim-1", "a pod was bound"),)))

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, a_command()))

    assert (record.outcome, record.deleted, steps.names()) == ("refused", (), ["mark_nodes", "unmark_nodes"])


async def test_a_refused_mark_undoes_a_command_with_replacements(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """DIS-145."""
    steps = willing(mark_nodes=MarkOutcome(marked=("claim-2",), refused=(("claim-1", "a pod was bound"),)))

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, a_command(targets=2, replacements=1)))

    assert (record.outcome, steps.names()) == ("failed", ["mark_nodes", "unmark_nodes", "give_back"])


async def test_marks_that_cannot_be_taken_off_do_not_keep_the_replacements(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """Both halves of the undo are tried; then the workflow fails with the first failure."""

    def refuse(given: object) -> None:
        raise translate(Refused("NodeClaim/claim-1", "this very request is wrong"))

    steps = willing(await_ready=ReadyOutcome(kind="failed", message="too late"), unmark_nodes=refuse)

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        handle = await start(skipping, cluster, a_command(replacements=1))
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()

    assert steps.names()[-2:] == ["unmark_nodes", "give_back"]
    assert "this very request is wrong" in str(failure.value.cause.__cause__)


async def test_a_missing_right_undoes_a_disruption_before_its_delete_and_is_waited_for_by_the_undo(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    tries = {"mark_nodes": 0, "unmark_nodes": 0}

    def forbidden(name: str, times: int, then: object) -> Callable[[object], object]:
        def answer(given: object) -> object:
            tries[name] += 1
            if tries[name] <= times:
                raise translate(Forbidden("Node/node-1", "may not patch nodes"))
            return then

        return answer

    steps = willing(
        mark_nodes=forbidden("mark_nodes", 9, None), unmark_nodes=forbidden("unmark_nodes", 1, StepOutcome())
    )

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, a_command()))

    assert (record.outcome, tries) == ("refused", {"mark_nodes": 1, "unmark_nodes": 2})


async def test_a_replacement_that_fails_takes_the_mark_off_and_is_given_back(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """DIS-157."""
    steps = willing(await_ready=ReadyOutcome(kind="failed", message="replacement pool-x was not ready in time"))

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, a_command(replacements=1)))

    assert record.outcome == "failed" and "not ready in time" in record.message
    assert steps.names()[-2:] == ["unmark_nodes", "give_back"]
    assert "delete_claim" not in steps.names()
    assert steps.arguments("give_back")[0].names == (claim_name("pool", PLAN, 0),)


@pytest.mark.parametrize("step", ["mark_nodes", "create_node_claims", "await_ready"])
@pytest.mark.parametrize("by", ["update", "signal", "request"])
async def test_a_cancel_before_the_delete_undoes_everything(full_server: Client, step: str, by: str) -> None:
    """The cancel meets the end of the step's try, so not on the server that skips time (conftest)."""
    reached = asyncio.Event()

    def stuck(given: Any) -> Any:
        reached.set()
        raise not_yet()

    steps = willing(**{step: stuck})

    async with serving_on(full_server)([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        handle = await start_on(full_server, cluster, a_command(replacements=1))
        await reached.wait()
        if by == "update":
            await handle.execute_update(DisruptNodes.cancel_disruption, args=["not now", "alice"])
        elif by == "signal":
            await handle.signal(DisruptNodes.cancel, args=["not now", "alice"])
        else:
            await handle.cancel()
        record = await result_of(handle)

    assert record.outcome == "cancelled"
    assert record.by == ("" if by == "request" else "alice")
    assert by == "request" or record.message == "not now"
    assert steps.names()[-2:] == ["unmark_nodes", "give_back"]
    assert "delete_claim" not in steps.names()


async def test_after_the_delete_an_update_is_refused_and_a_signal_is_answered(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    reached, released, said = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def until_released(given: Any) -> StepOutcome:
        reached.set()
        if not released.is_set():
            raise not_yet()
        return StepOutcome()

    steps = willing(await_gone=until_released, publish=lambda given: said.set())

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        handle = await start(skipping, cluster, a_command())
        await reached.wait()
        with pytest.raises(WorkflowUpdateFailedError) as refusal:
            await handle.execute_update(DisruptNodes.cancel_disruption, "too late")
        await handle.signal(DisruptNodes.cancel, "too late")
        await said.wait()
        released.set()
        record = await result_of(handle)

    assert "too late: node-1 is being deleted" in str(refusal.value.cause)
    assert record.outcome == "done"
    assert steps.arguments("publish")[0].nodes == ("node-1",)
    assert "unmark_nodes" not in steps.names()


DRAINED_FIRST = ["mark_nodes", "create_node_claims", "await_ready", "drain_node", "delete_claim", "await_gone"]


async def test_a_pool_that_asks_for_it_is_drained_before_the_delete(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    steps = willing()

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        record = await result_of(await start(skipping, cluster, replace(a_command(replacements=1), drain_first=True)))

    assert (record.outcome, steps.names()) == ("done", DRAINED_FIRST)
    assert steps.arguments("drain_node")[0].nodes == ("node-1",)


@pytest.mark.parametrize("grace", [None, 90.0])
async def test_a_drain_before_the_delete_lasts_no_longer_than_the_grace_period(
    skipping: WorkflowEnvironment, serving: Serving, grace: float | None
) -> None:
    """It counts from the beginning of the drain, and every try of the step is told the same moment."""
    tries: list[Any] = []

    def once_more(given: Any) -> Any:
        tries.append(given)
        if len(tries) == 1:
            raise not_yet()
        return DrainOutcome(message="drained")

    steps = willing(drain_node=once_more)
    command = a_command(replacements=1)
    command = replace(command, drain_first=True, targets=tuple(replace(t, grace=grace) for t in command.targets))

    async with serving([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        before = (await skipping.get_current_time()).timestamp()
        record = await result_of(await start(skipping, cluster, command))
        after = (await skipping.get_current_time()).timestamp()

    assert record.outcome == "done" and len(tries) == 2
    if grace is None:
        assert [departure.deadline for departure in tries] == [None, None]
    else:
        assert tries[0].deadline == tries[1].deadline
        assert before + grace <= tries[0].deadline <= after + grace


async def test_a_drain_before_the_delete_can_be_called_off(full_server: Client) -> None:
    reached = asyncio.Event()

    def held(given: Any) -> Any:
        reached.set()
        raise not_yet()

    steps = willing(drain_node=held)

    async with serving_on(full_server)([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        handle = await start_on(full_server, cluster, replace(a_command(replacements=1), drain_first=True))
        await reached.wait()
        await handle.execute_update(DisruptNodes.cancel_disruption, "not now")
        record = await result_of(handle)

    assert record.outcome == "cancelled"
    assert "delete_claim" not in steps.names()
    assert steps.names()[-2:] == ["unmark_nodes", "give_back"]
