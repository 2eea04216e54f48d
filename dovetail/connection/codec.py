"""The payload codec: makes everything that we put into histories readable to us alone.

`DOVETAIL_PAYLOAD_CODEC=module:factory` names it. Texts of failures are moved into payloads too, so that it encodes them
as well. Workers and commands must use the same codec: a payload that cannot be read is reported with the setting's
name.
"""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from dovetail.settings.settings import Settings, SettingsError
from dovetail.workflows.converter import DATA_CONVERTER, UnreadablePayload
from dovetail.workflows.short_failures import ShortHiddenFailures


@runtime_checkable
class PlacedCodec(Protocol):
    """A codec that binds payloads to the workflow that they are meant for.

    The workflow's id is what both ends know about each payload: our runner converts all commands of a workflow alike
    (worker/sandbox.py), and the SDK does not promise the type of a step.
    """

    def at(self, workflow_id: str) -> PayloadCodec:
        """The codec for the inputs and answers of that workflow and its steps."""


class NamedCodec(PayloadCodec, WithSerializationContext):
    """A codec whose failures name the setting that it comes from. Unless it is `placed`, it does not learn what a
    payload is for, and writes what the previous version could read."""

    def __init__(self, codec: PayloadCodec, name: str, *, placed: bool = True) -> None:
        self.codec, self.name, self._placed = codec, name, placed

    def with_context(self, context: SerializationContext) -> "NamedCodec":
        """The codec for that place, where the codec binds payloads to their place."""
        if not self._placed or not isinstance(self.codec, PlacedCodec):
            return self
        if not isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
            return self
        return NamedCodec(self.codec.at(context.workflow_id), self.name) if context.workflow_id else self

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        try:
            return await self.codec.encode(payloads)
        except Exception as error:
            raise UnreadablePayload(f"{self.name} cannot encode: {_words(error)}") from error

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        try:
            return await self.codec.decode(payloads)
        except Exception as error:
            raise UnreadablePayload(f"{self.name} cannot decode what Temporal keeps: {_words(error)}") from error


def converter_of(settings: Settings) -> DataConverter:
    """How values cross into histories with these settings."""
    if not settings.payload_codec:
        return DATA_CONVERTER
    codec = load_codec(settings.payload_codec, settings.codec_keys, keep_way_back=settings.keep_way_back)
    return with_codec(codec)


def with_codec(codec: PayloadCodec) -> DataConverter:
    """Our converter, with everything that it makes passed through the codec."""
    return replace(DATA_CONVERTER, payload_codec=codec, failure_converter_class=ShortHiddenFailures)


def load_codec(reference: str, keys: Path | None, *, keep_way_back: bool = False) -> PayloadCodec:
    """The codec that module:factory makes of the folder of keys."""
    name = f"DOVETAIL_PAYLOAD_CODEC {reference}"
    module, _, factory = reference.partition(":")
    if not module or not factory:
        raise SettingsError(f"{name}: not of the form module:factory")
    try:
        made = getattr(importlib.import_module(module), factory)(keys)
    except Exception as error:
        raise SettingsError(f"{name}: {_words(error)}") from error
    if not isinstance(made, PayloadCodec):
        raise SettingsError(f"{name}: it makes a {type(made).__name__}, which is no temporalio.converter.PayloadCodec")
    return NamedCodec(made, name, placed=not keep_way_back)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
