"""How workflows run: in the sandbox, with the modules that they use passed through.

A workflow's own code must produce the same commands in a replay, so it may ask for the time, a random number or a new
id only through `workflow`. The sandbox enforces that in the modules that it loads itself: everything in
`dovetail.workflows`. All other packages are passed through: what workflows use of them is pure, and loading them again
for each workflow would cost far more than the workflow itself (decision record 93).

Code that belongs to no workflow does not enter the sandbox: for each payload, the SDK asks the workflow four times in
which context to convert it (decision record 93). A codec binds payloads to the workflow that they are meant for
(decision 248); the commands themselves say which: a child, a workflow that is signalled, or else this one.
"""

import logging
import sys
from typing import Final

from temporalio.api.enums.v1 import CommandType
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import StorageDriverStoreContext, WorkflowSerializationContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker._command_aware_visitor import CommandInfo
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

from dovetail.background.loop_watch import calls

_USED_BY_WORKFLOWS = (
    "model",
    "messages",
    "placement",
    "disruption",
    "lifecycle",
    "termination",
    "notices",
    "telemetry",
    "background",
    "ports",
    "activities",
)
OURS = (*(f"dovetail.{room}" for room in _USED_BY_WORKFLOWS), "numpy", "croniter", "orjson")


_log = logging.getLogger(__name__)

_CHILD: Final = CommandType.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION
_SIGNAL: Final = CommandType.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION


class _AtItsPlace(WorkflowInstance):
    """A workflow in its sandbox that need not be asked whose its payloads are."""

    def __init__(self, inside: WorkflowInstance, info: Info) -> None:
        self._inside, self._namespace = inside, info.namespace
        self._late = False  # the task under way, and said so
        self._own = self._of(info.workflow_id)
        self._others: dict[tuple[int, int], WorkflowSerializationContext] = {}

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        self._late = False
        completion = self._inside.activate(act)
        for command in completion.successful.commands:
            self._note(command)
        return completion

    def _note(self, command: WorkflowCommand) -> None:
        """Note which workflow a command's payloads, and those of its answer, belong to."""
        kind = command.WhichOneof("variant")
        if kind == "start_child_workflow_execution":
            child = command.start_child_workflow_execution
            self._others[_CHILD, child.seq] = self._of(child.workflow_id)
        elif kind == "signal_external_workflow_execution":
            sent = command.signal_external_workflow_execution
            self._others[_SIGNAL, sent.seq] = self._of(sent.child_workflow_id or sent.workflow_execution.workflow_id)

    def _of(self, workflow_id: str) -> WorkflowSerializationContext:
        return WorkflowSerializationContext(namespace=self._namespace, workflow_id=workflow_id)

    def get_info(self) -> Info:
        return self._inside.get_info()

    def get_thread_id(self) -> None:
        """Called when a task is late, to raise an exception in its thread. None is given, so the task finishes
        (decision record 93)."""
        frame = sys._current_frames().get(self._inside.get_thread_id() or 0)
        if frame is not None and not self._late:
            self._late = True
            _log.warning("a task of workflow %s is late: %s", self._inside.get_info().workflow_id, calls(frame))

    def get_serialization_context(self, command_info: CommandInfo | None) -> WorkflowSerializationContext:
        if command_info is None:
            return self._own
        return self._others.get((command_info.command_type, command_info.command_seq), self._own)

    def get_external_store_context(self, _command_info: object) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)


class _Runner(SandboxedWorkflowRunner):
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _AtItsPlace(super().create_instance(det), det.info)


def runner() -> SandboxedWorkflowRunner:
    return _Runner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*OURS))
