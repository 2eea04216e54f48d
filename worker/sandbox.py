"""How workflows run: in the sandbox, with what they use passed through, and not they themselves.

A workflow's own code must come to the same commands at a replay, so it may not ask for the time, for chance or for a
new id but through `workflow`. The sandbox refuses that to each module that it loads itself: everything in
`dovetail.workflows`. The other rooms are passed through: what workflows use of them is pure, and to load them again for
each workflow would cost much more than the workflow (decision record 93).
"""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

_USED_BY_WORKFLOWS = (
    "model",
    "messages",
    "placement",
    "disruption",
    "lifecycle",
    "termination",
    "notices",
    "deeds",
    "traces",
    "metrics",
    "background",
    "ports",
    "activities",
)
OURS = (*(f"dovetail.{room}" for room in _USED_BY_WORKFLOWS), "numpy", "croniter", "orjson")


def runner() -> SandboxedWorkflowRunner:
    """The runner of every worker."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*OURS))
