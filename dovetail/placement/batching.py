"""When is a batch of pending pods complete?

The window opens with the first pod. It closes when no new pod has come for the idle time, and at the latest after the
longest time (PLC-4 to PLC-6). A pod that was in the window already does not prolong it. The window is timed inside an
activity, where it costs no events; with workflow timers it would cost 6.5 events per pod.
"""

from collections.abc import Set
from dataclasses import dataclass, field


@dataclass(slots=True)
class BatchWindow:
    """One window. All times are seconds of the same clock."""

    idle: float
    longest: float
    opened: float | None = None
    newest: float = 0.0
    seen: set[str] = field(default_factory=set)

    def add(self, uids: Set[str], now: float) -> None:
        """Look at the pods that are pending now."""
        new = uids - self.seen
        if not new:
            return
        self.seen |= new
        self.newest = now
        if self.opened is None:
            self.opened = now

    def closes(self) -> float | None:
        """When it closes if no further pod arrives; None until it opens."""
        if self.opened is None:
            return None
        return min(self.newest + self.idle, self.opened + self.longest)
