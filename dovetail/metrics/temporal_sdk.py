"""The metrics of Temporal's SDK, kept here and printed with all others: one endpoint, one port.

The SDK hands over its updates through a buffer, which is emptied every second and at each scrape; its own exporter
would open a second port beside ours. Names are the SDK's own, and durations are in milliseconds as it counts them.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Protocol

from dovetail.metrics.exposition import head, line

COUNTER: Final = 0
GAUGE: Final = 1
HISTOGRAM: Final = 2
BOUNDS: Final = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0, 30000.0, 60000.0)

_KINDS: Final = {COUNTER: "counter", GAUGE: "gauge", HISTOGRAM: "histogram"}

Labels = tuple[tuple[str, str], ...]


class Metric(Protocol):
    """A metric of the SDK."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def kind(self) -> int: ...


class Update(Protocol):
    """One update of one series."""

    @property
    def metric(self) -> Metric: ...
    @property
    def value(self) -> int | float: ...
    @property
    def attributes(self) -> Mapping[str, str | int | float | bool]: ...


@dataclass(slots=True)
class _Series:
    value: float = 0.0
    count: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))


class SdkMetrics:
    """What the SDK of one process has counted. `updates` empties its buffer; it fails before there is a runtime."""

    def __init__(self, updates: Callable[[], Sequence[Update]]) -> None:
        self._updates = updates
        self._words: dict[str, tuple[int, str]] = {}
        self._series: dict[str, dict[Labels, _Series]] = {}
        self._labels: dict[int, tuple[object, Labels]] = {}  # by identity, with the object that has it
        self._lock = threading.Lock()

    def drain(self) -> None:
        """Take over what waits in the buffer."""
        with self._lock:
            for update in self._updates():
                self._take(update)

    def _take(self, update: Update) -> None:
        metric = update.metric
        self._words[metric.name] = metric.kind, metric.description or metric.name
        labels = self._labels_of(update.attributes)
        series = self._series.setdefault(metric.name, {}).setdefault(labels, _Series())
        if metric.kind == GAUGE:
            series.value = float(update.value)
            return
        series.value += update.value
        if metric.kind == HISTOGRAM:
            series.count += 1
            series.buckets[bisect_left(BOUNDS, update.value)] += 1

    def _labels_of(self, attributes: Mapping[str, str | int | float | bool]) -> Labels:
        """The SDK hands out the same object for the same set."""
        known = self._labels.get(id(attributes))
        if known is None:
            labels = tuple(sorted((key, str(value)) for key, value in attributes.items()))
            known = self._labels[id(attributes)] = attributes, labels
        return known[1]

    def lines(self) -> Iterator[str]:
        """As Prometheus reads them."""
        self.drain()
        with self._lock:
            yield from [text for name in sorted(self._series) for text in self._family(name)]

    def _family(self, name: str) -> Iterator[str]:
        kind, words = self._words[name]
        yield from head(name, words, _KINDS[kind])
        for labels, series in self._series[name].items():
            if kind != HISTOGRAM:
                yield line(name, labels, series.value)
                continue
            bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
            for bound, below in zip(bounds, accumulate(series.buckets), strict=True):
                yield line(f"{name}_bucket", (*labels, ("le", bound)), below)
            yield line(f"{name}_sum", labels, series.value)
            yield line(f"{name}_count", labels, series.count)
