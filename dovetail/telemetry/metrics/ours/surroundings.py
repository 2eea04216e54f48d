"""Gauges of a worker's surroundings, under names of our own: which watches are broken, how wrong the clock is."""

from collections.abc import Iterator, Mapping
from typing import Final

from dovetail.ports.clock import Clock
from dovetail.telemetry.metrics.gauges import Sample

HELP: Final = {
    "watch_broken": "1 for each kind whose watch is broken: what is decided on that kind waits.",
    "clock_ahead_seconds": "How far this worker's clock is ahead of the API server's; negative: behind.",
    "worker_fit": "0 while this worker takes no step: its clock is far off, or a Karpenter runs in the same cluster.",
    "counts_left_out": (
        "What was counted beyond the 20,000 series that a metric may have, by `metric`: it stands in no series until "
        "the worker is started again."
    ),
}


def watch_samples(stale: Mapping[str, str]) -> Iterator[Sample]:
    """The kinds whose data cannot be trusted now."""
    for kind in sorted(stale):
        yield Sample(name="watch_broken", labels=(("kind", kind),), value=1.0)


def clock_sample(clock: Clock) -> Sample:
    """How far the clocks differ."""
    return Sample(name="clock_ahead_seconds", value=round(clock.ahead(), 3))


def fit_sample(unfit: str) -> Sample:
    """Whether this worker takes steps."""
    return Sample(name="worker_fit", value=0.0 if unfit else 1.0)
