"""Steps in Karpenter's terms: reconciles of controllers and items of their queues.

A step that acts is a reconcile, and its time in Temporal is the queue's: from when an attempt could begin until a
worker took it. Loops and waits last for minutes by design; they are counted when they end, but their duration says
nothing about speed. Their rounds are timed instead, each as a reconcile of its controller.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from opentelemetry import metrics

from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments
from dovetail.telemetry.metrics.karpenters.controllers import CONTROLLERS, controller_of

_TIMES: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0),
    *(40.0, 50.0, 60.0),
)
_QUEUE_TIMES: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1000.0)

# Steps that wait for the cluster, for people or for time: their duration is not our latency.
WAITS: Final = frozenset(
    {
        *("await_provisioning_plan", "await_disruption_plan", "await_orders", "keep_up", "watch_interruptions"),
        *("await_joined", "await_initialized", "await_marked", "await_ready", "await_gone"),
        *("drain_node", "await_detached", "terminate_instance"),
    }
)

RECONCILES: Final = Instruments(
    meter=metrics.get_meter("dovetail.reconciles"),
    counters={
        "reconcile_total": "Steps and rounds that ended, by controller and result.",
        "reconcile_errors_total": "Attempts of steps that failed, by controller.",
        "terminal_reconcile_errors_total": "Attempts of steps that failed for good, by controller.",
        "reconcile_panics_total": "Always 0: an unexpected error is an error like others.",
    },
    histograms={"reconcile_time_seconds": ("Seconds of steps that act and of rounds, by controller.", _TIMES)},
    prefix="controller_runtime_",
)
QUEUES: Final = Instruments(
    meter=metrics.get_meter("dovetail.queues"),
    counters={
        "adds_total": "Attempts of steps that Temporal handed to this worker, by controller.",
        "retries_total": "Those of them that were not the first, by controller.",
    },
    histograms={
        "queue_duration_seconds": ("Seconds from when an attempt could begin until it began.", _QUEUE_TIMES),
        "work_duration_seconds": ("Seconds of steps that act, by controller.", _QUEUE_TIMES),
    },
    prefix="workqueue_",
)
ROUNDS: Final = Instruments(
    meter=metrics.get_meter("dovetail.rounds"),
    counters={},
    histograms={"round_duration_seconds": ("Seconds of rounds of planning and deciding, by loop.", _TIMES)},
    gauges={"last_round_timestamp_seconds": "When the last round of a loop ended here, in seconds since 1970."},
    prefix=OWN_PREFIX,
)
RUNTIME_HELP: Final = {"active_workers": "Steps that run here now, by controller."}
QUEUE_HELP: Final = {
    "unfinished_work_seconds": "For how long the steps that act have run that run here now, all together.",
    "longest_running_processor_seconds": "For how long the one of them that began first has run.",
}
STEP_HELP: Final = {"steps_running": "Steps that run here now, by step and how often they were tried: 1, 2-3 or 4+."}

_CONTROLLER_OF_LOOP: Final = {"provisioning": "provisioner", "disruption": "disruption"}


class Run(NamedTuple):
    step: str
    attempt: int
    began: float


def begin() -> None:
    """Let every controller's metrics exist before it has done anything: dashboards list them by name."""
    for controller in sorted(set(CONTROLLERS.values())):
        labels = {"controller": controller}
        for name in ("reconcile_errors_total", "terminal_reconcile_errors_total", "reconcile_panics_total"):
            RECONCILES.count(name, labels, 0)
        for result in ("success", "error"):
            RECONCILES.count("reconcile_total", {**labels, "result": result}, 0)


def started(step: str, attempt: int, waited: float) -> None:
    """An attempt has begun, so many seconds after it could."""
    labels = _queue_labels(step)
    QUEUES.count("adds_total", labels)
    QUEUES.observe("queue_duration_seconds", waited, labels)
    if attempt > 1:
        QUEUES.count("retries_total", labels)


def ended(step: str, seconds: float, *, failed: bool = False, for_good: bool = False) -> None:
    labels = {"controller": controller_of(step)}
    RECONCILES.count("reconcile_total", {**labels, "result": "error" if failed else "success"})
    if failed:
        RECONCILES.count("reconcile_errors_total", labels)
    if for_good:
        RECONCILES.count("terminal_reconcile_errors_total", labels)
    if step not in WAITS:
        RECONCILES.observe("reconcile_time_seconds", seconds, labels)
        QUEUES.observe("work_duration_seconds", seconds, _queue_labels(step))


def round_ended(loop: str, seconds: float) -> None:
    """A round of planning or deciding has ended."""
    ROUNDS.observe("round_duration_seconds", seconds, {"loop": loop})
    ROUNDS.gauge("last_round_timestamp_seconds").set(round(time.time(), 3), {"loop": loop})
    controller = _CONTROLLER_OF_LOOP.get(loop)
    if controller is not None:
        RECONCILES.count("reconcile_total", {"controller": controller, "result": "success"})
        RECONCILES.observe("reconcile_time_seconds", seconds, {"controller": controller})


def running_lines(running: Iterable[Run], now: float) -> Iterator[str]:
    runs = list(running)
    yield from measured(_active(runs), RUNTIME_HELP, "controller_runtime_")
    yield from measured(_unfinished(runs, now), QUEUE_HELP, "workqueue_")
    counts: dict[tuple[str, str], int] = {}
    for run in runs:
        tries = "1" if run.attempt == 1 else "2-3" if run.attempt <= 3 else "4+"
        counts[run.step, tries] = counts.get((run.step, tries), 0) + 1
    labelled = (
        Sample(name="steps_running", labels=(("step", step), ("attempts", tries)), value=float(number))
        for (step, tries), number in sorted(counts.items())
    )
    yield from measured(labelled, STEP_HELP, OWN_PREFIX)


def _active(runs: list[Run]) -> Iterator[Sample]:
    counts = dict.fromkeys(sorted(set(CONTROLLERS.values())), 0)
    for run in runs:
        counts[controller_of(run.step)] = counts.get(controller_of(run.step), 0) + 1
    for controller, number in counts.items():
        yield Sample(name="active_workers", labels=(("controller", controller),), value=float(number))


def _unfinished(runs: list[Run], now: float) -> Iterator[Sample]:
    ages: dict[str, list[float]] = {controller: [] for controller in sorted(set(CONTROLLERS.values()))}
    for run in runs:
        if run.step not in WAITS:
            ages.setdefault(controller_of(run.step), []).append(now - run.began)
    for controller, found in ages.items():
        labels = tuple(_labels_of(controller).items())
        yield Sample(name="unfinished_work_seconds", labels=labels, value=sum(found))
        yield Sample(name="longest_running_processor_seconds", labels=labels, value=max(found, default=0.0))


def _queue_labels(step: str) -> dict[str, str]:
    return _labels_of(controller_of(step))


def _labels_of(controller: str) -> dict[str, str]:
    """Queues have two labels, as in upstream's library: dashboards use either."""
    return {"controller": controller, "name": controller}
