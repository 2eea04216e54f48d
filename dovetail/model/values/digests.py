"""Digests that every version of the code works out alike for the same things."""

import json
from collections.abc import Mapping
from hashlib import blake2b


def named_digest(said: Mapping[str, object], size: int) -> str:
    """A digest of that many bytes, in hexadecimal, of things by their names. None is nothing said, so that what a later
    version can say as well changes no digest where it is not said."""
    text = json.dumps(_plain(said), sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=size).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
