"""A step that another cluster's workflow asks for is not taken, and nothing of it is done."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from dovetail.activities.identity.cluster_guard import ClusterGuard
from dovetail.activities.identity.cluster_header import HEADER, cluster_uid_in, with_header
from dovetail.messages.plans import DisruptionCommand, Seen
from dovetail.messages.requests import (
    CreateRequest,
    DeleteRequest,
    DeletesRequest,
    GiveBackRequest,
    MarkRequest,
    NoticeRequest,
)


class Steps(ActivityInboundInterceptor):
    """The chain behind the guard."""

    def __init__(self) -> None:
        self.taken = 0

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self.taken += 1
        return "done"


async def asked(headers: Mapping[str, Payload], asker: str = "c/caretaker") -> int:
    """How often the step was taken by a worker of the cluster `ours`."""
    steps = Steps()
    guarded = ClusterGuard("c", "ours").intercept_activity(steps)
    place = ActivityEnvironment()
    place.info = replace(place.info, activity_type="keep_up", workflow_id=asker)
    try:
        await place.run(guarded.execute_activity, ExecuteActivityInput(fn=len, args=(), executor=None, headers=headers))
    finally:
        assert steps.taken in (0, 1)
    return steps.taken


async def test_a_step_of_this_cluster_is_taken() -> None:
    assert await asked(with_header({}, "ours")) == 1


async def test_a_step_without_the_header_is_a_strangers_and_is_refused() -> None:
    with pytest.raises(ApplicationError, match="it names no cluster, and this worker serves ours"):
        await asked({})


async def test_a_step_of_another_cluster_is_refused_and_may_be_taken_by_another_worker() -> None:
    with pytest.raises(ApplicationError, match="it is for the cluster theirs, and this worker serves ours") as refusal:
        await asked(with_header({}, "theirs"))

    assert not refusal.value.non_retryable
    assert refusal.value.next_retry_delay is not None


@pytest.mark.parametrize("asker", ["c/scheduler", "c/caretaker/x", "mine", ""])
async def test_a_step_is_taken_for_no_workflow_but_the_one_that_asks_for_it(asker: str) -> None:
    with pytest.raises(ApplicationError, match="is not the workflow that asks for keep_up"):
        await asked(with_header({}, "ours"), asker)


@pytest.mark.parametrize(("parent", "taken"), [("c/scheduler", True), (None, False), ("stranger/scheduler", False)])
@pytest.mark.parametrize(
    "step", ["mark_nodes", "give_back", "create_node_claims", "delete_claim", "delete_claims", "publish"]
)
async def test_a_mark_is_set_for_no_disruption_but_one_that_the_scheduler_has_begun(
    step: str, parent: str | None, taken: bool
) -> None:
    """DUR-32; and nothing is given back, made, deleted or said for another one."""
    steps, place = Steps(), ActivityEnvironment(client=Begun(parent))  # type: ignore[arg-type]
    place.info = replace(place.info, activity_type=step, workflow_id="c/disrupt/1", workflow_run_id="r")
    guarded = ClusterGuard("c", "ours").intercept_activity(steps)
    command = DisruptionCommand(reason="Empty", method="emptiness", targets=())
    given = {
        "mark_nodes": MarkRequest(owner="c/disrupt/1", command=command, seen=Seen(taken_at=0.0)),
        "give_back": GiveBackRequest(plan_id="1", names=("n",)),
        "create_node_claims": CreateRequest(plan_id="1", proposed=(), type_lists=()),
        "delete_claim": DeleteRequest(name="n", uid="u", reason="Unhealthy"),
        "delete_claims": DeletesRequest(targets=(), reason="Unhealthy"),
        "publish": NoticeRequest(nodes=("n",), reason="Forged", message="a stranger's words"),
    }
    asked = ExecuteActivityInput(fn=len, args=(given[step],), executor=None, headers=with_header({}, "ours"))

    if taken:
        assert await place.run(guarded.execute_activity, asked) == "done"
        return
    with pytest.raises(ApplicationError, match=f"was begun by {parent or 'nobody'}, and not by c/scheduler") as refusal:
        await place.run(guarded.execute_activity, asked)
    assert (steps.taken, refusal.value.non_retryable) == (0, True)


@pytest.mark.parametrize(
    ("asker", "reason"), [("c/claim/n", "DisruptionCancelTooLate"), ("c/disrupt/1", "UnregisteredTaintMissing")]
)
async def test_nobody_publishes_what_is_for_another_workflow_to_say(asker: str, reason: str) -> None:
    """Which the Scheduler need not have begun."""
    steps, place = Steps(), ActivityEnvironment(client=Begun("c/scheduler"))  # type: ignore[arg-type]
    place.info = replace(place.info, activity_type="publish", workflow_id=asker, workflow_run_id="r")
    guarded = ClusterGuard("c", "ours").intercept_activity(steps)
    given = NoticeRequest(nodes=("n",), reason=reason, message="a stranger's words")
    asked = ExecuteActivityInput(fn=len, args=(given,), executor=None, headers=with_header({}, "ours"))

    with pytest.raises(ApplicationError, match="is not the workflow that asks for publish so"):
        await place.run(guarded.execute_activity, asked)


async def test_the_scheduler_itself_is_not_asked_who_has_begun_it() -> None:
    steps, place = Steps(), ActivityEnvironment()
    place.info = replace(place.info, activity_type="create_node_claims", workflow_id="c/scheduler")
    guarded = ClusterGuard("c", "ours").intercept_activity(steps)
    given = CreateRequest(plan_id="1", proposed=(), type_lists=())
    asked = ExecuteActivityInput(fn=len, args=(given,), executor=None, headers=with_header({}, "ours"))

    assert await place.run(guarded.execute_activity, asked) == "done"


class Begun:
    """A server whose workflow has that parent."""

    def __init__(self, parent: str | None) -> None:
        self.parent_id = parent

    def get_workflow_handle(self, identity: str, *, run_id: str) -> "Begun":
        assert (identity, run_id) == ("c/disrupt/1", "r"), "no other run of that id has anything to say"
        return self

    async def describe(self, rpc_timeout: object) -> "Begun":
        return self


async def test_a_header_that_nobody_can_read_is_no_permission() -> None:
    encrypted = Payload(metadata={"encoding": b"binary/encrypted"}, data=b"\xff\x00\x9c")

    with pytest.raises(ApplicationError, match="no step is taken"):
        await asked({HEADER: encrypted})


def test_the_header_is_read_as_it_was_written() -> None:
    uid = "5f0c2c46-6c1f-4b0e-9a35-0d6f0d1b7c11"

    assert cluster_uid_in(with_header({}, uid)) == uid
