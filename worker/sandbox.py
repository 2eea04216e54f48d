"""How workflows run: in the sandbox, with our own packages passed through.

Asked by workers, tests and replays, which must agree or a history would not replay. Our packages are pure where
workflows use them; reloading them for each workflow would cost half again as much time.
"""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

OURS = ("core", "ports", "activities", "workflows", "numpy", "croniter", "orjson")


def runner() -> SandboxedWorkflowRunner:
    """The runner of every worker."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*OURS))
