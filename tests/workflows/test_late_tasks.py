"""A workflow task that takes too long comes to its own end: neither its workflow nor its worker is stuck."""

import asyncio
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client

from dovetail.messages.workflow_ids import task_queue
from tests.workflows.conftest import serving_on

with workflow.unsafe.imports_passed_through():
    from tests.workflows.late_loop import WAS_LATE, LateOnce

pytestmark = pytest.mark.temporal
SECONDS = 120.0


@workflow.defn
class Late:
    """Once held up where its loop has taken a step and has not begun it."""

    @workflow.run
    async def run(self) -> str:
        loop: Any = asyncio.get_running_loop()
        loop._ready = LateOnce(loop._ready, workflow.info().workflow_id)
        return await asyncio.create_task(self.answer())

    async def answer(self) -> str:
        """A task of its own."""
        return "answered"


@activity.defn
async def no_step() -> None:
    """A worker must serve something."""


async def test_a_late_task_loses_no_step(full_server: Client) -> None:
    """An exception raised in its thread, as the SDK does it, would take the step along: then the workflow could not be
    evicted, and its worker not be shut down."""
    async with asyncio.timeout(SECONDS), serving_on(full_server)([Late], [no_step]) as cluster:
        started = await full_server.start_workflow(
            Late.run, id=f"late-{cluster}", task_queue=task_queue(cluster, "control")
        )
        assert await started.result() == "answered"
    assert started.id in WAS_LATE
