"""Metrics of failing steps, and of a worker's own loops. The names are ours alone."""

from typing import Final

from opentelemetry import metrics

from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments

COUNTERS: Final = {
    "step_failures_total": "Attempts of steps, and of their parts, that failed, by step and class of failure."
}

# Measured at each scrape; the series are in worker/self_watch.py.
HELP: Final = {
    "queue_polled": "1 while this worker polls that task queue.",
    "loop_last_look_age_seconds": "For how long a loop has not seen everything that there is; 0 while it sleeps.",
    "steps_failing": "Steps, or parts of long ones, that failed more than three times in a row, by step and failure.",
}

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.steps"), counters=COUNTERS, histograms={}, prefix=OWN_PREFIX
)


def step_failed(step: str, failure: str) -> None:
    INSTRUMENTS.count("step_failures_total", {"step": step, "failure": failure})
