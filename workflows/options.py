"""How long steps may take, how they are retried, and on which queue they run.

Five kinds: a quick step against the API server; a launch; a look at the cloud, which is retried without events in the
history; a long wait, which costs no events either; a step that decides. The first retry comes after 1 s everywhere:
with a heartbeat timeout of 10 s a killed worker then costs 10 to 11 s.

What a person has to put right outside, a right or a setting, is tried again slowly by the step itself, without events.
`impatient` makes it fail at once, for workflows that have another way to go: a singleton's loop shows it and waits, a
disruption before its delete is undone, an order is found again by the next look.
"""

from dataclasses import replace
from datetime import timedelta
from typing import TypedDict

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from dovetail.messages.workflow_ids import task_queue

HEARTBEAT_TIMEOUT = timedelta(seconds=10)

# At most 10 s between two tries, so that a claim that is being deleted is soon noticed.
_RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(seconds=10)
)
_LOOKS = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=1.5, maximum_interval=timedelta(seconds=5)
)


# What a person has to put right, less what is renewed by itself: credentials that have expired.
FOR_A_PERSON = ("Forbidden", "Misconfigured")


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
    """A step that launches an instance: a call to the cloud may take half a minute."""
    return _options(cluster, "cloud", timedelta(seconds=120), _RETRIES)


def looking(cluster: str) -> StepOptions:
    """A look at the cloud, retried until it shows what is waited for."""
    return _options(cluster, "cloud", timedelta(seconds=60), _LOOKS)


def waiting(cluster: str) -> StepOptions:
    """A wait for the cluster, as long as it takes: heartbeats prove that its worker lives."""
    return _options(cluster, "waits", timedelta(days=7), _RETRIES)


def planning(cluster: str) -> StepOptions:
    """A wait for the next plan; returns after an hour at most."""
    return _options(cluster, "plan", timedelta(minutes=75), _RETRIES)


def impatient(options: StepOptions) -> StepOptions:
    """The same step, failing at once where a person has to put something right."""
    changed = options.copy()
    changed["retry_policy"] = replace(options["retry_policy"], non_retryable_error_types=FOR_A_PERSON)
    return changed


def _options(cluster: str, queue: str, bound: timedelta, retries: RetryPolicy) -> StepOptions:
    return StepOptions(
        task_queue=task_queue(cluster, queue),
        start_to_close_timeout=bound,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=retries,
    )
