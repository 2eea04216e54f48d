"""What a worker uses, and how late its event loop is, from one moment to another."""

import re
import time
import urllib.request
from dataclasses import dataclass
from math import inf
from typing import Final

from acceptance.bench.inputs.lifecycle import processor

PATIENCE: Final = 60.0
LATE: Final = 0.05
_LAG: Final = re.compile(r'^dovetail_event_loop_lag_seconds_bucket\{[^}]*le="([^"]+)"[^}]*\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """Of a worker, up to a moment. `lags`: how many ticks of its event loop were at most so late."""

    at: float
    processor: float
    lags: dict[float, float]

    @classmethod
    def of(cls, pid: int, port: int) -> "WorkerLoad":
        """As its metrics and the kernel have it."""
        found = _LAG.findall(page(port))
        return cls(time.monotonic(), processor(pid), {float(bound): float(count) for bound, count in found})

    def since(self, before: "WorkerLoad") -> str:
        """In words."""
        seconds = self.at - before.at
        ticks = {bound: count - before.lags.get(bound, 0.0) for bound, count in sorted(self.lags.items())}
        all_of_them = ticks[inf]
        longest = next(bound for bound, count in ticks.items() if count == all_of_them)
        return (
            f"{(self.processor - before.processor) / seconds:.1%} of a core in {seconds:.0f} s, the event loop more "
            f"than 50 ms late at {all_of_them - ticks[LATE]:.0f} of {all_of_them:.0f} looks at it, and never later "
            f"than {longest:g} s"
        )


def page(port: int) -> str:
    """The metrics of a worker on this machine."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        return str(answer.read().decode())
