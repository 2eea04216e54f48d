"""Instruments by name, made when they are first used.

Each part of the product lists its metrics in tables of its own; they are made here. A name that no table lists is an
error, so nothing without a description is counted. Instruments come from OpenTelemetry's API: in a process without its
SDK (the CLI, a test of one step) they count nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.metrics import _Gauge as Gauge  # public only from the next release on

PREFIX: Final = "karpenter_"
OWN_PREFIX: Final = "dovetail_"

Durations = Mapping[str, tuple[str, tuple[float, ...]]]  # name -> words, bounds of the buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruments:
    """The metrics of one part of the product, by names without their prefix."""

    meter: Meter
    counters: Mapping[str, str]
    histograms: Durations
    gauges: Mapping[str, str] = field(default_factory=dict)
    prefix: str = PREFIX
    made: dict[str, Any] = field(default_factory=dict)

    def on(self, meter: Meter) -> "Instruments":
        """The same instruments on another meter."""
        return replace(self, meter=meter, made={})

    def count(self, name: str, labels: Mapping[str, str], number: int = 1) -> None:
        self.counter(name).add(number, dict(labels))

    def observe(self, name: str, amount: float, labels: Mapping[str, str]) -> None:
        """Add one observation to the histogram of that name; a negative amount counts as none."""
        self.histogram(name).record(max(0.0, amount), dict(labels))

    def counter(self, name: str) -> Counter:
        if name not in self.made:
            self.made[name] = self.meter.create_counter(self.prefix + name, description=self.counters[name])
        found: Counter = self.made[name]
        return found

    def histogram(self, name: str) -> Histogram:
        if name not in self.made:
            words, bounds = self.histograms[name]
            self.made[name] = self.meter.create_histogram(
                self.prefix + name, description=words, explicit_bucket_boundaries_advisory=bounds
            )
        found: Histogram = self.made[name]
        return found

    def gauge(self, name: str) -> Gauge:
        """The gauge of that name, for values that follow from no snapshot."""
        if name not in self.made:
            self.made[name] = self.meter.create_gauge(self.prefix + name, description=self.gauges[name])
        found: Gauge = self.made[name]
        return found


__all__ = ["OWN_PREFIX", "PREFIX", "Durations", "Gauge", "Instruments"]
