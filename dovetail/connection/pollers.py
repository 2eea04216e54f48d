"""Which workers poll Temporal for work, and which have stopped.

A worker that lives polls each of its queues at least once a minute, whether or not there is anything to do. That costs
nothing, even where heartbeats are billed and therefore rare.
"""

import time
from typing import Final

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from dovetail.messages.workflow_ids import task_queue

QUEUES: Final = ("control", "waits", "watches", "cloud", "plan")
POLLED_SECONDS: Final = 90.0  # a poll lasts a minute at most

TYPE_ACTIVITY: Final = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
TYPE_WORKFLOW: Final = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW


async def pollers_of(client: Client, queue: str, kind: "TaskQueueType.ValueType") -> list[str]:
    """The workers that have polled there a short time ago."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
    )
    answer = await client.workflow_service.describe_task_queue(request)
    since = time.time() - POLLED_SECONDS
    return sorted({p.identity for p in answer.pollers if p.last_access_time.ToSeconds() >= since})


class AbsentWorkers:
    """Workers that are missing from all queues in two looks in a row: one look may fall between two polls.

    Temporal Cloud permits 30 such questions a second for the whole namespace. So only workers are looked for that hold
    a step and have been silent for a while, on one queue after the other until all have been seen.
    """

    def __init__(self) -> None:
        self._missing: frozenset[str] = frozenset()
        self._absent: frozenset[str] = frozenset()

    async def look(self, client: Client, cluster: str, silent: frozenset[str]) -> None:
        """See which of the silent ones ask now."""
        asked = [
            ("plan", TYPE_ACTIVITY),
            ("control", TYPE_WORKFLOW),
            *[(queue, TYPE_ACTIVITY) for queue in QUEUES[:-1]],
        ]
        missing = silent
        for queue, kind in asked:
            if missing:
                missing = missing - {*await pollers_of(client, task_queue(cluster, queue), kind)}
        self._absent, self._missing = self._missing & missing, missing

    def is_absent(self, identity: str) -> bool:
        """Whether that worker, which has a step in hand, was missing before and still is."""
        return identity in self._absent
