"""The interceptor that carries fault orders out inside the worker under test.

Asked at each point of each step, and in workflow code. A kill waits until as many as ordered stand at its point (four
seconds at most), so that one kill strikes many claims. Repeating and failing depend on the attempt alone, so they need
no memory. A workflow that replays is not struck again, and reads no files inside the sandbox.
"""

import asyncio
import os
import signal
from typing import Any

import temporalio.client
from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model.nodes import NodeClaim
from dovetail.ports.cloud import ClassNotReady, Cloud, Instance, LaunchRefused, NoCapacity, Prepared
from worlds.fault_orders import Kill, Orders

GATHER_SECONDS = 4.0
DURING_SECONDS = 1.0

# Steps that wait for something to decide and have no effects: run twice they would wait for the next thing.
ENDLESS = frozenset({"await_provisioning_plan", "await_disruption_plan", "await_orders", "keep_up"})


class Faults:
    """The orders as this process carries them out."""

    def __init__(self, orders: Orders, mode: str = "") -> None:
        self.orders = orders
        self.mode = mode  # "twice", "fail" or nothing
        self.standing: dict[str, list[str]] = {}

    async def reached(self, point: str, subject: str) -> None:
        """A step has arrived at a point: where a kill is due there, it stands until the kill strikes."""
        kill = self.orders.at(point)
        if kill is None:
            return
        here = self.standing.setdefault(kill.name, [])
        here.append(subject)
        if len(here) < kill.count:
            await asyncio.sleep(GATHER_SECONDS)
        self.strike(kill, here)

    def reached_in_workflow(self, point: str, subject: str) -> None:
        """The same in workflow code, where waiting is impossible: the last of the ordered number strikes."""
        kill = self.orders.at(point)
        if kill is None:
            return
        here = self.standing.setdefault(kill.name, [])
        here.append(subject)
        if len(here) >= kill.count:
            self.strike(kill, here)

    def strike(self, kill: Kill, subjects: list[str]) -> None:
        self.orders.record(kill, subjects, os.getpid())
        os.kill(os.getpid(), signal.SIGKILL)


# The one of this process; set by tests.faults.worker before anything runs.
_faults: Faults | None = None


def install(faults: Faults) -> None:
    global _faults
    _faults = faults


class Killer(temporalio.client.Interceptor, Interceptor):
    """Given with the client, so that it stands outside the worker's own interceptors."""

    def intercept_client(self, next: temporalio.client.OutboundInterceptor) -> temporalio.client.OutboundInterceptor:
        return _FromSteps(next)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _AroundSteps(next)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        return _InWorkflows


class _FromSteps(temporalio.client.OutboundInterceptor):
    """The workflows that a step starts."""

    async def start_workflow(
        self, input: temporalio.client.StartWorkflowInput
    ) -> temporalio.client.WorkflowHandle[Any, Any]:
        if not activity.in_activity():
            return await super().start_workflow(input)
        assert _faults is not None
        subject = activity.info().workflow_id or ""
        await _faults.reached(f"starts:{input.workflow}", subject)
        handle = await super().start_workflow(input)
        await _faults.reached(f"started:{input.workflow}", subject)
        return handle


class _AroundSteps(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        assert _faults is not None
        info = activity.info()
        name, subject = info.activity_type, info.workflow_id or ""
        await _faults.reached(f"before:{name}", subject)
        if _faults.mode == "fail" and name not in ENDLESS and info.attempt == 1:
            raise ApplicationError("a fault on order, before the step")
        result = await self._run(input, f"during:{name}", subject)
        if name not in ENDLESS:
            if _faults.mode == "twice":
                result = await super().execute_activity(input)
            if _faults.mode == "fail" and info.attempt == 2:
                raise ApplicationError("a fault on order, after the step")
        await _faults.reached(f"after:{name}", subject)
        return result

    async def _run(self, input: ExecuteActivityInput, point: str, subject: str) -> Any:
        assert _faults is not None
        if _faults.orders.at(point) is None:
            return await super().execute_activity(input)
        striking = asyncio.create_task(_after_a_while(_faults, point, subject))
        try:
            return await super().execute_activity(input)
        finally:
            striking.cancel()


async def _after_a_while(faults: Faults, point: str, subject: str) -> None:
    await asyncio.sleep(DURING_SECONDS)
    await faults.reached(point, subject)


class _InWorkflows(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_FromWorkflows(outbound))


class _FromWorkflows(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> "workflow.ActivityHandle[Any]":
        _reached(f"calls:{input.activity}")
        return super().start_activity(input)

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> "workflow.ChildWorkflowHandle[Any, Any]":
        _reached(f"starts:{input.workflow}")
        handle = await super().start_child_workflow(input)
        _reached(f"started:{input.workflow}")
        return handle


def _reached(point: str) -> None:
    if workflow.unsafe.is_replaying():
        return
    with workflow.unsafe.sandbox_unrestricted():
        assert _faults is not None
        _faults.reached_in_workflow(point, workflow.info().workflow_id)


class KillingCloud:
    """The cloud, with a point between its answer to a launch or an end and what is done with the answer."""

    def __init__(self, cloud: Cloud, faults: Faults) -> None:
        self.cloud = cloud
        self.faults = faults

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        return await self.cloud.prepare(claim)

    async def launch(
        self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        answer = await self.cloud.launch(claim, request, token, share)
        await self.faults.reached("answered:launch", activity.info().workflow_id or "")
        return answer

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        return await self.cloud.find(claim_uid=claim_uid, provider_id=provider_id)

    async def terminate(self, provider_id: str, claim: str = "") -> Any:
        answer = await self.cloud.terminate(provider_id, claim)
        if answer == "gone":
            await self.faults.reached("answered:terminate", activity.info().workflow_id or "")
        return answer

    async def reboot(self, provider_id: str, claim: str = "") -> None:
        await self.cloud.reboot(provider_id, claim)

    async def list_instances(self) -> tuple[Instance, ...]:
        return await self.cloud.list_instances()
