"""As much of Temporal as Scheduler and DisruptNodes need, in one process and on a clock that tests move.

The workflows are the real classes; what they ask `workflow` for is answered here. A step that is killed, or fails, is
tried again after a second on whichever worker takes tasks then; a cancelled one is awaited. Continuing as new starts
the class again with the state alone.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from temporalio import workflow as real
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from dovetail.messages.workflow_types import DISRUPT_NODES, SCHEDULER
from dovetail.workflows.disrupt_nodes import DisruptNodes
from dovetail.workflows.scheduler import Scheduler
from tests.properties.marks.clockwork import Loop

MODULES = ("scheduler", "disrupt_nodes", "claim_owners", "attributes", "renewal", "waits")
TYPES: dict[str, Any] = {SCHEDULER: Scheduler, DISRUPT_NODES: DisruptNodes}
RETRY_SECONDS = 1.0

Attempt = Callable[[str, Any, int], Coroutine[Any, Any, Any]]


class AsNew(Exception):
    """A run ends and the next begins with this state."""


class Terminated(Exception):
    """A run ends without a word: nothing of ours catches this."""


@dataclass(eq=False)
class Execution:
    """One workflow id."""

    id: str
    type: str
    given: Any
    instance: Any = None
    task: "asyncio.Task[None] | None" = None
    seen: Any = None  # what its starter had decided on
    terminated: bool = False  # its code never goes on, so it undoes nothing either

    @property
    def runs(self) -> bool:
        return self.task is not None and not self.task.done() and not self.terminated


current: ContextVar[Execution] = ContextVar("current")


@dataclass(eq=False)
class SmallTemporal:
    """The server: executions by id, steps that run, and the news that wakes conditions."""

    loop: Loop
    attempt: Attempt
    executions: dict[str, Execution] = field(default_factory=dict)
    steps: "dict[asyncio.Task[Any], Execution]" = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    long: bool = False  # histories are
    started: int = 0
    on_start: Callable[[Execution], None] = lambda execution: None

    def start(self, kind: str, given: Any, identity: str) -> None:
        if kind in TYPES:
            self.executions[identity] = execution = Execution(identity, kind, given)
            self.on_start(execution)
            execution.task = self.loop.create_task(self._run(execution))

    async def _run(self, execution: Execution) -> None:
        current.set(execution)
        while True:
            execution.instance = TYPES[execution.type](execution.given)
            try:
                await execution.instance.run(execution.given)
                return
            except AsNew as again:
                [execution.given] = again.args
                self.long = False
            except Terminated:
                return

    def faults(self) -> list[BaseException]:
        """What ended workflows that should have gone on: a broken stage, or broken code."""
        tasks = [execution.task for execution in self.executions.values() if execution.task is not None]
        return [fault for t in tasks if t.done() and not t.cancelled() and (fault := t.exception()) is not None]

    def terminate(self, *executions: Execution) -> None:
        """Their steps end where they are; what they had started goes on."""
        for execution in executions:
            execution.terminated = True
        for step, owner in list(self.steps.items()):
            if owner in executions:
                step.cancel()

    async def step(self, name: str, argument: Any) -> Any:
        owner, tried = current.get(), 0
        while True:
            if owner.terminated:
                raise Terminated
            tried += 1
            step = self.loop.create_task(self.attempt(name, argument, tried))
            self.steps[step] = owner
            try:
                await asyncio.wait([step])
            except asyncio.CancelledError:
                step.cancel()
                await asyncio.wait([step])
                raise
            finally:
                del self.steps[step]
            if owner.terminated:
                raise Terminated
            if not step.cancelled() and step.exception() is None:
                return step.result()
            await asyncio.sleep(RETRY_SECONDS)

    async def wait_condition(self, condition: Callable[[], bool], timeout: Any = None) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    def news(self) -> None:
        """Something happened: let all run until they wait again."""
        self.changed.set()
        self.loop.settle()
        self.changed.set()
        self.loop.settle()

    # What activities ask a client

    def get_workflow_handle(self, identity: str) -> "SmallTemporal._Handle":
        return self._Handle(self.executions.get(identity))

    @dataclass
    class _Handle:
        execution: Execution | None

        async def describe(self) -> object:
            if self.execution is None:
                raise RPCError("no such workflow", RPCStatusCode.NOT_FOUND, b"")
            status = WorkflowExecutionStatus.RUNNING if self.execution.runs else WorkflowExecutionStatus.COMPLETED
            return SimpleNamespace(workflow_type=self.execution.type, status=status)

        async def query(self, name: str, **_: Any) -> Any:
            if self.execution is None or not self.execution.runs:
                raise RPCError("no workflow answers", RPCStatusCode.NOT_FOUND, b"")
            return getattr(self.execution.instance, name)()


def answers(server: SmallTemporal) -> SimpleNamespace:
    """The names of the module `workflow` that these workflows use."""

    def uuid7() -> UUID:
        server.started += 1
        return UUID(int=server.started)

    def begin(method: Any, argument: Any, **_: Any) -> "asyncio.Task[Any]":
        return server.loop.create_task(server.step(method.__qualname__, argument))

    async def execute(method: Any, argument: Any, **_: Any) -> Any:
        return await server.step(method.__qualname__, argument)

    async def start_child(kind: str, given: Any, *, id: str, **_: Any) -> None:
        server.start(kind, given, id)

    def as_new(state: Any, **_: Any) -> None:
        raise AsNew(state)

    def info() -> SimpleNamespace:
        return SimpleNamespace(
            workflow_id=current.get().id,
            get_current_history_length=lambda: 0,
            is_continue_as_new_suggested=lambda: server.long and current.get().type == SCHEDULER,
            is_target_worker_deployment_version_changed=lambda: False,
        )

    return SimpleNamespace(
        ParentClosePolicy=real.ParentClosePolicy,
        ActivityCancellationType=real.ActivityCancellationType,
        ContinueAsNewVersioningBehavior=real.ContinueAsNewVersioningBehavior,
        logger=logging.getLogger("workflows"),
        all_handlers_finished=lambda: True,
        cancellation_reason=lambda: None,
        continue_as_new=as_new,
        memo=dict,
        execute_activity_method=execute,
        info=info,
        now=lambda: datetime.fromtimestamp(server.loop.time(), UTC),
        patched=lambda identity: True,
        set_current_details=lambda text: None,
        start_activity_method=begin,
        start_child_workflow=start_child,
        upsert_search_attributes=lambda found: None,
        unsafe=SimpleNamespace(is_replaying=lambda: True),  # what is counted is not of interest
        uuid7=uuid7,
        wait_condition=server.wait_condition,
    )


@contextmanager
def in_place_of_temporal(server: SmallTemporal) -> Iterator[None]:
    """The workflows ask this server."""
    with pytest.MonkeyPatch.context() as patch:
        for module in MODULES:
            patch.setattr(f"dovetail.workflows.{module}.workflow", answers(server))
        yield
