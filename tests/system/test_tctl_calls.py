"""The calls that tctl's commands make, one by one, against workflows of ours that run.

tctl is no longer built for new servers, but its calls are the API's oldest, and scripts make them still. Each is made
here as tctl makes it, over the raw service, with no help of the SDK. docs/tctl.md has the commands.
"""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import EventType
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Status
from temporalio.api.filter.v1 import StartTimeFilter, WorkflowExecutionFilter, WorkflowTypeFilter
from temporalio.api.workflowservice.v1 import (
    CountWorkflowExecutionsRequest,
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
    ListClosedWorkflowExecutionsRequest,
    ListOpenWorkflowExecutionsRequest,
    ListWorkflowExecutionsRequest,
    RequestCancelWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)

from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.messages.workflow_ids import caretaker_id, claim_owner_id, scheduler_id
from dovetail.model import names
from dovetail.model.values.json import Json
from tests.system.beside import Disrupted, beside, settled
from tests.waiting import until_answered
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal


NAMESPACE = "default"
WHO = "tctl@test"


def since_the_beginning() -> StartTimeFilter:
    return StartTimeFilter(earliest_time=Timestamp(seconds=0), latest_time=Timestamp(seconds=int(time.time()) + 3600))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def read(tmp_path_factory: pytest.TempPathFactory, temporal_server: TemporalServer) -> AsyncIterator[Stage]:
    """A stage with a node on which a pod runs, for all calls that only read."""
    async with settled(tmp_path_factory.mktemp, temporal_server) as stage:
        yield stage


async def launch_of(stage: Stage) -> str:
    """The id of the launch of the stage's one claim, which has ended."""
    [claim] = stage.claims()
    identity = claim_owner_id(stage.cluster, claim["metadata"]["name"])
    await until_answered(lambda: _ended(stage, identity), 60, "the launch has ended")
    return identity


async def _ended(stage: Stage, identity: str) -> bool:
    described = await (await stage.workflow(identity)).describe()
    return described.close_time is not None


async def test_workflow_list_open_finds_the_scheduler_by_its_type(read: Stage) -> None:
    client = await read.client()

    async def look() -> Any:
        answer = await client.workflow_service.list_open_workflow_executions(
            ListOpenWorkflowExecutionsRequest(
                namespace=NAMESPACE,
                maximum_page_size=100,
                start_time_filter=since_the_beginning(),
                type_filter=WorkflowTypeFilter(name="Scheduler"),
            )
        )
        return [e for e in answer.executions if e.execution.workflow_id == scheduler_id(read.cluster)]

    [found] = await until_answered(look, 60, "the Scheduler is listed")
    assert (found.type.name, found.status) == ("Scheduler", Status.WORKFLOW_EXECUTION_STATUS_RUNNING)


async def test_workflow_list_finds_the_launch_that_has_ended_by_its_id(read: Stage) -> None:
    client, identity = await read.client(), await launch_of(read)

    async def look() -> Any:
        answer = await client.workflow_service.list_closed_workflow_executions(
            ListClosedWorkflowExecutionsRequest(
                namespace=NAMESPACE,
                maximum_page_size=100,
                start_time_filter=since_the_beginning(),
                execution_filter=WorkflowExecutionFilter(workflow_id=identity),
            )
        )
        return answer.executions

    [found] = await until_answered(look, 60, "the launch is listed")
    assert (found.type, found.status) == (
        WorkflowType(name="LaunchNode"),
        Status.WORKFLOW_EXECUTION_STATUS_COMPLETED,
    )


async def test_workflow_list_with_a_query_finds_a_claim_s_workflow_by_its_attribute(read: Stage) -> None:
    client, identity = await read.client(), await launch_of(read)
    claim = identity.rpartition("/")[2]

    async def look() -> Any:
        request = ListWorkflowExecutionsRequest(
            namespace=NAMESPACE, page_size=10, query=f"DovetailNodeClaim = '{claim}' AND WorkflowType = 'LaunchNode'"
        )
        return (await client.workflow_service.list_workflow_executions(request)).executions

    [found] = await until_answered(look, 60, "the launch is found")
    assert found.execution.workflow_id == identity


