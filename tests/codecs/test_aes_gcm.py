"""The codec that encrypts: what comes out tells nothing, keys change while it runs, a wrong key is named."""

import base64
import os
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload

from dovetail.codecs.aes_gcm import ENCODING, AesGcmCodec, Keys, KeyTrouble, from_folder

SECRET = Payload(metadata={"encoding": b"json/plain"}, data=b'"pod web-7d4b9"')


class Clock:
    """Seconds, set by the test."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def a_key(size: int = 32) -> bytes:
    return base64.b64encode(os.urandom(size))


def a_folder(folder: Path, current: str = "first", **keys: bytes) -> Path:
    """A folder of keys, as a Secret is mounted."""
    for name, content in (keys or {"first": a_key()}).items():
        (folder / name).write_bytes(content)
    (folder / "current").write_text(current + "\n")
    (folder / "..data").mkdir(exist_ok=True)  # Kubernetes' own
    return folder


async def test_what_was_encrypted_comes_back_and_shows_nothing_of_itself(tmp_path: Path) -> None:
    codec = from_folder(a_folder(tmp_path))

    first, again = await codec.encode([SECRET, SECRET])

    assert await codec.decode([first, again]) == [SECRET, SECRET]
    assert b"web" not in first.SerializeToString() and b"json/plain" not in first.SerializeToString()
    assert first.data != again.data, "a nonce is never used twice"
    assert dict(first.metadata)["encoding"] == ENCODING


async def test_what_was_stored_before_the_codec_is_passed_on(tmp_path: Path) -> None:
    assert await from_folder(a_folder(tmp_path)).decode([SECRET]) == [SECRET]


async def test_a_strict_folder_refuses_what_is_not_encrypted(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    (folder / "strict").touch()
    codec = from_folder(folder)

    assert await codec.decode(await codec.encode([SECRET])) == [SECRET]
    with pytest.raises(KeyTrouble, match="not encrypted, and the folder of keys has the file 'strict'"):
        await codec.decode([SECRET])


def test_a_folder_cannot_be_strict_and_encrypt_nothing(tmp_path: Path) -> None:
    (a_folder(tmp_path, current="none") / "strict").touch()

    with pytest.raises(KeyTrouble, match="strict: nothing is encrypted any more"):
        from_folder(tmp_path)


async def test_keys_change_while_it_runs(tmp_path: Path) -> None:
    clock = Clock()
    codec = AesGcmCodec(Keys(a_folder(tmp_path), clock))
    [old] = await codec.encode([SECRET])

    (tmp_path / "second").write_bytes(a_key())
    (tmp_path / "current").write_text("second")
    clock.now = 11.0
    [new] = await codec.encode([SECRET])

    assert [dict(each.metadata)["encryption-key-id"] for each in (old, new)] == [b"first", b"second"]
    assert await codec.decode([old, new]) == [SECRET, SECRET]


async def test_a_key_that_another_worker_uses_already_is_found_at_once(tmp_path: Path) -> None:
    ours = AesGcmCodec(Keys(a_folder(tmp_path), Clock()))
    (tmp_path / "second").write_bytes(a_key())
    (tmp_path / "current").write_text("second")
    [theirs] = await from_folder(tmp_path).encode([SECRET])

    assert await ours.decode([theirs]) == [SECRET]


async def test_none_ends_the_encryption_and_what_is_encrypted_stays_readable(tmp_path: Path) -> None:
    clock = Clock()
    codec = AesGcmCodec(Keys(a_folder(tmp_path), clock))
    [old] = await codec.encode([SECRET])
    (tmp_path / "current").write_text("none")
    clock.now = 11.0

    assert await codec.encode([SECRET]) == [SECRET]
    assert await codec.decode([old]) == [SECRET]


async def test_another_key_of_the_same_name_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    [theirs] = await from_folder(a_folder(tmp_path / "theirs")).encode([SECRET])

    with pytest.raises(KeyTrouble, match="'first' is another one"):
        await from_folder(a_folder(tmp_path / "ours")).decode([theirs])


async def test_a_changed_payload_or_another_key_s_name_on_it_is_refused(tmp_path: Path) -> None:
    key = a_key()
    codec = from_folder(a_folder(tmp_path, first=key, second=key))
    [whole] = await codec.encode([SECRET])
    cut, renamed = Payload.FromString(whole.SerializeToString()), Payload.FromString(whole.SerializeToString())
    cut.data = cut.data[:-1] + bytes([cut.data[-1] ^ 1])
    renamed.metadata["encryption-key-id"] = b"second"

    for changed in (cut, renamed):
        with pytest.raises(KeyTrouble):
            await codec.decode([changed])


@pytest.mark.parametrize(
    ("keys", "current", "words"),
    [
        ({"first": a_key(5)}, "first", "first: not 16, 24 or 32 bytes"),
        ({"first": b"not base64!"}, "first", "first: not 16, 24 or 32 bytes"),
        ({"first": a_key()}, "second", "names 'second', and there is no such key"),
        ({"first": a_key()}, "", "names '', and there is no such key"),
    ],
)
def test_a_folder_that_cannot_be_used_is_named_with_its_file(
    tmp_path: Path, keys: dict[str, bytes], current: str, words: str
) -> None:
    with pytest.raises(KeyTrouble, match=words):
        from_folder(a_folder(tmp_path, current, **keys))


def test_no_folder_is_told_by_the_setting_s_name(tmp_path: Path) -> None:
    with pytest.raises(KeyTrouble, match="DOVETAIL_CODEC_KEYS"):
        from_folder(None)
    with pytest.raises(KeyTrouble, match="missing"):
        from_folder(tmp_path / "missing")


async def test_a_folder_that_has_gone_for_a_moment_does_not_end_what_is_known(tmp_path: Path) -> None:
    """A Secret is exchanged as a whole; a payload of a known key must be readable meanwhile."""
    codec = from_folder(a_folder(tmp_path))
    [old] = await codec.encode([SECRET])
    (tmp_path / "current").unlink()

    assert await codec.decode([old]) == [SECRET]


async def test_a_key_that_is_written_over_is_not_taken_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else one worker would write into histories what no other can read."""
    key, clock = a_key(), Clock()
    ours, others = tmp_path / "ours", tmp_path / "others"
    ours.mkdir()
    others.mkdir()
    keys = Keys(a_folder(ours, first=key), clock)
    codec = AesGcmCodec(keys)
    (ours / "first").write_bytes(a_key())
    (ours / "second").write_bytes(a_key())
    for clock.now in (11.0, 22.0):
        [new] = await codec.encode([SECRET])

    assert await from_folder(a_folder(others, first=key)).decode([new]) == [SECRET]
    assert keys.named("second") is not None
    [said] = [record.getMessage() for record in caplog.records]
    assert f"{ours / 'first'} holds another key than before under the same name" in said

    (ours / "first").write_bytes(key)
    clock.now = 33.0
    await codec.encode([SECRET])
    assert len(caplog.records) == 1
