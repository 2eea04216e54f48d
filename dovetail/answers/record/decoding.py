"""Decodes the payloads of Temporal's records with the codec that the workers use.

The SDK decodes results and queries itself, but returns histories and descriptions as they are stored. What cannot be
decoded stays as it is, so that it does not hide the rest.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar, cast

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.client import Client
from temporalio.converter import PayloadCodec, PayloadConverter

from dovetail.workflows.converter import UnreadablePayload

Values = Sequence[Payload]  # in Temporal's encoding
T = TypeVar("T")

_LONGEST: Final = 300


def plain(converter: PayloadConverter, values: Values) -> Any:
    """The first value as plain JSON; None if there is none. One that cannot be read must not hide the rest."""
    try:
        return converter.from_payloads(values[:1])[0] if values else None
    except Exception:
        return "(cannot be read here)"


def typed(converter: PayloadConverter, values: Values, kind: type[T]) -> T:
    """The first value in its own type; UnreadablePayload if it cannot be read."""
    return cast(T, converter.from_payloads(values, [cast(Any, kind)])[0])


def shortened(text: str) -> str:
    """The text on one line, cut after a few hundred characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}..."


def failure_text(failure: Failure) -> str:
    """The message of the innermost cause that has one."""
    text = failure.message
    while failure.HasField("cause"):
        failure = failure.cause
        text = failure.message or text
    return shortened(text)


async def decode(client: Client, *records: Message) -> None:
    """Decode every payload in these records, in place."""
    codec = client.data_converter.payload_codec
    if codec is None:
        return
    for record in records:
        for found in list(messages_in(record)):
            if isinstance(found, Payload):
                await _decode_one(codec, found)
        for found in list(messages_in(record)):
            if isinstance(found, Failure) and found.HasField("encoded_attributes"):
                _restore(client.data_converter.payload_converter, found)


def messages_in(message: Message) -> Iterator[Message]:
    """The message and every message inside it; a payload has none inside."""
    yield message
    if isinstance(message, Payload):
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if isinstance(value, Message):
            held = [value]
        else:
            held = list(value.values()) if field.message_type.GetOptions().map_entry else list(value)
        for each in held:
            if isinstance(each, Message):
                yield from messages_in(each)


async def _decode_one(codec: PayloadCodec, payload: Payload) -> None:
    try:
        [decoded] = await codec.decode([payload])
    except UnreadablePayload:
        return
    if decoded is not payload:
        payload.CopyFrom(decoded)


def _restore(converter: PayloadConverter, failure: Failure) -> None:
    """Restore the message and stack, which a failure carries in a payload if a codec is used."""
    try:
        [found] = converter.from_payloads([failure.encoded_attributes])
    except UnreadablePayload:
        return
    failure.message, failure.stack_trace = str(found.get("message", "")), str(found.get("stack_trace", ""))
    failure.ClearField("encoded_attributes")
