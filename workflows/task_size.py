"""The last line of defence against a workflow task that the server refuses for its size.

The server terminates a workflow whose task contains more than 4 MiB. Plans are cut and started in parts, so that no
task comes near that; this guard does not depend on it. It sums the encoded bytes of what one task asks for, and ends
the task before the sum passes the limit: the rest is asked for in the next one.

A marker in the history records where a task ended early, and only a marker makes a replay do the same. So a version
that encodes a little more or less can replay what another has recorded.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from dovetail.workflows.outbound import around_requests

with workflow.unsafe.imports_passed_through():
    from dovetail.messages.sizes import TASK_BYTES

NEXT_TASK = timedelta(milliseconds=1)


class TaskSizeGuard(Interceptor):
    """Puts the guard around every workflow."""

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        return around_requests(_Outbound)


class _Outbound(WorkflowOutboundInterceptor):
    """Counts what is asked for, task by task."""

    def __init__(self, next: WorkflowOutboundInterceptor) -> None:
        super().__init__(next)
        self.task = -1  # the task under way, by the length of the history at its beginning
        self.bytes = 0  # of what it has asked for
        self.asked = 0  # how much was asked for in this run
        self.turn = asyncio.Lock()  # held by the one that waits for the next task; the others follow it

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:
        async with self.turn:
            size = size_of(input.args)
            if self.is_last(size):
                await self.next_task(size)
        return await self.next.start_child_workflow(input)

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        size = size_of(input.args)
        return self.later(input, size) if self.is_last(size) else self.next.start_activity(input)

    def later(self, input: StartActivityInput, size: int) -> workflow.ActivityHandle[Any]:
        """The step in the next task; one that is cancelled before never starts."""

        async def start() -> Any:
            async with self.turn:
                await self.next_task(size)
            return await self.next.start_activity(input)

        return asyncio.create_task(start())  # type: ignore[return-value]  # awaited and cancelled as a handle is

    def is_last(self, size: int) -> bool:
        """Whether the task must end before this request; if not, count the request."""
        self.asked += 1
        if self.task != workflow.info().get_current_history_length():
            self.task, self.bytes = workflow.info().get_current_history_length(), 0
        full = self.bytes > 0 and self.bytes + size > TASK_BYTES
        if (full or workflow.unsafe.is_replaying()) and workflow.patched(f"task-ended-before-{self.asked}"):
            return True
        self.bytes += size
        return False

    async def next_task(self, size: int) -> None:
        """End the task with a timer; what waited comes first in the next one."""
        await workflow.sleep(NEXT_TASK, summary="the task would be too large")
        self.task, self.bytes = workflow.info().get_current_history_length(), size


def size_of(arguments: Sequence[Any]) -> int:
    """The encoded bytes of these arguments."""
    return sum(len(payload.data) for payload in workflow.payload_converter().to_payloads(arguments))
