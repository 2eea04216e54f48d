"""How values cross into histories and back.

Dataclasses as JSON, checked by pydantic. The SDK makes a converter for each workflow that it runs, and pydantic a
schema for each type that such a converter meets. Here all share one converter for JSON: a fourteenth of a busy worker's
time went into making the same schemas again.
"""

from typing import Final

from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
)

_JSON: Final = PydanticJSONPlainPayloadConverter()


class Values(CompositePayloadConverter):
    """The SDK's own converters, with the shared one for JSON."""

    def __init__(self) -> None:
        own = DefaultPayloadConverter.default_encoding_payload_converters
        super().__init__(*[_JSON if isinstance(each, JSONPlainPayloadConverter) else each for each in own])


DATA_CONVERTER: Final = DataConverter(payload_converter_class=Values)
