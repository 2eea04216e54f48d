"""How long steps may take, how they are retried, and on which queue they run.

A quick step against the API server; a launch; a long wait, which costs no events in the history; a step that decides.
The first retry comes after 1 s everywhere. What a killed worker costs is the heartbeat timeout and that second: 11 s
for whatever acts, 14 s for a wait in which something is done (of those there may be a thousand at once, and each
beats), a minute for idle waits, which another worker takes up at once where it starts in the place of the killed one,
and soon where somebody waits for them; three minutes for a wait for which nobody waits.

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

# What a person has to put right, less what is renewed by itself: credentials that have expired.
FOR_A_PERSON = ("Forbidden", "Misconfigured")


class StepOptions(TypedDict):
    """Keyword arguments of an activity call."""

    task_queue: str
    start_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy


def quick(cluster: str, objects: int = 1) -> StepOptions:
    """A step of a few requests to the API server for each of these objects, several side by side."""
    return _options(cluster, "control", timedelta(seconds=60 + 2 * (objects - 1)), _RETRIES)


def launching(cluster: str) -> StepOptions:
    """A step that launches or ends an instance: a call to the cloud may take half a minute."""
    return _options(cluster, "cloud", timedelta(seconds=120), _RETRIES)


def waiting(cluster: str) -> StepOptions:
    """A wait in which something is done (pods leave, a node joins), as long as it takes."""
    return _options(cluster, "waits", timedelta(days=7), _RETRIES, WAITS)


def leaving(cluster: str) -> StepOptions:
    """The wait for an instance that was asked to end. Nothing can be done for it meanwhile."""
    return _options(cluster, "waits", timedelta(days=7), _RETRIES, LEAVES)


def watching(cluster: str) -> StepOptions:
    """A wait for what other steps do. On a queue of its own: however many wait, what they wait for has its slots."""
    return _options(cluster, "watches", timedelta(days=7), _RETRIES, WAITS)


def ending(cluster: str) -> StepOptions:
    """The options of a wait after which its workflow only ends."""
    return _options(cluster, "watches", timedelta(days=7), _RETRIES, ENDS)


def attending(cluster: str) -> StepOptions:
    """A wait of a singleton for what it has just begun: it must not queue behind any number of others."""
    return _options(cluster, "control", timedelta(hours=1), _RETRIES)


def listening(cluster: str) -> StepOptions:
    """The wait for the cloud's warnings, likewise; returns after an hour."""
    return _options(cluster, "control", timedelta(minutes=75), _RETRIES, IDLES)


def planning(cluster: str) -> StepOptions:
    """A wait for the next plan; returns after an hour at most."""
    return _options(cluster, "plan", timedelta(minutes=75), _RETRIES, IDLES)


def judging(queue: str) -> StepOptions:
    """A look at everything that doctor looks at, on the queue on which its workflow runs."""
    return StepOptions(
        task_queue=queue,
        start_to_close_timeout=timedelta(seconds=120),
        heartbeat_timeout=ACTS,
        retry_policy=_JUDGES,
    )


def impatient(options: StepOptions) -> StepOptions:
    """The same options, failing at once where a person has to put something right."""
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
