"""How values cross into histories and back.

Dataclasses as JSON, checked by pydantic. The SDK makes a converter for each workflow that it runs, and pydantic a
schema for each type that such a converter meets. Here all share one converter for JSON: otherwise a fourteenth of a
busy worker's time goes into making the same schemas again.
"""

from collections.abc import Sequence
from typing import Any, Final

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
)

from dovetail.workflows.short_failures import ShortFailures

_JSON: Final = PydanticJSONPlainPayloadConverter()


class UnreadablePayload(Exception):
    """What Temporal keeps cannot be read or written by this process; the message says what to set."""


class Values(CompositePayloadConverter):
    """The SDK's own converters, with the shared one for JSON."""

    def __init__(self) -> None:
        own = DefaultPayloadConverter.default_encoding_payload_converters
        super().__init__(*[_JSON if isinstance(each, JSONPlainPayloadConverter) else each for each in own])
        self.encodings = frozenset(converter.encoding for converter in self.converters.values())

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Decode as the SDK does. A payload encoded by a codec that this process lacks is reported as such."""
        try:
            return super().from_payloads(payloads, type_hints)
        except KeyError:
            unknown = {each.metadata.get("encoding", b"").decode() for each in payloads} - self.encodings
            if not unknown:
                raise
            shown = ", ".join(sorted(unknown))
            raise UnreadablePayload(
                f"what Temporal keeps is encoded ({shown}): set DOVETAIL_PAYLOAD_CODEC to what the workers use"
            ) from None


DATA_CONVERTER: Final = DataConverter(payload_converter_class=Values, failure_converter_class=ShortFailures)
