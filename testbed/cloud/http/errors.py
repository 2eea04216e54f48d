"""The refusal of an AWS call: one exception with AWS's own code, message and HTTP status.

Raised anywhere below the gateway, turned into the protocol's error body in one place (`wire.py`).
"""


class AwsError(Exception):
    """A refusal as AWS words it; `code` is what callers classify by, never `message`."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def dry_run_passed() -> AwsError:
    """AWS answers an allowed dry run with an error of its own (AWS-42)."""
    return AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
