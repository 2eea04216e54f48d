"""What failed here and goes on in another worker is forgotten, and nothing else is."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.shared.every_step.step_health import WELL_SECONDS, StepHealth
from dovetail.messages.subjects import ClaimRef
from dovetail.ports.failures import Unreachable
from dovetail.worker.elsewhere import MOST_AT_ONCE, Elsewhere

STARTED: Final = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
SCHEDULED: Final = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
SCHEDULER, LOOP = "c/scheduler", "await_disruption_plan"
CLAIM, SHORT = "c/claim/a", "launch_instance"
AHEAD: Final = 1_700_000_000.0  # of this process's clock, the server's
RUNNING, COMPLETED = WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED


@dataclass
class Scene:
    """A worker in which steps have failed, and Temporal, which knows who works on them."""

    at: float = 1000.0
    status: WorkflowExecutionStatus = RUNNING
    error: RPCStatusCode | None = None
    pending: list[PendingActivityInfo] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps = StepHealth(lambda: self.at)
        self.elsewhere = Elsewhere(
            steps=self.steps,
            client=lambda: cast(Client, self),
            silent=lambda: False,
            now=lambda: self.at + AHEAD,
        )

    def get_workflow_handle(self, identity: str) -> Any:
        async def describe(rpc_timeout: object = None) -> Any:
            self.asked.append(identity)
            if self.error is not None:
                raise RPCError("no", self.error, b"")
            description = SimpleNamespace(pending_activities=self.pending)
            return SimpleNamespace(status=self.status, raw_description=description)

        return SimpleNamespace(describe=describe)

    def fails(self, workflow: str, step: str, times: int = 4) -> None:
        for attempt in range(1, times + 1):
            begun = self.steps.begin(workflow, step, ClaimRef(name="a", uid="1"), attempt)
            self.steps.failed(begun, Unreachable("kube", "503"))
            self.steps.end(begun)

    def under_way(self, step: str, ago: float, state: "PendingActivityState.ValueType" = STARTED) -> None:
        one = PendingActivityInfo(attempt=5, state=state)
        one.activity_type.name = step
        one.last_started_time.FromMilliseconds(int((self.at - ago + AHEAD) * 1000))
        self.pending = [one]

    async def look(self) -> list[str]:
        """The steps that are shown as failing after it."""
        await self.elsewhere.look()
        return [one.step for one in self.steps.failing()]


async def test_a_loop_that_another_worker_has_taken_up_and_goes_on_with_is_forgotten() -> None:
    scene = Scene()
    scene.fails(SCHEDULER, LOOP)
    scene.at += WELL_SECONDS + 10
    scene.under_way(LOOP, ago=WELL_SECONDS - 1)
    assert await scene.look() == [LOOP], "it has only begun"

    scene.under_way(LOOP, ago=WELL_SECONDS + 1)

    assert await scene.look() == []
    assert scene.steps.ages() == {}
    assert await scene.look() == [] and scene.asked == [SCHEDULER] * 2, "nothing is asked where nothing fails"


@pytest.mark.parametrize(
    ("ago", "state", "step"),
    [(60.0, STARTED, LOOP), (41.0, SCHEDULED, LOOP), (41.0, STARTED, "await_provisioning_plan")],
    ids=["begun before the failure", "waits for its next attempt", "another loop"],
)
async def test_a_loop_that_nobody_is_seen_to_go_on_with_stays(
    ago: float, state: "PendingActivityState.ValueType", step: str
) -> None:
    scene = Scene()
    scene.fails(SCHEDULER, LOOP)
    scene.at += 50.0
    scene.under_way(step, ago, state)

    assert await scene.look() == [LOOP]
    assert scene.asked == [SCHEDULER]


async def test_a_step_is_forgotten_with_the_end_of_its_workflow_and_stays_while_that_runs() -> None:
    """Whether a short step was done or given up is not known of one that is not pending."""
    scene = Scene()
    scene.fails(CLAIM, SHORT)
    scene.at += WELL_SECONDS
    assert await scene.look() == [SHORT]
    scene.under_way(SHORT, ago=0.0)
    assert await scene.look() == [SHORT]

    scene.status = COMPLETED

    assert await scene.look() == []


@pytest.mark.parametrize(
    ("error", "left"), [(RPCStatusCode.NOT_FOUND, []), (RPCStatusCode.UNAVAILABLE, [SHORT])], ids=str
)
async def test_a_workflow_that_is_gone_has_ended_and_no_answer_says_nothing(
    error: RPCStatusCode, left: list[str]
) -> None:
    scene = Scene(error=error)
    scene.fails(CLAIM, SHORT)
    scene.at += WELL_SECONDS

    assert await scene.look() == left


async def test_what_failed_a_moment_ago_or_runs_here_or_is_not_shown_is_not_asked_for() -> None:
    scene = Scene(status=COMPLETED)
    scene.fails(CLAIM, SHORT, times=3)
    scene.fails(SCHEDULER, LOOP)
    assert await scene.look() == [LOOP]
    scene.at += WELL_SECONDS
    here = scene.steps.begin(SCHEDULER, LOOP, None, 5)
    assert await scene.look() == [LOOP]
    assert scene.asked == []

    scene.steps.end(here)

    assert await scene.look() == []


async def test_what_fails_here_again_while_it_is_asked_for_stays() -> None:
    scene = Scene()
    scene.fails(CLAIM, SHORT)
    scene.at += WELL_SECONDS
    [before] = scene.steps.quiet()
    scene.fails(CLAIM, SHORT, times=1)

    scene.steps.forget(before)

    assert [one.times for one in scene.steps.failing()] == [5]


async def test_of_many_some_are_asked_for_in_one_look() -> None:
    scene = Scene()
    for number in range(MOST_AT_ONCE + 5):
        scene.fails(f"c/claim/{number}", SHORT)
    scene.at += WELL_SECONDS

    await scene.look()

    assert len(scene.asked) == MOST_AT_ONCE
