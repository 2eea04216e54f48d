"""How workflows run: in the sandbox, with our own packages passed through.

Our packages are pure where workflows use them; loading them again for each workflow would cost half as much time again.
"""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

_PURE = (
    "model",
    "messages",
    "placement",
    "disruption",
    "lifecycle",
    "termination",
    "notices",
    "metrics",
    "background",
    "ports",
    "activities",
    "workflows",
)
OURS = (*(f"dovetail.{room}" for room in _PURE), "numpy", "croniter", "orjson")


def runner() -> SandboxedWorkflowRunner:
    """The runner of every worker."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*OURS))
