"""A queue of real messages over HTTP, claims of their instances, and the workflows that answer.

The queue is the AWS server's, read by the adapter; claims are kept in memory, where every delete is in a ledger.
"""

import json
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.worker import Worker

from dovetail.activities.interruptions.answer_interruptions import AnswerInterruptions
from dovetail.activities.interruptions.direct_answers import DirectAnswers
from dovetail.activities.interruptions.tell_interruptions import InterruptionNotices
from dovetail.activities.interruptions.watch_interruptions import WatchInterruptions
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.interruptions import InterruptionsInput
from dovetail.messages.workflow_ids import interruptions_id, task_queue
from dovetail.messages.workflow_types import INTERRUPTIONS, TERMINATE_NODE
from dovetail.messages.writes import Write
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.ports.interruptions import Interruptions as Queue
from dovetail.worker.sandbox import runner
from dovetail.workflows.interruptions import AnswerInterruption, Interruptions
from testbed.cloud.server import CloudServer
from worlds.aws import Notices, a_claim_of_ec2
from worlds.fakes import FakeClaims, World, heartbeating

SPOT = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"
STATE = "EC2 Instance State-change Notification"


@workflow.defn(name=TERMINATE_NODE, sandboxed=False)
class Ending:
    """Replaces TerminateNode, which has tests of its own."""

    @workflow.run
    async def run(self, given: ClaimInput) -> None:
        """Nothing is left to do."""


class Scene:
    """Claims of some instances, and a queue that warns of them."""

    def __init__(self, server: CloudServer, client: Client, instances: int) -> None:
        self.server, self.client, self.cluster = server, client, f"test-{uuid.uuid4().hex[:8]}"
        self.world, self.notices = World(), Notices()
        for number in range(instances):
            self.world.put(claim_of(instance_id(number)))
        self.since = server.control("GET", "ledger/last")

    def snapshot(self, reads: object = None) -> Snapshot:
        nodes: dict[str, Node] = {}
        return replace(Snapshot(now=self.world.clock), claims=dict(self.world.claims), nodes=nodes)

    async def catch_up(self, writes: Sequence[Write]) -> None:
        """Every write is seen at once."""

    def send(self, kind: str, instance: str, **detail: str) -> None:
        body = {"version": "0", "id": uuid.uuid4().hex, "source": "aws.ec2", "detail-type": kind}
        self.send_text(json.dumps({**body, "detail": {"instance-id": instance, **detail}}))

    def send_burst(self, number: int) -> None:
        """Spot warnings of the instances 0 to number, several at once as EventBridge would."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda each: self.send(SPOT, instance_id(each)), range(number)))

    def send_text(self, body: str) -> None:
        self.server.control("POST", "sqs", {"body": body})

    def acknowledged(self) -> int:
        """Messages that are deleted from the queue."""
        one = self.server.calls("DeleteMessage", self.since)
        several = self.server.calls("DeleteMessageBatch", self.since)
        return len([c for c in one if not c["error"]]) + sum(
            len(call["input"]["Entries"]) for call in several if not call["error"]
        )

    def deletes(self) -> list[str]:
        """Every requested delete of a claim, in order."""
        return [line.removeprefix("delete claim ") for line in self.world.ledger if line.startswith("delete claim")]

    @asynccontextmanager
    async def worker(self, queue: Queue) -> AsyncIterator[WorkflowHandle[Any, Any]]:
        """Serve the cluster's queues, with Interruptions running; on leaving, the worker is gone."""
        claims: Any = FakeClaims(self.world)
        view: Any = self
        answering = AnswerInterruptions(view, claims, queue, time.time)
        answers = DirectAnswers(
            answering, InterruptionNotices(self.notices, view), time.time, lambda: False, why_unfit=str
        )
        steps: list[Any] = [
            WatchInterruptions(self.cluster, queue, time.time, answers, client=activity.client).watch_interruptions,
            answering.answer_interruptions,
            answers.notices.tell_interruptions,
        ]
        async with AsyncExitStack() as stack:
            for name in ("control", "waits"):
                worker = Worker(
                    self.client,
                    task_queue=task_queue(self.cluster, name),
                    workflows=[Interruptions, AnswerInterruption, Ending] if name == "control" else [],
                    activities=steps,
                    workflow_runner=runner(),
                    interceptors=[heartbeating()],
                )
                await stack.enter_async_context(worker)
            yield await self._started()

    async def _started(self) -> WorkflowHandle[Any, Any]:
        handle: WorkflowHandle[Any, Any] = await self.client.start_workflow(
            INTERRUPTIONS,
            InterruptionsInput(cluster=self.cluster),
            id=interruptions_id(self.cluster),
            task_queue=task_queue(self.cluster, "control"),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        return handle


def instance_id(number: int) -> str:
    """An id as EC2 gives it."""
    return f"i-{number:08x}"


def claim_of(instance: str) -> NodeClaim:
    claim = a_claim_of_ec2(name=f"claim-{instance}")
    finalizers = ("karpenter.sh/termination",)
    return replace(claim, provider_id=f"aws:///us-west-2a/{instance}", finalizers=finalizers)
