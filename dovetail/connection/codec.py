"""The payload codec: what turns everything that we put into histories into something that only we can read.

`DOVETAIL_PAYLOAD_CODEC=module:factory` names it. Texts of failures are moved into payloads too, so that they pass
through it. Workers and commands must name the same one: what cannot be read is reported so, with the setting's name.
"""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes, PayloadCodec

from dovetail.settings.settings import Settings, SettingsError
from dovetail.workflows.converter import DATA_CONVERTER, UnreadablePayload


class NamedCodec(PayloadCodec):
    """A codec whose failures name the setting that it comes from."""

    def __init__(self, codec: PayloadCodec, name: str) -> None:
        self.codec, self.name = codec, name

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """As the codec does."""
        try:
            return await self.codec.encode(payloads)
        except Exception as error:
            raise UnreadablePayload(f"{self.name} cannot encode: {_words(error)}") from error

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """As the codec does."""
        try:
            return await self.codec.decode(payloads)
        except Exception as error:
            raise UnreadablePayload(f"{self.name} cannot decode what Temporal keeps: {_words(error)}") from error


def converter_of(settings: Settings) -> DataConverter:
    """How values cross into histories with these settings."""
    if not settings.payload_codec:
        return DATA_CONVERTER
    return with_codec(load_codec(settings.payload_codec, settings.codec_keys))


def with_codec(codec: PayloadCodec) -> DataConverter:
    """Our converter, with everything that it makes passed through the codec."""
    return replace(
        DATA_CONVERTER, payload_codec=codec, failure_converter_class=DefaultFailureConverterWithEncodedAttributes
    )


def load_codec(reference: str, keys: Path | None) -> PayloadCodec:
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
    return NamedCodec(made, name)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
