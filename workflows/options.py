"""How long steps may take, how they are retried, and on which queue they run.

Four kinds: a quick step against the API server; a long wait that beats and costs no events; a look at the cloud that is
retried without events; a step that decides. First retry after 1 s everywhere: with a heartbeat timeout of 10 s a killed
worker then costs 10 to 11 s.
"""

from datetime import timedelta
from typing import TypedDict

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from dovetail.messages.workflow_ids import task_queue

BEAT_TIMEOUT = timedelta(seconds=10)

# Longer than this between two tries helps nobody: a claim that is being deleted wants to be seen (design 4).
_RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(seconds=10)
)
_LOOKS = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=1.5, maximum_interval=timedelta(seconds=5)
)


class StepOptions(TypedDict):
    """Keyword arguments of an activity call."""

    task_queue: str
    start_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy


def quick(cluster: str) -> StepOptions:
    """A step of a few requests to the API server."""
    return _options(cluster, "control", timedelta(seconds=60), _RETRIES)


def launching(cluster: str) -> StepOptions:
    """A step that buys: a fleet call may take half a minute."""
    return _options(cluster, "cloud", timedelta(seconds=120), _RETRIES)


def looking(cluster: str) -> StepOptions:
    """A look at the cloud, retried until it is so."""
    return _options(cluster, "cloud", timedelta(seconds=60), _LOOKS)


def waiting(cluster: str) -> StepOptions:
    """A wait on the cluster, as long as it takes: beats prove that its worker lives."""
    return _options(cluster, "waits", timedelta(days=7), _RETRIES)


def planning(cluster: str) -> StepOptions:
    """A wait for the next plan; returns after an hour at most."""
    return _options(cluster, "plan", timedelta(minutes=75), _RETRIES)


def _options(cluster: str, queue: str, bound: timedelta, retries: RetryPolicy) -> StepOptions:
    return StepOptions(
        task_queue=task_queue(cluster, queue),
        start_to_close_timeout=bound,
        heartbeat_timeout=BEAT_TIMEOUT,
        retry_policy=retries,
    )
