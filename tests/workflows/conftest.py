"""The time-skipping server, one for the session, with our search attributes."""

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Interceptor, UnsandboxedWorkflowRunner, Worker

from dovetail.activities.identity.search_attributes import ALL
from dovetail.cli.demo.temporal_server import start_temporal
from dovetail.messages.workflow_ids import task_queue
from dovetail.worker.sandbox import runner
from dovetail.workflows.converter import DATA_CONVERTER
from dovetail.workflows.task_size import TaskSizeGuard
from tests.workflows.started import Started

TEST_SERVER = Path(sys.executable).parent / "temporal-test-server"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def skipping() -> AsyncIterator[WorkflowEnvironment]:
    """The server."""
    started = Started()
    env = await WorkflowEnvironment.start_time_skipping(
        data_converter=DATA_CONVERTER, interceptors=[started], test_server_existing_path=str(TEST_SERVER)
    )
    started.client = env.client
    async with env:
        await env.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=env.client.namespace,
                search_attributes={key.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD for key in ALL},
            )
        )
        yield env


Serving = Callable[[list[type], list[Callable[..., Any]]], AbstractAsyncContextManager[str]]


@pytest.fixture
def serving(skipping: WorkflowEnvironment) -> Serving:
    """Serve workflows and fake steps on the queues of a cluster of its own; gives the cluster's name."""
    return serving_on(skipping.client)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def full_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """A client of a full server in real time. The skipping one wedges if a cancel meets the end of a step's try: it
    keeps neither the step nor its end, so the workflow waits for ever. Tests that cancel a step that is tried again
    use this one."""
    server = await start_temporal(tmp_path_factory.mktemp("temporal"))
    yield Started().in_front_of(await server.client())
    await asyncio.to_thread(server.stop)


def serving_on(client: Client, *others: Interceptor, sandboxed: bool = True) -> Serving:
    """The same on any server. Outside the sandbox a test may change what the workflows' modules hold."""
    loaded = runner() if sandboxed else UnsandboxedWorkflowRunner()

    @asynccontextmanager
    async def serve(workflows: list[type], steps: list[Callable[..., Any]]) -> AsyncIterator[str]:
        cluster = f"test-{uuid.uuid4().hex[:8]}"
        async with AsyncExitStack() as stack:
            for queue in ("control", "waits", "watches", "plan", "cloud"):
                worker = Worker(
                    client,
                    task_queue=task_queue(cluster, queue),
                    workflows=workflows if queue == "control" else [],
                    activities=steps,
                    workflow_runner=loaded,
                    interceptors=[TaskSizeGuard(), *others],
                    # A test asks for few steps at once; seventy workers side by side with the usual ten polls each
                    # keep the server busier than the test does.
                    max_concurrent_workflow_task_polls=2,
                    max_concurrent_activity_task_polls=1,
                )
                await stack.enter_async_context(worker)
            yield cluster

    return serve
