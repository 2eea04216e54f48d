"""What is counted of background tasks. These names are ours alone: Karpenter has no such metrics."""

from typing import Final

from opentelemetry import metrics

from dovetail.metrics.instruments import Instruments

OWN_PREFIX: Final = "dovetail_"

COUNTERS: Final = {
    "background_task_failures_total": "Failures of tasks that run beside the steps and were started anew, by task.",
}

INSTRUMENTS: Final = Instruments(
    meter=metrics.get_meter("dovetail.background"), counters=COUNTERS, histograms={}, prefix=OWN_PREFIX
)


def task_failed(task: str) -> None:
    """A background task has failed and is started anew."""
    INSTRUMENTS.count("background_task_failures_total", {"task": task})
