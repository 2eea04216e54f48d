"""LaunchNode and TerminateNode: one owner of a claim for its whole life."""

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from dovetail.activities.disruption.delete_claim import DeleteClaims
from dovetail.activities.disruption.publish_notices import PublishNotices
from dovetail.activities.identity.search_attributes import FIRST_PHASES, PHASE, attributes
from dovetail.activities.launch.await_registered_and_initialized import AwaitRegisteredAndInitialized
from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.termination.await_detached import AwaitDetached
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.outcomes import DrainOutcome, JoinOutcome, LaunchOutcome, StepOutcome, TerminationOutcome
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.workflow_ids import claim_owner_id, task_queue
from dovetail.messages.workflow_types import LAUNCH_NODE, TERMINATE_NODE
from dovetail.workflows.launch_node import LaunchNode
from dovetail.workflows.terminate_node import TerminateNode
from tests.workflows.conftest import Serving
from tests.workflows.fake_steps import FakeSteps, not_yet

pytestmark = pytest.mark.temporal

STEPS = (
    DeleteClaims,
    BeginAndEndDeparture,
    AwaitDetached,
    DrainNode,
    AwaitRegisteredAndInitialized,
    LaunchInstance,
    PublishNotices,
    TerminateInstance,
)
CLAIM = ClaimRef(name="pool-1", uid="uid-1", pool="pool")
LAUNCH = ["launch_instance", "await_joined"]
UNMARKED = JoinOutcome(kind="done", node="node-1", unmarked=True)
UNMARKED_LAUNCH = [*LAUNCH, "publish", "await_initialized"]
TERMINATION = ["begin_departure", "drain_node", "await_detached", "terminate_instance", "release_claim"]


def willing(**other: Any) -> FakeSteps:
    """Steps that all succeed at once."""
    answers: dict[str, Any] = {
        "launch_instance": LaunchOutcome(kind="launched", provider_id="test://1"),
        "await_joined": JoinOutcome(kind="done", node="node-1"),
        "await_initialized": JoinOutcome(kind="done", node="node-1"),
        "delete_claim": StepOutcome(),
        "begin_departure": Departure(claim=CLAIM, provider_id="test://1", nodes=("node-1",), node_uids=("n-1",)),
        "drain_node": DrainOutcome(),
        "await_detached": StepOutcome(),
        "terminate_instance": StepOutcome(),
        "release_claim": StepOutcome(),
    }
    return FakeSteps(**{**answers, **other})


async def start(env: WorkflowEnvironment, cluster: str, kind: Any = LaunchNode.run) -> WorkflowHandle[Any, Any]:
    given = ClaimInput(cluster=cluster, claim=CLAIM)
    handle: WorkflowHandle[Any, Any] = await env.client.start_workflow(
        kind, given, id=claim_owner_id(cluster, CLAIM.name), task_queue=task_queue(cluster, "control")
    )
    return handle


async def run(env: WorkflowEnvironment, serving: Serving, steps: FakeSteps, kind: Any = LaunchNode.run) -> str:
    async with serving([LaunchNode, TerminateNode], steps.of(*STEPS)) as cluster:
        return str(await (await start(env, cluster, kind)).result())


async def test_a_claim_is_launched_registered_and_initialised(skipping: WorkflowEnvironment, serving: Serving) -> None:
    steps = willing()

    ending = await run(skipping, serving, steps)

    assert (ending, steps.names()) == ("initialised", LAUNCH)


async def test_a_node_that_came_without_its_taint_is_reported(skipping: WorkflowEnvironment, serving: Serving) -> None:
    """LIF-22, EVT-7."""
    steps = willing(await_joined=UNMARKED, publish=None)

    ending = await run(skipping, serving, steps)

    assert steps.names()[-1] == "await_initialized"

    [published] = steps.arguments("publish")
    assert (ending, published.nodes, published.reason, published.warning) == (
        "initialised",
        ("node-1",),
        "UnregisteredTaintMissing",
        True,
    )


@pytest.mark.parametrize("kind", ["no_capacity", "class_not_ready", "timed_out"])
async def test_a_claim_that_cannot_be_launched_is_deleted_and_terminated_under_the_same_id(
    skipping: WorkflowEnvironment, serving: Serving, kind: Any
) -> None:
    """LIF-12, LIF-41."""
    steps = willing(launch_instance=LaunchOutcome(kind=kind, message="why"))

    ending = await run(skipping, serving, steps)

    assert (ending, steps.names()) == ("terminated", ["launch_instance", "delete_claim", *TERMINATION])


@pytest.mark.parametrize(
    ("answers", "launch"),
    [
        ({"launch_instance": LaunchOutcome(kind="deleting")}, LAUNCH[:1]),
        ({"await_joined": JoinOutcome(kind="deleting")}, LAUNCH),
        ({"await_joined": UNMARKED, "await_initialized": JoinOutcome(kind="deleting")}, UNMARKED_LAUNCH),
    ],
    ids=["launching", "joining", "initialising"],
)
async def test_a_claim_deleted_while_it_is_launched_becomes_its_termination(
    skipping: WorkflowEnvironment, serving: Serving, answers: dict[str, Any], launch: list[str]
) -> None:
    steps = willing(publish=None, **answers)

    ending = await run(skipping, serving, steps)

    assert ending == "terminated"
    assert steps.names() == [*launch, *TERMINATION]


