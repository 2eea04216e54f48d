"""The queue of warnings, over SQS.

One poll at a time, which waits up to 20 s. The queue's address is looked up again when SQS does not know it, so that a
queue recreated under the same name is found.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.interruptions.messages import ForeignMessage, Place, UnreadableMessage, read_message
from dovetail.adapters.aws.meters import count, observe
from dovetail.messages.interruptions import Interruption
from dovetail.model.values.json import Json
from dovetail.ports.failures import Unreachable
from dovetail.ports.interruptions import Message

_log = logging.getLogger(__name__)

WAIT_SECONDS: Final = 20
_MOST: Final = 10
_VISIBLE_AGAIN_SECONDS: Final = 20
_REMEMBERED: Final = 10_000
_MOST_SAID: Final = 100
_FOREIGN: Final = Interruption(id="", reason="no_op", instances=(), at=0.0)


class WarningQueue:
    def __init__(self, calls: Calls, name: str, clock: Callable[[], float]) -> None:
        self._calls, self._queue, self._clock = calls, name, clock
        self._url = ""
        self._said: set[str] = set()
        self._arrived: dict[str, float] = {}  # by receipt, the time that a message not yet deleted gives itself

    async def receive(self) -> tuple[Message, ...]:
        """At most ten, after 20 s at the latest."""
        answer = await self._receive(
            MaxNumberOfMessages=_MOST,
            WaitTimeSeconds=WAIT_SECONDS,
            VisibilityTimeout=_VISIBLE_AGAIN_SECONDS,
            AttributeNames=["SentTimestamp"],
            MessageAttributeNames=["All"],
        )
        messages = tuple([self._message(raw) for raw in answer.get("Messages") or ()])
        for message in messages:
            if message.interruption is not None:  # one that cannot be read is of no kind (AWS-125)
                kind = "foreign" if message.interruption == _FOREIGN else message.interruption.reason
                count("interruption_received_messages_total", {"message_type": kind})
        while len(self._arrived) > _REMEMBERED:
            del self._arrived[next(iter(self._arrived))]
        return messages

    async def try_reading(self) -> None:
        """The very call of the reader: another one would need a right of its own, and would not prove this one. What it
        gets stays visible to the reader."""
        await self._receive(MaxNumberOfMessages=1, WaitTimeSeconds=0, VisibilityTimeout=0)

    async def _receive(self, **how: Any) -> Json:
        answer = await self._calls.attempt("sqs", "ReceiveMessage", QueueUrl=await self._address(), **how)
        if isinstance(answer, Denied):
            raise self._lost("sqs:ReceiveMessage", answer)
        return answer

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        """Delete messages; repeating is safe."""
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
                _log.warning(
                    "a message could not be deleted and will be delivered again: %s", failed.get("Message") or failed
                )

    def _acknowledged(self, receipts: Sequence[str]) -> None:
        """Count the deleted messages, and how long each took to get there."""
        for receipt in receipts:
            count("interruption_deleted_messages_total")
            sent = self._arrived.pop(receipt, 0.0)
            if sent:  # a body without a time has no latency (AWS-178)
                observe("interruption_message_queue_duration_seconds", self._clock() - sent)

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

    def _message(self, raw: Json) -> Message:
        """A message that is not for this cluster is ignored, and each such problem is logged once."""
        receipt: str = raw["ReceiptHandle"]
        sent = float((raw.get("Attributes") or {}).get("SentTimestamp") or 0) / 1000
        waited = self._clock() - sent if sent else 0.0
        place = Place(account=_account_in(self._url), region=self._calls.region, waited=waited)
        try:
            read = read_message(raw.get("Body") or "", place)
            self._arrived[receipt] = read.at
            return Message(receipt=receipt, interruption=replace(read, at=sent or read.at))
        except UnreadableMessage as error:
            return Message(receipt=receipt, problem=str(error))
        except ForeignMessage as error:
            if str(error) not in self._said and len(self._said) < _MOST_SAID:
                self._said.add(str(error))
                _log.warning("queue %s: warnings are dropped: %s", self._queue, error)
            return Message(receipt=receipt, interruption=_FOREIGN)


def _account_in(url: str) -> str:
    """The account of the queue, which is that of the rules that fill it; empty if the address does not name it."""
    account = urlsplit(url).path.strip("/").partition("/")[0]
    return account if account.isdecimal() and len(account) == 12 else ""
