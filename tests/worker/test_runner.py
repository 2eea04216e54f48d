"""The runner answers by itself in whose context payloads are converted, as far as the workflow's id goes."""

from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from dovetail.connection.codec import load_codec, with_codec
from dovetail.workflows.converter import DATA_CONVERTER, Values


class OfItsContext(PayloadCodec, WithSerializationContext):
    """An operator's codec that would have another key for each workflow."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)

    def with_context(self, context: SerializationContext) -> "OfItsContext":
        raise AssertionError(f"asked for {context}")


def test_no_converter_looks_at_a_context() -> None:
    assert not [each for each in Values().converters.values() if isinstance(each, WithSerializationContext)]
    assert not isinstance(DATA_CONVERTER.failure_converter, WithSerializationContext)
    assert DATA_CONVERTER.payload_codec is None and DATA_CONVERTER.external_storage is None


def made(_keys: object) -> OfItsContext:
    return OfItsContext()


def test_a_codec_of_an_operator_is_given_none() -> None:
    """What it would be given at the two ends is not the same."""
    converter = with_codec(load_codec(f"{__name__}:{made.__name__}", None))
    assert converter.with_context(WorkflowSerializationContext(namespace="n", workflow_id="w")) is converter
    assert not isinstance(converter.failure_converter, WithSerializationContext)
    assert converter.external_storage is None
