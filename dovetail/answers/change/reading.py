"""Reads YAML that anybody may have written, within limits.

A small YAML text can be costly: aliases of aliases stand for billions of values, parsing a number takes the square of
its digits, brackets nest as deep as the stack. All of it is measured on the stream of events, before a value is made.
What Kubernetes could not store as JSON is refused with its document and line.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, cast

import yaml

from dovetail.answers.failures import NotUnderstood
from dovetail.model.values.quoting import one_line, quoted

MOST_BYTES: Final = 2**18  # a hundred NodePools with their comments are half of it
MOST_VALUES: Final = 20_000  # with those that aliases stand for
MOST_DEPTH: Final = 50  # a NodePool has nine levels
MOST_DIGITS: Final = 64  # characters of a number

_TAGS: Final = "tag:yaml.org,2002:"
_KNOWN_TAGS: Final = frozenset(
    {None, "!", *(_TAGS + name for name in ("str", "int", "float", "bool", "null", "map", "seq"))}
)

# The C parser, which every wheel has; other builds of PyYAML are only slower.
_Loader: Final = cast("type[yaml.SafeLoader]", type("_Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The content of one document. `place`: the file, the document and its first line, for messages."""

    value: Any
    place: str


class _Refused(Exception):
    """What is wrong, and on which line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def bodies_of(text: str, called: str) -> list[Body]:
    """The documents of a text, which messages call `called`; NotUnderstood if one of them cannot be read."""
    name = one_line(called)
    if len(text) > MOST_BYTES or len(text.encode(errors="replace")) > MOST_BYTES:
        raise NotUnderstood(f"{name}: it is larger than {MOST_BYTES // 1024} KiB; plan it in parts")
    weigher = _Weigher()
    try:
        for event in yaml.parse(text, Loader=_Loader):
            weigher.take(event)
        found = []
        for number, (value, line) in enumerate(_values(text), 1):
            weigher.document = number
            found.append(Body(value=value, place=f"{name}, document {number}"))
            _check_keys(value, "", line)
        return found
    except _Refused as error:
        why, line = str(error), error.line
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why, line = f"it is no YAML: {error.problem or error.context}", mark.line + 1 if mark is not None else 0
    except (yaml.YAMLError, UnicodeError) as error:
        why, line = f"it is no YAML: {' '.join(str(error).split())}", 0
    where = f", line {line}" if line else ""
    raise NotUnderstood(f"{name}, document {max(1, weigher.document)}{where}: {one_line(why)}")


def _values(text: str) -> Iterator[tuple[Any, int]]:
    """Each document with the line on which it begins."""
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            yield loader.construct_document(node), node.start_mark.line + 1
    finally:
        loader.dispose()


@dataclass(slots=True)
class _Open:
    """A list or a mapping that has not ended. `height`: its levels, including its own."""

    anchor: str | None
    size: int = 1
    height: int = 1


@dataclass(slots=True)
class _Weigher:
    """Counts the values that a text stands for, event by event."""

    document: int = 0
    _values: int = 0
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, tuple[int, int]] = field(default_factory=dict)  # size and height

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark is not None else 0
        match event:
            case yaml.DocumentStartEvent():
                self.document += 1
                self._anchors = {}
            case yaml.AliasEvent():
                size, height = self._known(event.anchor, line)
                self._add(size, height, line)
            case yaml.ScalarEvent():
                _check_tag(event.tag, line)
                self._remember(event.anchor, 1, 1)
                self._add(1, 1, line)
            case yaml.CollectionStartEvent():
                _check_tag(event.tag, line)
                self._add(1, 1, line, begins=True)
                self._open.append(_Open(event.anchor))
            case yaml.CollectionEndEvent():
                self._end()

    def _known(self, anchor: str | None, line: int) -> tuple[int, int]:
        if anchor is None or anchor not in self._anchors:
            raise _Refused(f"the alias *{anchor} stands for nothing that has ended before it", line)
        return self._anchors[anchor]

    def _remember(self, anchor: str | None, size: int, height: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (size, height)

    def _add(self, size: int, height: int, line: int, *, begins: bool = False) -> None:
        self._values += size
        if self._values > MOST_VALUES:
            raise _Refused(f"more than {MOST_VALUES:,} values, with those that aliases stand for", line)
        if len(self._open) + height > MOST_DEPTH:
            raise _Refused(f"more than {MOST_DEPTH} levels, one in the other", line)
        if self._open and not begins:
            self._into_parent(size, height)

    def _end(self) -> None:
        ended = self._open.pop()
        self._remember(ended.anchor, ended.size, ended.height)
        if self._open:
            self._into_parent(ended.size, ended.height)

    def _into_parent(self, size: int, height: int) -> None:
        parent = self._open[-1]
        parent.size += size
        parent.height = max(parent.height, height + 1)


def _check_tag(tag: str | None, line: int) -> None:
    if tag not in _KNOWN_TAGS:
        raise _Refused(f"the tag {quoted(str(tag))} is of nothing that JSON has", line)


def _check_keys(value: Any, path: str, line: int) -> None:
    """JSON allows only strings as keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise _Refused(f"{path or 'the document'}: the key {key!r} is no text; write it in quotes", line)
            _check_keys(inner, f"{path}.{key}" if path else key, line)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _check_keys(inner, f"{path}[{number}]", line)


_Made = Callable[[yaml.SafeLoader, yaml.ScalarNode], Any]


def _checked(make: _Made) -> _Made:
    """A number that fits 64 bits, or a boolean."""

    def made(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
        line = node.start_mark.line + 1
        text = loader.construct_scalar(node)
        if not isinstance(text, str) or len(text) > MOST_DIGITS:
            raise _Refused(f"a number of {len(text):,} characters; {MOST_DIGITS} are the most", line)
        try:
            found = make(loader, node)
        except (ValueError, LookupError, ArithmeticError):
            raise _Refused(f"{quoted(text)} is not what its tag says", line) from None
        if isinstance(found, float) and not isfinite(found):
            raise _Refused(f"{quoted(text)} is no number that JSON has", line)
        if isinstance(found, int) and not -(2**63) <= found < 2**64:
            raise _Refused(f"{quoted(text)} is more than 64 bits hold", line)
        return found

    return made


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    """A timestamp stays text, as in kubectl."""
    return loader.construct_scalar(node)


for _tag, _make in (
    ("int", _checked(yaml.SafeLoader.construct_yaml_int)),
    ("float", _checked(yaml.SafeLoader.construct_yaml_float)),
    ("bool", _checked(yaml.SafeLoader.construct_yaml_bool)),
    ("timestamp", _text),
    ("value", _text),  # a lone "="
):
    _Loader.add_constructor(_TAGS + _tag, _make)
