"""The port Interruptions over SQS and EC2.

One poll is under way at a time and waits up to 20 s. The queue's address is asked for anew when SQS does not know it,
so that a queue made again under the same name is found.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.shortages import Shortage, Shortages
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.interruptions import instance_checks
from dovetail.adapters.aws.interruptions.messages import UnreadableMessage, read_message
from dovetail.adapters.aws.meters import count, observe
from dovetail.adapters.aws.resources.reservations import Reservations
from dovetail.messages.interruptions import Interruption
from dovetail.model import names as core
from dovetail.model.json import Json
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Forbidden, Unreachable
from dovetail.ports.interruptions import Message

_log = logging.getLogger(__name__)

_MOST: Final = 10
_WAIT_SECONDS: Final = 20
_VISIBLE_AGAIN_SECONDS: Final = 20
_REMEMBERED: Final = 10_000


class AwsInterruptions:
    """Warnings from the queue, and the troubles that EC2's checks find."""

    def __init__(
        self,
        calls: Calls,
        queue: str,
        shortages: Shortages,
        reservations: Reservations,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls, self._queue, self._clock = calls, queue, clock
        self._shortages, self._reservations = shortages, reservations
        self._url = ""
        self._may_check = True
        self._arrived: dict[str, float] = {}  # by receipt, the time that a message not yet deleted gives itself
        self._unhealthy: frozenset[tuple[str, str]] = frozenset()  # (instance, category)

    async def receive(self) -> tuple[Message, ...]:
        answer = await self._calls.attempt(
            "sqs",
            "ReceiveMessage",
            QueueUrl=await self._address(),
            MaxNumberOfMessages=_MOST,
            WaitTimeSeconds=_WAIT_SECONDS,
            VisibilityTimeout=_VISIBLE_AGAIN_SECONDS,
            AttributeNames=["SentTimestamp"],
            MessageAttributeNames=["All"],
        )
        if isinstance(answer, Denied):
            raise self._lost("sqs:ReceiveMessage", answer)
        messages = tuple(_message(raw) for raw in answer.get("Messages") or ())
        for message in messages:
            if message.interruption is not None:  # one that cannot be read is of no kind (AWS-125)
                count("interruption_received_messages_total", {"message_type": message.interruption.reason})
                self._arrived[message.receipt] = message.interruption.at
        while len(self._arrived) > _REMEMBERED:
            del self._arrived[next(iter(self._arrived))]
        return messages

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        url = await self._address()
        if len(receipts) == 1:
            answer = await self._calls.attempt("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=receipts[0])
            if isinstance(answer, Denied):
                raise self._lost("sqs:DeleteMessage", answer)
            self._acknowledged(receipts)
            return
        for start in range(0, len(receipts), _MOST):
            some = receipts[start : start + _MOST]
            entries = [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(some)]
            answer = await self._calls.attempt("sqs", "DeleteMessageBatch", QueueUrl=url, Entries=entries)
            if isinstance(answer, Denied):
                raise self._lost("sqs:DeleteMessageBatch", answer)
            self._acknowledged([some[int(each["Id"])] for each in answer.get("Successful") or ()])
            for failed in answer.get("Failed") or ():
                _log.warning("a message was not deleted and will come again: %s", failed.get("Message") or failed)

    def _acknowledged(self, receipts: Sequence[str]) -> None:
        """Count what is deleted, and how long it took to get there."""
        for receipt in receipts:
            count("interruption_deleted_messages_total")
            sent = self._arrived.pop(receipt, 0.0)
            if sent:  # a body without a time has no latency (AWS-178)
                observe("interruption_message_queue_duration_seconds", self._clock() - sent)

    async def troubles(self) -> tuple[Interruption, ...]:
        if not self._may_check:
            return ()
        try:
            found = await instance_checks.troubles(self._calls, self._clock())
            now = frozenset((instance, each.reason) for each in found for instance in each.instances)
            for _, category in sorted(now - self._unhealthy):  # once until it is healthy again (AWS-139)
                count("interruption_instance_status_unhealthy_total", {"category": category})
            self._unhealthy = now
            return found
        except Forbidden as failure:
            _log.warning("checks of instances are not looked at any more: %s", failure)
            self._may_check = False
            return ()

    async def learn_from(self, interruption: Interruption, claim: NodeClaim) -> None:
        name, zone = claim.labels.get(core.INSTANCE_TYPE, ""), claim.labels.get(core.ZONE, "")
        if interruption.reason == "spot_interrupted" and name and zone:
            short = Shortage(capacity_type=core.CAPACITY_SPOT, instance_type=name, zone=zone)
            await self._shortages.remember([short])
        if interruption.reason == "capacity_reservation_interrupted":
            reservation = claim.labels.get(names.RESERVATION_ID, "")
            if reservation:
                self._reservations.exhausted(reservation)
                await self._shortages.remember([Shortage(capacity_type=core.CAPACITY_RESERVED, scope=reservation)])

    async def _address(self) -> str:
        if not self._url:
            answer = await self._calls.attempt("sqs", "GetQueueUrl", QueueName=self._queue)
            if isinstance(answer, Denied):
                raise self._lost("sqs:GetQueueUrl", answer)
            self._url = str(answer["QueueUrl"])
        return self._url

    def _lost(self, subject: str, denied: Denied) -> Exception:
        if denied.code not in NOT_FOUND:
            return refusal(subject, denied)
        self._url = ""
        return Unreachable(subject, f"queue {self._queue} does not exist ({denied.code})", after=10.0)


def _message(raw: Json) -> Message:
    receipt: str = raw["ReceiptHandle"]
    try:
        return Message(receipt=receipt, interruption=read_message(raw.get("Body") or ""))
    except UnreadableMessage as error:
        return Message(receipt=receipt, problem=str(error))
