"""Caches for texts that were read: answers for a while, within a bound of bytes; objects while somebody uses them.

Anybody who may create a pod chooses these texts, so a bound on entries limits nothing: a thousand entries may be a
thousand megabytes. What is no longer asked for is forgotten, and a large text is never kept.
"""

from collections.abc import Callable, Hashable
from functools import wraps
from hashlib import blake2b
from typing import Final, Generic, TypeVar, cast
from weakref import WeakValueDictionary

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Function = TypeVar("Function", bound=Callable[..., object])

MEGABYTE: Final = 2**20
LARGEST_KEPT: Final = 8192  # bytes of one key
_ENTRY: Final = 400  # what an entry costs in addition to its texts: the slot, the key's tuple, a small value
_TEXT: Final = 60  # what Python adds to a text


class Recent(Generic[Key, Value]):
    """Values by key; those used recently are kept, within a bound of bytes.

    There are two generations. When the young one has grown to half of the bound it becomes the old one, and the old one
    is forgotten, except what was used meanwhile. Threads may share it: at worst they count slightly wrong.
    """

    def __init__(self, most_bytes: int, times: int = 1) -> None:
        """`times`: the assumed size of an entry, as a multiple of its key's."""
        self._most = most_bytes // 2
        self._times = times
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}
        self._size = 0

    def get(self, key: Key, nothing: Value) -> Value:
        """The value of that key, or `nothing`."""
        found = self._young.get(key, nothing)
        if found is nothing and self._old:
            found = self._old.get(key, nothing)
            if found is not nothing:
                self.put(key, found)
        return found

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, unless its key is large."""
        size = size_of(key)
        if size > LARGEST_KEPT:
            return
        size = size * self._times + _ENTRY
        if self._size + size > self._most:
            self._old, self._young, self._size = self._young, {}, 0
        self._young[key] = value
        self._size += size

    def clear(self) -> None:
        self._old, self._young, self._size = {}, {}, 0


def size_of(key: object) -> int:
    """About how many bytes a key holds: its texts, however they are nested."""
    if isinstance(key, str | bytes):
        return _TEXT + len(key)
    if isinstance(key, tuple):
        least = _TEXT * (len(key) + 1)  # of a long key that is enough to know
        return least if least > LARGEST_KEPT else _TEXT + sum([size_of(part) for part in key])
    return 0


_NOTHING: Final = object()


def remembered(most_bytes: int) -> Callable[[Function], Function]:
    """A function of texts whose answers are remembered within that many bytes; its errors are not."""

    def remember(function: Function) -> Function:
        recent: Recent[tuple[object, ...], object] = Recent(most_bytes)

        @wraps(function)
        def answer(*key: object) -> object:
            found = recent.get(key, _NOTHING)
            if found is _NOTHING:
                found = function(*key)
                recent.put(key, found)
            return found

        return cast(Function, answer)

    return remember


class Shared(Generic[Key, Value]):
    """One object for all equal ones, for as long as anybody uses it."""

    def __init__(self) -> None:
        self._values: WeakValueDictionary[Key, Value] = WeakValueDictionary()

    def one(self, key: Key, make: Callable[[], Value]) -> Value:
        """The object for that key, made if there is none."""
        found = self._values.get(key)
        return self._values.setdefault(key, make()) if found is None else found

    def __len__(self) -> int:
        return len(self._values)


def fingerprint(text: bytes) -> bytes:
    """A text as a key of twenty bytes, which no two texts share."""
    return blake2b(text, digest_size=20).digest()
