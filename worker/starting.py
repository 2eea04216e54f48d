"""Starts singletons with the cluster that they belong to: its UID in the memo, its name in the search attributes."""

from dataclasses import replace

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from dovetail.activities.identity.cluster_header import HEADER
from dovetail.activities.identity.search_attributes import attributes
from dovetail.messages.inputs import CaretakerInput
from dovetail.messages.interruptions import InterruptionsInput
from dovetail.messages.plans import nomination_seconds
from dovetail.messages.states import SchedulerState, fresh_state
from dovetail.messages.workflow_ids import task_queue
from dovetail.settings.settings import Settings


def first_state(settings: Settings, cluster_uid: str, now: float) -> SchedulerState:
    """The state of a Scheduler that has no predecessor."""
    state = fresh_state(settings.cluster, now, nomination_seconds(settings.batch_max))
    return replace(state, cluster_uid=cluster_uid)


async def start_singleton(
    client: Client,
    name: str,
    identity: str,
    given: SchedulerState | CaretakerInput | InterruptionsInput,
    conflict: WorkflowIDConflictPolicy,
) -> None:
    """Start it; `conflict` says what happens to one that runs already."""
    await client.start_workflow(
        name,
        given,
        id=identity,
        task_queue=task_queue(given.cluster, "control"),
        id_conflict_policy=conflict,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        memo={HEADER: given.cluster_uid},
        search_attributes=attributes(given.cluster),
        static_summary=f"{name} of {given.cluster}",
    )
