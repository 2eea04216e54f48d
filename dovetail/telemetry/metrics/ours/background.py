"""Metrics of background tasks, and of the event loop's lateness. These names are ours alone."""

from typing import Final

from opentelemetry import metrics

from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Durations, Instruments

COUNTERS: Final = {
    "background_task_failures_total": "Failures of tasks that run beside the steps and were started anew, by task.",
    "notices_dropped_total": "Events that were not published, because too many waited or the worker stopped.",
}

HISTOGRAMS: Final[Durations] = {
    "event_loop_lag_seconds": (
        "Seconds by which the event loop of a worker was late, four times a second: what steps feel.",
        (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    ),
}

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.background"), counters=COUNTERS, histograms=HISTOGRAMS, prefix=OWN_PREFIX
)


def task_failed(task: str) -> None:
    """A background task has failed and is restarted."""
    INSTRUMENTS.count("background_task_failures_total", {"task": task})


def notices_dropped(number: int) -> None:
    """Notices were dropped, so nobody will read them."""
    INSTRUMENTS.count("notices_dropped_total", {}, number)


def loop_late(seconds: float) -> None:
    """The event loop was so much later than requested."""
    INSTRUMENTS.observe("event_loop_lag_seconds", seconds, {})
