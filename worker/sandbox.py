"""How workflows run: in the sandbox, with what they use passed through, and not they themselves.

A workflow's own code must come to the same commands at a replay, so it may not ask for the time, for chance or for a
new id but through `workflow`. The sandbox refuses that to each module that it loads itself: everything in
`dovetail.workflows`. The other rooms are passed through: what workflows use of them is pure, and to load them again for
each workflow would cost much more than the workflow (decision record 93).

What is no workflow's own code does not enter the sandbox: for each payload the SDK asks the workflow four times in
whose context it is converted, and our converters do not look at that (decision record 93).
"""

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import SerializationContext, StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

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


class _WithoutContexts(WorkflowInstance):
    """A workflow in its sandbox, whose payloads are converted alike in every context."""

    def __init__(self, inside: WorkflowInstance) -> None:
        self._inside = inside

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._inside.activate(act)

    def get_info(self) -> Info:
        return self._inside.get_info()

    def get_thread_id(self) -> int | None:
        return self._inside.get_thread_id()

    def get_serialization_context(self, _command_info: object) -> SerializationContext | None:
        return None

    def get_external_store_context(self, _command_info: object) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)


class _Runner(SandboxedWorkflowRunner):
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _WithoutContexts(super().create_instance(det))


def runner() -> SandboxedWorkflowRunner:
    """The runner of every worker."""
    return _Runner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*OURS))
