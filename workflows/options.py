"""How long steps may take, how they are retried, and on which queue they run.

A quick step against the API server; a launch; a long wait, which costs no events in the history; a step that decides.
The first retry always comes after 1 s. A killed worker costs the heartbeat timeout and that second: 11 s for steps that
act; 14 s for a wait in which something is done (there may be a thousand of those at once, each sending heartbeats); a
minute for idle waits, which another worker takes over at once if it replaces the killed one, and soon if somebody waits
for them; three minutes for a wait for which nobody waits.

What a person must correct outside, such as a right or a setting, is retried slowly by the step itself, without events.
`impatient` makes it fail at once, for workflows that have an alternative: a singleton's loop shows it and waits, a
disruption before its delete is undone, an order is found again by the next look.
"""

from dataclasses import replace
from datetime import timedelta
from typing import TypedDict

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from dovetail.messages.workflow_ids import task_queue

ACTS = timedelta(seconds=10)
WAITS = timedelta(seconds=13)
IDLES = timedelta(seconds=60)
LEAVES = timedelta(seconds=14)
ENDS = timedelta(seconds=180)

# At most 10 s between two tries, so that a claim that is being deleted is soon noticed.
_RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(seconds=10)
)
_JUDGES = RetryPolicy(
    initial_interval=timedelta(seconds=5), backoff_coefficient=1.5, maximum_interval=timedelta(seconds=30)
)

# What a person must correct, except what renews itself: credentials that have expired.
FOR_A_PERSON = ("Forbidden", "Misconfigured")


class StepOptions(TypedDict):
    """Keyword arguments of an activity call."""

    task_queue: str
    start_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy


def quick(cluster: str, objects: int = 1) -> StepOptions:
    """A step of a few requests to the API server for each of these objects, several in parallel."""
    return _options(cluster, "control", timedelta(seconds=60 + 2 * (objects - 1)), _RETRIES)


def launching(cluster: str) -> StepOptions:
    """A step that launches or ends an instance: a call to the cloud may take half a minute."""
    return _options(cluster, "cloud", timedelta(seconds=120), _RETRIES)


def waiting(cluster: str) -> StepOptions:
    """A wait in which something is done (pods leave, a node joins), as long as it takes."""
    return _options(cluster, "waits", timedelta(days=7), _RETRIES, WAITS)


def leaving(cluster: str) -> StepOptions:
    """The wait for an instance that was asked to end. Nothing can be done meanwhile."""
    return _options(cluster, "waits", timedelta(days=7), _RETRIES, LEAVES)


def watching(cluster: str) -> StepOptions:
    """A wait for what other steps do. On its own queue: however many wait, the steps that they wait for have slots."""
    return _options(cluster, "watches", timedelta(days=7), _RETRIES, WAITS)


def ending(cluster: str) -> StepOptions:
    """The options of a wait after which its workflow only ends."""
    return _options(cluster, "watches", timedelta(days=7), _RETRIES, ENDS)


def attending(cluster: str) -> StepOptions:
    """A singleton's wait for what it has just begun: it must not queue behind any number of others."""
    return _options(cluster, "control", timedelta(hours=1), _RETRIES)


def listening(cluster: str) -> StepOptions:
    """The wait for the cloud's warnings, likewise; returns after an hour."""
    return _options(cluster, "control", timedelta(minutes=75), _RETRIES, IDLES)


def planning(cluster: str) -> StepOptions:
    """A wait for the next plan; returns after an hour at most."""
    return _options(cluster, "plan", timedelta(minutes=75), _RETRIES, IDLES)


def judging(queue: str) -> StepOptions:
    """A look at everything that doctor checks, on the queue on which its workflow runs."""
    return StepOptions(
        task_queue=queue,
        start_to_close_timeout=timedelta(seconds=120),
        heartbeat_timeout=ACTS,
        retry_policy=_JUDGES,
    )


def impatient(options: StepOptions) -> StepOptions:
    """The same options, failing at once if a person must correct something."""
    changed = options.copy()
    changed["retry_policy"] = replace(options["retry_policy"], non_retryable_error_types=FOR_A_PERSON)
    return changed


def _options(
    cluster: str, queue: str, bound: timedelta, retries: RetryPolicy, heartbeat: timedelta = ACTS
) -> StepOptions:
    return StepOptions(
        task_queue=task_queue(cluster, queue),
        start_to_close_timeout=bound,
        heartbeat_timeout=heartbeat,
        retry_policy=retries,
    )
