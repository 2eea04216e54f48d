"""Gate: a new version passes, is looked at again, or fails with what stops it."""

from datetime import timedelta

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from dovetail.activities.identity.judge_version import NOT_FIT, JudgeVersion
from dovetail.messages.inputs import GateInput
from dovetail.messages.workflow_ids import task_queue
from dovetail.messages.workflow_types import GATE
from dovetail.workflows.gate import Gate
from tests.workflows.conftest import Serving

pytestmark = pytest.mark.temporal

RIGHT = "rights: 1 right missing: patch events (apply deploy/kubernetes/rbac.yaml)"


class Found:
    """What each look finds, the last of them again and again."""

    def __init__(self, *looks: tuple[str, ...]) -> None:
        self.looks, self.times = looks, 0

    async def look(self) -> tuple[str, ...]:
        self.times += 1
        return self.looks[min(self.times, len(self.looks)) - 1]


async def passed(skipping: WorkflowEnvironment, serving: Serving, found: Found, *given: GateInput) -> str:
    """The gate's answer, started as temporal-worker-controller does: by its name, on the queue of the workflows."""
    async with serving([Gate], [JudgeVersion(found.look).judge_version]) as cluster:
        handle = await skipping.client.start_workflow(
            GATE,
            args=given,
            id=f"test-{cluster}",
            task_queue=task_queue(cluster, "control"),
            execution_timeout=timedelta(hours=1),
        )
        return str(await handle.result())


async def test_a_version_of_which_nothing_is_wrong_passes(skipping: WorkflowEnvironment, serving: Serving) -> None:
    found = Found(())

    assert await passed(skipping, serving, found) == "nothing stops this version"
    assert found.times == 1


async def test_what_is_put_right_meanwhile_stops_nothing(skipping: WorkflowEnvironment, serving: Serving) -> None:
    found = Found((RIGHT,), (RIGHT,), ())

    assert await passed(skipping, serving, found) == "nothing stops this version"
    assert found.times == 3


AS_IT_COMES = pytest.param((), id="as it comes", marks=pytest.mark.soak)  # it waits for minutes by the clock


@pytest.mark.parametrize("given", [AS_IT_COMES, pytest.param((GateInput(seconds=20.0),), id="for some seconds")])
async def test_what_stays_wrong_fails_the_gate_by_its_name(
    skipping: WorkflowEnvironment, serving: Serving, given: tuple[GateInput, ...]
) -> None:
    found = Found((RIGHT, "cloud: no credentials (see credentials, region and network)"))

    with pytest.raises(WorkflowFailureError) as failed:
        await passed(skipping, serving, found, *given)

    why = failed.value.cause
    assert isinstance(why, ApplicationError) and why.type == NOT_FIT
    assert RIGHT in str(why) and "cloud: no credentials" in str(why)
    assert 2 <= found.times <= (3 if given else 15)