async def test_workflow_count_counts_what_runs(read: Stage) -> None:
    client = await read.client()
    query = f"ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH '{read.cluster}/'"

    async def look() -> bool:
        request = CountWorkflowExecutionsRequest(namespace=NAMESPACE, query=query)
        return (await client.workflow_service.count_workflow_executions(request)).count == 2

    await launch_of(read)
    assert await until_answered(look, 60, "the Scheduler and the Caretaker are counted")


async def test_workflow_show_gives_every_step_of_a_launch(read: Stage) -> None:
    client, identity = await read.client(), await launch_of(read)

    answer = await client.workflow_service.get_workflow_execution_history(
        GetWorkflowExecutionHistoryRequest(
            namespace=NAMESPACE, execution=WorkflowExecution(workflow_id=identity), maximum_page_size=1000
        )
    )

    events = answer.history.events
    steps = [e.activity_task_scheduled_event_attributes.activity_type.name for e in events]
    assert [step for step in steps if step] == ["launch_instance", "await_joined"]
    assert events[-1].event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED


async def test_workflow_describe_shows_what_the_scheduler_waits_for(read: Stage) -> None:
    client = await read.client()
    request = DescribeWorkflowExecutionRequest(
        namespace=NAMESPACE, execution=WorkflowExecution(workflow_id=scheduler_id(read.cluster))
    )

    async def look() -> Any:
        answer = await client.workflow_service.describe_workflow_execution(request)
        waits = sorted(each.activity_type.name for each in answer.pending_activities)
        return answer if waits == ["await_disruption_plan", "await_provisioning_plan"] else None

    answer = await until_answered(look, 60, "both loops wait")
    assert answer.workflow_execution_info.status == Status.WORKFLOW_EXECUTION_STATUS_RUNNING
    assert answer.workflow_execution_info.type.name == "Scheduler"


@beside
async def test_workflow_signal_with_plain_json_gives_a_node_back(disrupted: Disrupted) -> None:
    stage, claim = disrupted
    client = await stage.client()

    await client.workflow_service.signal_workflow_execution(
        SignalWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=WorkflowExecution(workflow_id=owner_of(claim)),
            signal_name="cancel",
            input=Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=b'"by tctl"')]),
            identity=WHO,
        )
    )

    assert await given_back(stage, claim) == ("cancelled", "by tctl")


@beside
async def test_workflow_cancel_gives_a_node_back(disrupted: Disrupted) -> None:
    stage, claim = disrupted
    client = await stage.client()

    await client.workflow_service.request_cancel_workflow_execution(
        RequestCancelWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=WorkflowExecution(workflow_id=owner_of(claim)),
            identity=WHO,
            reason="by tctl",
        )
    )

    assert (await given_back(stage, claim))[0] == "cancelled"


def owner_of(claim: Json) -> str:
    """The id of the workflow that disrupts it."""
    return str(claim["metadata"]["annotations"][names.OWNER])


async def given_back(stage: Stage, claim: Json) -> tuple[str, str]:
    """What its disruption says of itself, once the node is given back."""
    await stage.until(lambda: not stage.tainted() and len(stage.claims()) == 1, 60, "the node is given back")
    record = await (await stage.workflow(owner_of(claim))).result()
    return record["outcome"], record["message"]


@beside
async def test_workflow_terminate_ends_the_caretaker_and_a_worker_starts_it_again(settled: Stage) -> None:
    """A worker looks once a minute; whatever the Caretaker was at is found again from the objects."""
    client, identity = await settled.client(), caretaker_id(settled.cluster)
    first = (await client.get_workflow_handle(identity).describe()).run_id

    await client.workflow_service.terminate_workflow_execution(
        TerminateWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=WorkflowExecution(workflow_id=identity),
            reason="by tctl",
            identity=WHO,
        )
    )
    ended = await client.get_workflow_handle(identity, run_id=first).describe()

    async def again() -> bool:
        found = await client.get_workflow_handle(identity).describe()
        return found.run_id != first and found.close_time is None

    assert ended.raw_description.workflow_execution_info.status == Status.WORKFLOW_EXECUTION_STATUS_TERMINATED
    assert await until_answered(again, 120, "a worker has started it again")
    [claim] = settled.claims()
    settled.world.delete("NodeClaim", claim["metadata"]["name"])
    await settled.until(lambda: not there(settled, claim), 120, "the claim leaves")


def there(stage: Stage, claim: Json) -> bool:
    return claim["metadata"]["uid"] in [each["metadata"]["uid"] for each in stage.claims()]
