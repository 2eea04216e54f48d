"""`dovetail take-over --from UID`: this cluster takes the place of another one of its name.

For a cluster that was rebuilt. What runs in Temporal under the name belongs to the former cluster: its workflows wait
for claims and nodes that do not exist here. They are terminated, and the Scheduler begins anew for this cluster.
Nothing is done while a worker of the former cluster still polls. Its instances are left alone.
"""

import time
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from dovetail.answers.doctor.temporal import shown_workers
from dovetail.answers.failures import CommandFailed
from dovetail.answers.wording import plural
from dovetail.cli.output import say
from dovetail.connection.owner import client_of, described_or_none, owner_of, singletons_of
from dovetail.connection.pollers import TYPE_ACTIVITY, pollers_of
from dovetail.connection.search_attributes import register_search_attributes
from dovetail.messages.workflow_ids import query_of, scheduler_id, task_queue
from dovetail.messages.workflow_types import SCHEDULER
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World
from dovetail.worker.starting import first_state, start_singleton

WHY: Final = "another cluster has taken the name over"


async def take_over(client: Client, world: World, settings: Settings, theirs: str) -> None:
    """End what runs under the name, and begin anew."""
    cluster, ours = settings.cluster, world.cluster_uid
    owner = await owner_of(await described_or_none(client, scheduler_id(cluster)))
    if owner in ("", ours):
        raise CommandFailed(f"{cluster}: there is nothing to take over: no workflow of another cluster has this name")
    if owner != theirs:
        raise CommandFailed(f"{cluster}: not taken over: its workflows belong to the cluster {owner}, not to {theirs}")
    await _refuse_beside_workers(client, cluster)
    await register_search_attributes(client)
    ended = await _end(client, cluster)
    await _begin_anew(client_of(client, ours), settings, ours)
    say(
        f"{cluster}: taken over by the cluster {ours}; {plural(ended, 'workflow')} of the cluster {theirs} ended. "
        f"Its instances (tag dovetail.sh/cluster-uid={theirs}) are left alone. Start the workers now"
    )


async def _refuse_beside_workers(client: Client, cluster: str) -> None:
    queues = ("control", "plan")  # workers of either role poll one of them for steps
    found = [name for queue in queues for name in await pollers_of(client, task_queue(cluster, queue), TYPE_ACTIVITY)]
    if found:
        raise CommandFailed(
            f"{cluster}: not taken over: {shown_workers(sorted(set(found)))} asked for work within the last 90 s; "
            "stop the other cluster's workers first"
        )


async def _begin_anew(client: Client, settings: Settings, ours: str) -> None:
    """Replace the Scheduler last: that makes the name this cluster's, and until then everything can be repeated."""
    state = first_state(settings, ours, time.time())
    replacing = WorkflowIDConflictPolicy.TERMINATE_EXISTING
    await start_singleton(client, SCHEDULER, scheduler_id(settings.cluster), state, replacing)


async def _end(client: Client, cluster: str) -> int:
    """Terminate all that runs under the name except the Scheduler, which the new one replaces; returns how many."""
    running = {identity for identity in singletons_of(cluster) if identity != scheduler_id(cluster)}
    async for found in client.list_workflows(query_of(cluster, "ExecutionStatus = 'Running'")):
        running.add(found.id)
    running.discard(scheduler_id(cluster))
    return sum([await _terminate(client, identity) for identity in sorted(running)])


async def _terminate(client: Client, identity: str) -> int:
    try:
        await client.get_workflow_handle(identity).terminate(WHY)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return 0  # it has ended, or never existed
        raise
    return 1
