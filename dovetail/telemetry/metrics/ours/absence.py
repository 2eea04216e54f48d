"""Metrics of a worker that gets no answer from Temporal. The names are ours alone."""

from typing import Final

from opentelemetry import metrics

from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments

COUNTERS: Final = {
    "interruptions_answered_without_temporal_total": "Warnings of the cloud that a worker answered without a workflow.",
    "departures_begun_without_temporal_total": "Leaving nodes that a worker began to drain while Temporal was away.",
}

# Measured at each scrape; the series are in worker/self_watch.py.
HELP: Final = {
    "temporal_silent_seconds": "For how long Temporal has not answered this worker; 0 while it does.",
    "departures_without_temporal": "Nodes that this worker drains now in place of their workflows.",
}

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.absence"), counters=COUNTERS, histograms={}, prefix=OWN_PREFIX
)


def answered_directly(number: int) -> None:
    """Warnings were answered without a workflow."""
    INSTRUMENTS.count("interruptions_answered_without_temporal_total", {}, number)


def departure_begun() -> None:
    """A node is drained without its workflow."""
    INSTRUMENTS.count("departures_begun_without_temporal_total", {})
