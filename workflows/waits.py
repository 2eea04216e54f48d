"""The waits of a workflow that never ends: steps without effects, which may be cancelled at any time.

What a cancelled wait would have found is found again by the next one. A singleton continues as new only when all its
loops are parked, because leaving as soon as one of them wants to would lose the work that another carries out.
"""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from dovetail.workflows.renewal import due_for_renewal


class Waits:
    """The waits under way, by name, and whether their workflow is leaving."""

    def __init__(self) -> None:
        self.leaving = False
        self._running: dict[str, workflow.ActivityHandle[object]] = {}

    async def wait(self, name: str, step: "workflow.ActivityHandle[object]") -> object | None:
        """The step's answer; None if the wait was cancelled by `cancel`, and not with its whole workflow."""
        self._running[name] = step
        try:
            return await step
        except (ActivityError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error) and workflow.cancellation_reason() is None:
                return None
            raise
        finally:
            self._running.pop(name, None)

    def cancel(self, *names: str) -> None:
        """Cancel the waits with these names; all of them if none is named."""
        for name in sorted(names or self._running):
            if name in self._running:
                self._running[name].cancel()

    def leave_if_long(self, max_history: int) -> None:
        """Cancel all waits for good when the history is long.

        To be called by the loops themselves, not in a `finally`: that also runs when a workflow is evicted from memory,
        outside the workflow's event loop.
        """
        if not self.leaving and due_for_renewal(max_history):
            self.leaving = True
            self.cancel()