async def test_a_node_that_does_not_register_in_time_is_given_up(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """LIF-43."""
    steps = willing(await_joined=JoinOutcome(kind="timed_out", message="not registered within 900 s"))

    ending = await run(skipping, serving, steps)

    assert ending == "terminated" and "delete_claim" in steps.names()


async def test_a_claim_that_is_gone_needs_nothing(skipping: WorkflowEnvironment, serving: Serving) -> None:
    steps = willing(launch_instance=LaunchOutcome(kind="gone"))

    ending = await run(skipping, serving, steps)

    assert (ending, steps.names()) == ("gone", ["launch_instance"])


async def test_a_termination_drains_detaches_terminates_and_releases(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """TRM-8."""
    steps = willing()

    ending = await run(skipping, serving, steps, TerminateNode.run)

    assert (ending, steps.names()) == ("terminated", TERMINATION)


@pytest.mark.parametrize(
    ("answers", "left_out"),
    [
        ({"begin_departure": Departure(claim=CLAIM, nodes=("n",), node_uids=("u",), instance_gone=True)}, 2),
        ({"begin_departure": Departure(claim=CLAIM)}, 2),
        ({"drain_node": DrainOutcome(instance_gone=True)}, 1),
    ],
    ids=["instance gone before", "never had a node", "instance gone meanwhile"],
)
async def test_without_a_living_node_nothing_is_waited_for(
    skipping: WorkflowEnvironment, serving: Serving, answers: dict[str, Any], left_out: int
) -> None:
    """TRM-5, LIF-54."""
    steps = willing(**answers)

    ending = await run(skipping, serving, steps, TerminateNode.run)

    expected = [s for s in TERMINATION if s != "await_detached" and not (left_out == 2 and s == "drain_node")]
    assert (ending, steps.names()) == ("terminated", expected)


@pytest.mark.parametrize(
    ("answers", "left_out"),
    [
        ({"drain_node": DrainOutcome(detached=True)}, {"await_detached"}),
        ({"terminate_instance": TerminationOutcome(released=True)}, {"release_claim"}),
        (
            {
                "drain_node": DrainOutcome(detached=True),
                "terminate_instance": TerminationOutcome(released=True),
            },
            {"await_detached", "release_claim"},
        ),
    ],
    ids=["detached", "released", "both"],
)
async def test_a_step_that_did_the_next_ones_work_is_not_followed_by_it(
    skipping: WorkflowEnvironment, serving: Serving, answers: dict[str, Any], left_out: set[str]
) -> None:
    """Decision 274."""
    steps = willing(**answers)

    ending = await run(skipping, serving, steps, TerminateNode.run)

    assert (ending, steps.names()) == ("terminated", [step for step in TERMINATION if step not in left_out])


@pytest.mark.parametrize(("begun_with", "shown"), [(TERMINATE_NODE, 1), (LAUNCH_NODE, 2)])
async def test_a_drain_that_searches_find_from_the_start_is_not_shown_once_more(
    skipping: WorkflowEnvironment, serving: Serving, begun_with: str, shown: int
) -> None:
    """Decision 274: each change is a write to the index of visibility."""
    steps = willing(drain_node=DrainOutcome(detached=True))

    async with serving([LaunchNode, TerminateNode], steps.of(*STEPS)) as cluster:
        handle: WorkflowHandle[Any, Any] = await skipping.client.start_workflow(
            TerminateNode.run,
            ClaimInput(cluster=cluster, claim=CLAIM),
            id=claim_owner_id(cluster, CLAIM.name),
            task_queue=task_queue(cluster, "control"),
            search_attributes=attributes(cluster, claim=CLAIM.name, phase=FIRST_PHASES[begun_with]),
        )
        await handle.result()
        history = await handle.fetch_history()

    changes = [event.upsert_workflow_search_attributes_event_attributes.search_attributes for event in history.events]
    phases = [each.indexed_fields[PHASE.name].data for each in changes if each.indexed_fields]
    assert phases == [b'"draining"', b'"terminating"'][-shown:]


async def test_a_cancel_does_not_stop_a_termination(skipping: WorkflowEnvironment, serving: Serving) -> None:
    reached = asyncio.Event()
    cancelled = asyncio.Event()

    def until_cancelled(given: Any) -> DrainOutcome:
        reached.set()
        if not cancelled.is_set():
            raise not_yet()
        return DrainOutcome()

    steps = willing(drain_node=until_cancelled)

    async with serving([LaunchNode, TerminateNode], steps.of(*STEPS)) as cluster:
        handle = await start(skipping, cluster, TerminateNode.run)
        await reached.wait()
        await handle.cancel()
        cancelled.set()
        ending = await handle.result()

    assert (ending, steps.names()) == ("terminated", TERMINATION)
