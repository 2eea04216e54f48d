"""Summaries: quantiles of the last ten minutes' observations, as Karpenter has for two of its durations.

OpenTelemetry has no such instrument and Python's Prometheus client none with quantiles, so they are computed here,
exactly, from at most 10,000 observations of each series. Sum and count are since the process began. A series without an
observation in ten minutes shows NaN, as the original does.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.telemetry.metrics.exposition import head, line

QUANTILES: Final = (0.0, 0.5, 0.9, 0.99, 1.0)
WINDOW_SECONDS: Final = 600.0
MOST_KEPT: Final = 10_000

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Series:
    total: float = 0.0
    count: int = 0
    recent: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))

    def add(self, now: float, amount: float) -> None:
        self.total += amount
        self.count += 1
        self.recent.append((now, amount))

    def quantiles(self, now: float) -> Iterator[tuple[float, float]]:
        while self.recent and self.recent[0][0] < now - WINDOW_SECONDS:
            self.recent.popleft()
        ordered = sorted(amount for _, amount in self.recent)
        for share in QUANTILES:
            at = max(0, math.ceil(share * len(ordered)) - 1)
            yield share, ordered[at] if ordered else math.nan


class Summaries:
    """The summaries of one process, by name without their prefix."""

    def __init__(self, words: Mapping[str, str], prefix: str, now: Callable[[], float] = time.monotonic) -> None:
        self.words, self._prefix, self._now = words, prefix, now
        self._series: dict[str, dict[Labels, _Series]] = {}
        self._lock = threading.Lock()  # steps and scrapes run in different threads

    def observe(self, name: str, amount: float, labels: Mapping[str, str]) -> None:
        """Add one observation; a negative amount counts as none."""
        with self._lock:
            found = self._series.setdefault(name, {}).setdefault(tuple(sorted(labels.items())), _Series())
            found.add(self._now(), max(0.0, amount))

    def lines(self) -> Iterator[str]:
        with self._lock:
            yield from [text for name in sorted(self._series) for text in self._family(name)]

    def _family(self, name: str) -> Iterator[str]:
        full, now = self._prefix + name, self._now()
        yield from head(full, self.words[name], "summary")
        for labels, series in self._series[name].items():
            for share, amount in series.quantiles(now):
                yield line(full, (*labels, ("quantile", f"{share:g}")), amount)
            yield line(f"{full}_sum", labels, series.total)
            yield line(f"{full}_count", labels, series.count)
