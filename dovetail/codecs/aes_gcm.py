"""A payload codec that encrypts with AES-GCM: DOVETAIL_PAYLOAD_CODEC=dovetail.codecs.aes_gcm:from_folder

DOVETAIL_CODEC_KEYS is a folder, as Kubernetes mounts a Secret: a file for each key (its name is the key's, its content
16, 24 or 32 bytes in base64) and the file `current`, which names the key that encrypts, or says `none`: encrypt nothing
any more, decrypt what is there. The folder is read again while the process runs. A new key is first added everywhere,
and named in `current` only then, because all workers must be able to read what one of them writes; an old key stays for
as long as histories are kept. A file that is written over with another key is not taken, because one process would
write what no other can read into histories that are kept: it goes on with the key that it knows, and says so. After
2**32 payloads a key has to be changed, as AES-GCM demands of random nonces.

A payload is bound to the workflow that it is encrypted for (decision 248): it carries that workflow's id, which the key
authenticates, and is refused in any other. Where no workflow is known, as in a list or a history, it is read all the
same. Those of 0.1.0 name none and are read anywhere.

What comes unencrypted, from before the codec was used, is passed on as it is. Once nothing of that is kept any more, a
file `strict` in the folder ends it: what is not encrypted is refused, so that one who may write to the namespace and
has no key can give a worker nothing to act on. With the word `places` in it what is bound to no workflow is refused
too. Needs the extra package: dovetail[codec].
"""

import base64
import binascii
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

ENCODING: Final = b"binary/encrypted"  # this and the names below are those of Temporal's own samples
CIPHER: Final = b"AES-GCM"
CURRENT: Final = "current"
NONE: Final = "none"
STRICT: Final = "strict"
PLACES: Final = "places"  # in the file `strict`
PLACE: Final = "encryption-place"  # in a payload's metadata: the id of its workflow
READ_AGAIN_SECONDS: Final = 10.0
_NONCE: Final = 12

_log = logging.getLogger(__name__)


class KeyTrouble(Exception):
    """A key is missing or is none; the message names its file."""


class Keys:
    """The keys of a folder, by name, and the one that encrypts."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._keys: dict[str, AESGCM] = {}
        self._contents: dict[str, bytes] = {}
        self._overwritten: set[str] = set()
        self._current = ""
        self.strict = self.placed = False
        self._read_at = 0.0
        self.read()

    def read(self) -> None:
        """All files of the folder; what it held before stays where it cannot be read."""
        try:
            names = sorted(file.name for file in self._folder.iterdir() if not file.name.startswith("."))
            contents = {name: _content(self._folder / name) for name in names if name not in {CURRENT, STRICT}}
            current = (self._folder / CURRENT).read_text().strip()
            strict = (self._folder / STRICT).read_text().strip() if STRICT in names else ""
        except OSError as error:
            raise KeyTrouble(f"{error.filename}: {error.strerror}") from None
        if current != NONE and current not in contents:
            raise KeyTrouble(f"{self._folder / CURRENT}: names {current!r}, and there is no such key in the folder")
        if current == NONE and STRICT in names:
            raise KeyTrouble(f"{self._folder / STRICT}: nothing is encrypted any more, so nothing could be read")
        self._take(contents)
        self._current, self._read_at = current, self._clock()
        self.strict, self.placed = STRICT in names, strict == PLACES

    def _take(self, contents: dict[str, bytes]) -> None:
        """Keys that are new, and those that are known as they were."""
        others = {name for name, content in contents.items() if self._contents.get(name, content) != content}
        for name in sorted(others - self._overwritten):
            _log.warning(
                "%s holds another key than before under the same name, which is not taken: nothing that was encrypted "
                "with the one before could be read. Write that back; a new key gets a name of its own",
                self._folder / name,
            )
        self._overwritten = others
        self._contents = {name: self._contents.get(name, content) for name, content in contents.items()}
        self._keys = {name: AESGCM(content) for name, content in self._contents.items()}

    def current(self) -> tuple[str, AESGCM] | None:
        """The key that encrypts, and its name; None: nothing is encrypted."""
        if self._clock() - self._read_at > READ_AGAIN_SECONDS:
            self.read()
        return None if self._current == NONE else (self._current, self._keys[self._current])

    def named(self, name: str) -> AESGCM:
        """That key; one that is not known may have just been added."""
        if name not in self._keys:
            self.read()
        if name not in self._keys:
            raise KeyTrouble(f"{self._folder}: there is no key {name!r}, with which a payload was encrypted")
        return self._keys[name]


def _content(file: Path) -> bytes:
    try:
        content = base64.b64decode(file.read_bytes().strip(), validate=True)
        AESGCM(content)
    except (binascii.Error, ValueError) as error:
        raise KeyTrouble(f"{file}: not 16, 24 or 32 bytes in base64: {error}") from None
    return content


class AesGcmCodec(PayloadCodec):
    """Encrypts each payload whole, its own metadata included. `place`: the workflow that it is for, if known."""

    def __init__(self, keys: Keys, place: str = "") -> None:
        self._keys, self._place = keys, place.encode()

    def at(self, workflow_id: str) -> "AesGcmCodec":
        """The same for what that workflow and its steps are given and give."""
        return AesGcmCodec(self._keys, workflow_id)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encrypted with the current key."""
        current = self._keys.current()
        return list(payloads) if current is None else [_encrypted(each, *current, self._place) for each in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypted with the key that each names; what is not encrypted stays, unless the folder is strict."""
        return [self._read(each) for each in payloads]

    def _read(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") == ENCODING:
            return self._decrypted(payload)
        if self._keys.strict:
            raise KeyTrouble(f"a payload is not encrypted, and the folder of keys has the file {STRICT!r}")
        return payload

    def _decrypted(self, payload: Payload) -> Payload:
        name, place = payload.metadata["encryption-key-id"], payload.metadata.get(PLACE, b"")
        if self._place and place != self._place and (place or self._keys.placed):
            whose = f"workflow {place.decode()}" if place else "no workflow"
            raise KeyTrouble(f"a payload that was encrypted for {whose} is used in workflow {self._place.decode()}")
        nonce, data = payload.data[:_NONCE], payload.data[_NONCE:]
        try:
            return Payload.FromString(self._keys.named(name.decode()).decrypt(nonce, data, _bound(name, place)))
        except InvalidTag:
            raise KeyTrouble(
                f"key {name.decode()!r} is another one than that which encrypted the payload, or its place was changed"
            ) from None


def _encrypted(payload: Payload, name: str, key: AESGCM, place: bytes) -> Payload:
    nonce, named = os.urandom(_NONCE), name.encode()
    metadata = {"encoding": ENCODING, "encryption-cipher": CIPHER, "encryption-key-id": named}
    return Payload(
        metadata={**metadata, PLACE: place} if place else metadata,
        data=nonce + key.encrypt(nonce, payload.SerializeToString(), _bound(named, place)),
    )


def _bound(name: bytes, place: bytes) -> bytes:
    """What the key authenticates beside the content: without a place as 0.1.0 does. No file's name has a zero byte."""
    return name + b"\0" + place if place else name


def from_folder(keys: Path | None) -> AesGcmCodec:
    if keys is None:
        raise KeyTrouble("DOVETAIL_CODEC_KEYS is not set: the folder of keys")
    return AesGcmCodec(Keys(keys))
