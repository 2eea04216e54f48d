"""What a history and a description hold in payloads, wherever they hold it, is decoded in place."""

from types import SimpleNamespace
from typing import Any, cast

from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from dovetail.answers.record.decoding import decode, messages_in
from dovetail.connection.codec import NamedCodec, with_codec
from tests.worker.connection.test_codec import Reversed

CONVERTER = with_codec(NamedCodec(Reversed(), "DOVETAIL_PAYLOAD_CODEC test"))


def a_client(converter: DataConverter = CONVERTER) -> Client:
    return cast(Client, SimpleNamespace(data_converter=converter))


async def test_inputs_headers_summaries_and_details_are_decoded() -> None:
    event = HistoryEvent()
    scheduled = event.activity_task_scheduled_event_attributes
    scheduled.input.CopyFrom(Payloads(payloads=await CONVERTER.encode(["input"])))
    [header], [summary] = await CONVERTER.encode(["header"]), await CONVERTER.encode(["summary"])
    scheduled.header.fields["dovetail"].CopyFrom(header)
    event.user_metadata.summary.CopyFrom(summary)

    await decode(a_client(), event)

    assert [scheduled.input.payloads[0].data, scheduled.header.fields["dovetail"].data] == [b'"input"', b'"header"']
    assert event.user_metadata.summary.data == b'"summary"'
    assert len([each for each in messages_in(event) if isinstance(each, Payload)]) == 3


async def test_the_texts_of_a_failure_and_of_its_cause_are_put_back() -> None:
    pending, cause = PendingActivityInfo(), ApplicationError("pod web-1 is in the way")
    error: Any = ApplicationError("the drain waits")
    error.__cause__ = cause
    await CONVERTER.encode_failure(error, pending.last_failure)
    assert "web-1" not in str(pending)

    await decode(a_client(), pending)

    assert pending.last_failure.message == "the drain waits"
    assert pending.last_failure.cause.message == "pod web-1 is in the way"


async def test_what_cannot_be_decoded_stays_and_hides_nothing_else() -> None:
    class OnlyOne(Reversed):
        async def decode(self, payloads: Any) -> Any:
            if b"secret" in payloads[0].data[::-1]:
                raise ValueError("no key")
            return await super().decode(payloads)

    event = HistoryEvent()
    first, second = await CONVERTER.encode(["secret"]), await CONVERTER.encode(["open"])
    event.workflow_execution_started_event_attributes.input.payloads.extend([*first, *second])

    await decode(a_client(with_codec(NamedCodec(OnlyOne(), "test"))), event)

    found = event.workflow_execution_started_event_attributes.input.payloads
    assert [found[0], found[1].data] == [first[0], b'"open"']
