"""The structural hash that upstream writes on NodePools, NodeClasses and NodeClaims, bit for bit.

It is 64-bit FNV-1 over a walk of the structure, with slices as sets and zero values left out (NPL-3). The hashes of a
list's entries are xor-ed, so two equal entries cancel, as they do upstream. If one bit differed, every node of a
cluster taken over from Karpenter would drift at once.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

NODE_POOL_HASH_ALGORITHM: Final = "v3"  # the version of upstream's hash of a NodePool's spec.template (NPL-1)
_VERSION: Final = re.compile(r"v[0-9]+(?=:)")

_OFFSET: Final = 14695981039346656037
_PRIME: Final = 1099511628211
_MASK: Final = 2**64 - 1


def versioned(text: str, version: str, first: str) -> str:
    """A hash as roll-outs remember it, `version:hash`; of the first version, as objects have it already, without."""
    return text if not text or version in ("", first) else f"{version}:{text}"


def is_other(one: str, other: str) -> bool:
    """Whether two remembered hashes are of different things; those of different versions say nothing of each other."""
    return one != other and (not one or not other or _version(one) == _version(other))


def _version(text: str) -> str:
    found = _VERSION.match(text)
    return found[0] if found is not None else ""


def digest(data: bytes) -> int:
    """64-bit FNV-1: multiply, then xor."""
    value = _OFFSET
    for byte in data:
        value = (value * _PRIME & _MASK) ^ byte
    return value


def _little(number: int) -> bytes:
    return (number & _MASK).to_bytes(8, "little")


def pair(left: int, right: int) -> int:
    """Two hashes as one, in order."""
    return digest(_little(left) + _little(right))


def finish(value: int) -> int:
    """Closes an unordered collection, so that a nested one does not cancel out against its parent."""
    return digest(_little(value))


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure by its upstream type name, with its fields in declaration order. A value None is a zero value."""

    name: str
    fields: tuple[tuple[str, "Value"], ...]

    @property
    def is_zero(self) -> bool:
        return all(value is None for _, value in self.fields)


@dataclass(frozen=True, slots=True)
class Int:
    """An integer of one width: booleans are one byte, everything else here has eight."""

    value: int
    width: int = 8


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are: how upstream hashes a time."""

    data: bytes


Value = None | str | Int | Raw | Struct | Mapping[str, "Value"] | tuple["Value", ...]


def hash_value(value: Value) -> int:
    match value:
        case None:
            return 0
        case str():
            return digest(value.encode())
        case Int(number, width):
            return digest((number & (2 ** (8 * width) - 1)).to_bytes(width, "little"))
        case Raw(data):
            return digest(data)
        case Struct():
            return _hash_struct(value)
        case tuple():
            return _hash_set(value)
        case _:
            return _hash_map(value)


def _hash_set(entries: Iterable[Value]) -> int:
    result = 0
    for entry in entries:
        result ^= hash_value(entry)
    return result


def _hash_map(entries: Mapping[str, Value]) -> int:
    result = 0
    for key, value in entries.items():
        result ^= pair(digest(key.encode()), hash_value(value))
    return finish(result)


def _hash_struct(struct: Struct) -> int:
    result = digest(struct.name.encode())
    for name, value in struct.fields:
        if value is not None:
            result = finish(result ^ pair(digest(name.encode()), hash_value(value)))
    return result
