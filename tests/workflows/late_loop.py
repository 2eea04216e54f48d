"""What a workflow's loop has to do next, and comes late to, once. Outside the sandbox: it knows whether it was late."""

import time
from collections import deque
from typing import Any

TOO_LONG_SECONDS = 3.0  # a workflow task has two
WAS_LATE: set[str] = set()  # workflows, by id


class LateOnce(deque[Any]):
    """The first thing that is taken comes late: taken, and not begun yet."""

    def __init__(self, ready: deque[Any], workflow_id: str) -> None:
        super().__init__(ready)
        self.workflow_id = workflow_id

    def popleft(self) -> Any:
        taken = super().popleft()
        if self.workflow_id not in WAS_LATE:
            WAS_LATE.add(self.workflow_id)
            end = time.monotonic() + TOO_LONG_SECONDS
            while time.monotonic() < end:
                pass
        return taken
