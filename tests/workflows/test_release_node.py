"""ReleaseNode: a deleting node without a claim, from its drain to its finalizer."""

from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from dovetail.activities.termination.await_detached import AwaitDetached
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.messages.inputs import NodeInput
from dovetail.messages.outcomes import DrainOutcome, StepOutcome
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.workflow_ids import node_owner_id, task_queue
from dovetail.workflows.release_node import ReleaseNode
from tests.workflows.conftest import Serving
from tests.workflows.fake_steps import FakeSteps

pytestmark = pytest.mark.temporal

NO_CLAIM = ClaimRef(name="", uid="")
FOUND = Departure(claim=NO_CLAIM, provider_id="test://1", nodes=("node-1",), node_uids=("n-1",))
LOST = Departure(claim=NO_CLAIM, nodes=("node-1",), node_uids=("n-1",), instance_gone=True)


@pytest.mark.parametrize(
    ("answers", "steps_between"),
    [
        ({}, ["drain_node", "await_detached"]),
        ({"drain_node": DrainOutcome(instance_gone=True)}, ["drain_node"]),
        ({"begin_release": LOST}, []),
    ],
    ids=["a living node", "instance gone meanwhile", "instance gone before"],
)
async def test_a_node_without_a_claim_is_released_when_pods_and_volumes_are_gone(
    skipping: WorkflowEnvironment, serving: Serving, answers: dict[str, Any], steps_between: list[str]
) -> None:
    """TRM-5, TRM-10: its instance is never terminated."""
    given: dict[str, Any] = {
        "begin_release": FOUND,
        "drain_node": DrainOutcome(),
        "await_detached": StepOutcome(),
        "release_node": StepOutcome(),
    }
    steps = FakeSteps(**{**given, **answers})

    async with serving(
        [ReleaseNode], steps.of(BeginAndEndDeparture, AwaitDetached, DrainNode, TerminateInstance)
    ) as cluster:
        handle = await skipping.client.start_workflow(
            ReleaseNode.run,
            NodeInput(cluster=cluster, node="node-1", uid="n-1"),
            id=node_owner_id(cluster, "node-1"),
            task_queue=task_queue(cluster, "control"),
        )
        ending = await handle.result()

    assert (ending, steps.names()) == ("released", ["begin_release", *steps_between, "release_node"])
