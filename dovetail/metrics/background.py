"""What is counted of background tasks. These names are ours alone: Karpenter has no such metrics."""

from typing import Final

from opentelemetry import metrics

from dovetail.metrics.instruments import OWN_PREFIX, Instruments

COUNTERS: Final = {
    "background_task_failures_total": "Failures of tasks that run beside the steps and were started anew, by task.",
    "notices_dropped_total": "Events that were not published, because too many waited or the worker stopped.",
}

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.background"), counters=COUNTERS, histograms={}, prefix=OWN_PREFIX
)


def task_failed(task: str) -> None:
    """A background task has failed and is started anew."""
    INSTRUMENTS.count("background_task_failures_total", {"task": task})


def notices_dropped(number: int) -> None:
    """Notices that nobody will read."""
    INSTRUMENTS.count("notices_dropped_total", {}, number)
