"""What is remembered on objects: in an annotation, as JSON that a person can read.

    {"v": 1, "entries": [{"reason": "Drifted", "at": "2026-11-30T02:50:00Z", "mark": "…"}, …]}

An entry is a frozen dataclass: texts and choices of them, whole numbers, yes or no, moments (each a float, written as a
time in whole seconds), and tuples, sets or dataclasses of them; a field with its default is not written. Anybody who
may edit the object may write anything: an entry that lacks something, or has a number that is none, counts as none. Of
an entry whose fields stand for themselves (`APART`), what cannot be read is as if it were not there. What grows too
large forgets its oldest.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, Final, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints

from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time, time_or_none

VERSION: Final = 1
LARGEST: Final = 131_072  # characters of one memory; all annotations of an object have twice as many
MOST: Final = 2**31 - 1  # any number

Entry = TypeVar("Entry")


class Annotated(Protocol):
    @property
    def annotations(self) -> Mapping[str, str]: ...


Thing = TypeVar("Thing", bound=Annotated)


@dataclass(frozen=True, slots=True)
class Memory(Generic[Entry]):
    """What is remembered under one annotation. `before`: reads the text of the release before this form, where it
    remembered that. `part`: under which name, where others are remembered beside it."""

    name: str
    of: type[Entry]
    before: Callable[[str], Iterable[Json]] = lambda _: ()
    part: str = "entries"

    def read(self, thing: Annotated) -> tuple[Entry, ...]:
        """The entries that can be read, the oldest first."""
        return self.of_text(thing.annotations.get(self.name, ""))

    def of_text(self, text: str) -> tuple[Entry, ...]:
        return _entries(self, text) if 0 < len(text) <= LARGEST else ()

    def text(self, entries: Collection[Entry], beside: str = "") -> str | None:
        """The annotation; None: there is nothing to remember. `beside`: as it is now; its other parts stay."""
        others = {part: each for part, each in _parts(beside).items() if part not in ("v", self.part)}
        kept = [_json(each) for each in entries]
        while kept or others:
            try:
                parts = {"v": VERSION, **({self.part: kept} if kept else {}), **others}
                text = json.dumps(parts, separators=(",", ":"))
            except RecursionError:
                return self.text(entries)
            if len(text) <= LARGEST:
                return text
            kept, others = kept[len(kept) // 10 + 1 :], others if kept else {}
        return None

    def write(self, thing: Thing, entries: Collection[Entry]) -> Thing:
        """The object with these entries instead of those that it remembers."""
        others = {key: at for key, at in thing.annotations.items() if key != self.name}
        text = self.text(entries, thing.annotations.get(self.name, ""))
        return replace(thing, annotations=others if text is None else {**others, self.name: text})  # type: ignore[type-var]


def mark(text: str) -> str:
    """What a text is known by, so that a second report of the same is seen; nobody finds another with the same."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=4096)  # thousands of claims remember something, and are asked in each pass
def _entries(memory: Memory[Entry], text: str) -> tuple[Entry, ...]:
    try:
        raw = _parts(text).get(memory.part) if text.startswith("{") else list(memory.before(text))
    except ValueError:
        return ()
    kind: Any = memory.of
    read, found = _reader(kind), []
    for each in raw if isinstance(raw, list) else ():
        with suppress(ValueError):
            found.append(read(each))
    return tuple(found)


def _parts(text: str) -> dict[str, Any]:
    """What stands in it; nothing where it cannot be read or is of another version."""
    try:
        raw = json.loads(text) if text.startswith("{") and len(text) <= LARGEST else {}
    except (ValueError, RecursionError):
        return {}
    return raw if raw.get("v") == VERSION else {}


@cache
def _fields(kind: Any) -> list[tuple[str, Any, object]]:
    """The name, type and default of each field."""
    hints = get_type_hints(kind)
    return [(each.name, hints[each.name], each.default) for each in fields(kind)]


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Reads a value of that type; ValueError where it is none."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if type(None) in get_args(kind):
        return _reader(get_args(kind)[0])
    if get_origin(kind) in (tuple, frozenset):
        made, one = get_origin(kind), _reader(get_args(kind)[0])
        return lambda raw: made(map(one, _checked(raw, list)))
    if issubclass(kind, StrEnum):
        return lambda raw: kind(_checked(raw, str))
    readers = [(name, _reader(of), default is MISSING) for name, of, default in _fields(kind)]
    apart = getattr(kind, "APART", False)

    def entry(raw: Any) -> Any:
        found, fit = _checked(raw, dict), dict[str, Any]()
        for name, read, must in readers:
            if must or name in found:
                with suppress(*((ValueError,) if apart else ())):
                    fit[name] = read(found.get(name))
        return kind(**fit)

    return entry


def _checked(raw: Any, kind: type, fits: Callable[[Any], object] = lambda _: True) -> Any:
    if type(raw) is not kind or not fits(raw):
        raise ValueError(f"{raw!r} is no {kind.__name__}")
    return raw


def _moment(raw: Any) -> float:
    moment = time_or_none(_checked(raw, str))
    if moment is None:
        raise ValueError(f"{raw!r} is no moment")
    return moment


_PLAIN: Final[Mapping[Any, Callable[[Any], Any]]] = {
    str: lambda raw: _checked(raw, str).encode().decode(),  # half of a character is none
    int: lambda raw: _checked(raw, int, lambda number: 0 <= number <= MOST),
    bool: lambda raw: _checked(raw, bool),
    float: _moment,
}


def _json(value: Any, kind: Any = None) -> object:
    """`kind`: of a field; a moment may be a whole number."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) or kind in (float, float | None):
        return format_time(value)
    if isinstance(value, int):
        return value
    if isinstance(value, tuple | frozenset):
        return [_json(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]
    whole: Any = type(value)
    given = [(name, getattr(value, name), of, default) for name, of, default in _fields(whole)]
    return {name: _json(each, of) for name, each, of, default in given if each != default}
