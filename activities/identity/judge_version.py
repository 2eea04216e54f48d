"""Judges whether this worker's version may be given work, before it gets any.

The checks are those of `dovetail doctor` that a version can fail by itself: its rights, its credentials, the fields
that it needs in definitions. They live in a package above the steps and are passed in where the worker is started.
"""

from collections.abc import Awaitable, Callable

from temporalio import activity
from temporalio.exceptions import ApplicationError

Findings = Callable[[], Awaitable[tuple[str, ...]]]
NOT_FIT = "NotFit"


async def nobody_looks() -> tuple[str, ...]:
    """The findings of a worker that was started without any."""
    return ("this worker was started without the checks of doctor",)


class JudgeVersion:
    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    @activity.defn
    async def judge_version(self) -> None:
        """Fails with everything that was found."""
        found = await self.findings()
        if found:
            raise ApplicationError("; ".join(found), type=NOT_FIT)
