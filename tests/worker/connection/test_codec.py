"""The hook for a payload codec: what it makes of settings, and what people read when it does not fit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import PayloadCodec
from temporalio.exceptions import ApplicationError

from dovetail.connection.codec import NamedCodec, converter_of, load_codec, with_codec
from dovetail.settings.settings import SettingsError, read_settings
from dovetail.workflows.converter import DATA_CONVERTER, UnreadablePayload
from tests.codecs.test_aes_gcm import a_folder

HERE = "tests.worker.connection.test_codec"


class Reversed(PayloadCodec):
    """Turns the bytes round, and knows its own by their encoding."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"test/reversed"}, data=each.SerializeToString()[::-1]) for each in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload.FromString(each.data[::-1]) for each in payloads]


def reversed_codec(keys: Path | None) -> PayloadCodec:
    return Reversed()


def no_codec(keys: Path | None) -> object:
    return "nothing"


def failing_codec(keys: Path | None) -> object:
    raise FileNotFoundError("no keys in the folder")


def test_without_a_setting_nothing_is_encoded() -> None:
    assert converter_of(read_settings({})) is DATA_CONVERTER


async def test_the_codec_of_the_setting_encodes_values_and_texts_of_failures(tmp_path: Path) -> None:
    environment = {
        "DOVETAIL_PAYLOAD_CODEC": "dovetail.codecs.aes_gcm:from_folder",
        "DOVETAIL_CODEC_KEYS": str(a_folder(tmp_path)),
    }
    converter, failure = converter_of(read_settings(environment)), Failure()

    [stored] = await converter.encode(["pod web-7d4b9"])
    await converter.encode_failure(ApplicationError("pod web-7d4b9 is in the way"), failure)

    assert b"web" not in stored.SerializeToString() + failure.SerializeToString()
    assert await converter.decode([stored], [str]) == ["pod web-7d4b9"]
    assert "web-7d4b9 is in the way" in str(await converter.decode_failure(failure))


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("nowhere.at.all:factory", "No module named 'nowhere'"),
        (f"{HERE}:missing", "has no attribute 'missing'"),
        (f"{HERE}:no_codec", "it makes a str"),
        (f"{HERE}:failing_codec", "no keys in the folder"),
        (HERE, "not of the form module:factory"),
    ],
)
def test_a_codec_that_cannot_be_loaded_is_one_line_with_the_setting_s_name(reference: str, words: str) -> None:
    with pytest.raises(SettingsError, match=f"DOVETAIL_PAYLOAD_CODEC {reference}: .*{words}"):
        load_codec(reference, None)


async def test_what_is_encoded_for_others_is_told_as_that() -> None:
    encoded = await with_codec(load_codec(f"{HERE}:reversed_codec", None)).encode(["text"])

    with pytest.raises(UnreadablePayload, match=r"encoded \(test/reversed\): set DOVETAIL_PAYLOAD_CODEC"):
        await DATA_CONVERTER.decode(encoded, [str])


async def test_a_codec_that_fails_is_named() -> None:
    class Broken(PayloadCodec):
        async def encode(self, payloads: Sequence[Payload]) -> Any:
            raise ValueError("out of keys")

        async def decode(self, payloads: Sequence[Payload]) -> Any:
            raise ValueError("wrong key")

    codec = NamedCodec(Broken(), "DOVETAIL_PAYLOAD_CODEC here:broken")
    with pytest.raises(UnreadablePayload, match="here:broken cannot decode what Temporal keeps: wrong key"):
        await codec.decode([Payload()])
    with pytest.raises(UnreadablePayload, match="here:broken cannot encode: out of keys"):
        await codec.encode([Payload()])
