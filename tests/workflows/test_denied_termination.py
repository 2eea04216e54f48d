"""A right that is missing: the step waits for it slowly, says so once, and its workflow is not started anew."""

from collections.abc import Callable
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from dovetail.activities.shared.every_step.heartbeats import HeartbeatInterceptor
from dovetail.activities.shared.every_step.step_health import StepHealth
from dovetail.activities.shared.every_step.step_notices import StepNotices
from dovetail.activities.termination.await_detached import AwaitDetached
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.outcomes import DrainOutcome, StepOutcome
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.workflow_ids import claim_owner_id, task_queue
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Forbidden
from dovetail.worker.sandbox import runner
from dovetail.workflows.terminate_node import TerminateNode
from tests.activities.test_step_health import StillView
from tests.workflows.fake_steps import FakeSteps

pytestmark = pytest.mark.temporal

CLUSTER = "denied"
CLAIM = ClaimRef(name="claim-1", uid="uid-1", pool="pool")


class Published:
    """Notices, each once in its window, as a real publisher keeps them."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str, str, str], Notice] = {}

    async def publish(self, *notices: Notice) -> None:
        for each in notices:
            self.known.setdefault((each.kind, each.name, each.reason, each.distinct), each)


async def test_a_denied_termination_waits_for_a_person_and_says_so_once(skipping: WorkflowEnvironment) -> None:
    """It failed, and was started anew every 20 s for ever, without an Event."""
    tries: list[float] = []

    def denied(given: object) -> StepOutcome:
        tries.append(1)
        if len(tries) <= 6:
            raise Forbidden("ec2:TerminateInstances", "you are not authorized to perform this operation")
        return StepOutcome()

    steps = FakeSteps(
        begin_departure=Departure(claim=CLAIM, provider_id="aws:///z/i-1", nodes=("node-1",), node_uids=("n-1",)),
        drain_node=DrainOutcome(),
        await_detached=StepOutcome(),
        terminate_instance=denied,
        release_claim=StepOutcome(),
    )
    published, health = Published(), StepHealth()
    interceptor = HeartbeatInterceptor(health, StepNotices(published, StillView()))  # type: ignore[arg-type]
    fakes: list[Callable[..., Any]] = steps.of(BeginAndEndDeparture, AwaitDetached, DrainNode, TerminateInstance)
    workers = [
        Worker(
            skipping.client,
            task_queue=task_queue(CLUSTER, queue),
            workflows=[TerminateNode] if queue == "control" else [],
            activities=fakes,
            interceptors=[interceptor],
            workflow_runner=runner(),
        )
        for queue in ("control", "waits", "cloud")
    ]
    async with workers[0], workers[1], workers[2]:
        began = await skipping.get_current_time()
        handle = await skipping.client.start_workflow(
            TerminateNode.run,
            ClaimInput(cluster=CLUSTER, claim=CLAIM),
            id=claim_owner_id(CLUSTER, CLAIM.name),
            task_queue=task_queue(CLUSTER, "control"),
        )
        assert await handle.result() == "terminated"
        took = ((await skipping.get_current_time()) - began).total_seconds()

    assert len(tries) == 7
    assert took >= 5 + 10 + 20 + 40 + 60 + 60, "slowly"
    assert {(n.kind, n.name, n.reason) for n in published.known.values()} == {
        ("NodeClaim", "claim-1", "StepFailing"),
        ("Node", "node-1", "StepFailing"),
    }
    assert all("not authorized" in n.message for n in published.known.values())
    assert health.failing() == ()
