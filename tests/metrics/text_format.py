"""Reads a page as Prometheus does, and refuses what it refuses: for one such line Prometheus takes nothing of a page.

Text format 0.0.4. What is stricter here than there: a family is introduced before its samples and stands in one place,
and a series stands there once.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
TEXT: Final = re.compile(r'"((?:[^"\\\n]|\\["\\n])*)"')
NUMBER: Final = re.compile(r"[+-]?(?:Inf|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|NaN")
TYPES: Final = ("counter", "gauge", "histogram", "summary")
SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("", "_sum", "_count"),
}

Series = tuple[str, tuple[tuple[str, str], ...]]


class Unreadable(AssertionError):
    """A line that Prometheus does not take."""


def read_page(lines: Iterable[str]) -> dict[Series, float]:
    """Every series with its value."""
    types: dict[str, str] = {}
    found: dict[Series, float] = {}
    family = ""
    for line in lines:
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            family, kind = line.removeprefix("# TYPE ").split(" ")
            _insist(NAME.fullmatch(family) and kind in TYPES and family not in types, line)
            types[family] = kind
            continue
        name, labels, value = _sample(line)
        kind = types.get(family, "")
        _insist(name in [family + suffix for suffix in SUFFIXES.get(kind, ("",))], line)
        series = name, tuple(sorted(labels))
        _insist(series not in found, line)
        found[series] = value
    return found


def _sample(line: str) -> tuple[str, list[tuple[str, str]], float]:
    name = NAME.match(line)
    _insist(name, line)
    assert name is not None
    at, labels = name.end(), list[tuple[str, str]]()
    if line[at : at + 1] == "{":
        at += 1
        while line[at : at + 1] != "}":
            label = LABEL.match(line, at)
            _insist(label and line[label.end() : label.end() + 1] == "=", line)
            assert label is not None
            text = TEXT.match(line, label.end() + 1)
            _insist(text and line[text.end() : text.end() + 1] in (",", "}"), line)
            assert text is not None
            labels.append((label[0], text[1]))
            at = text.end() + (line[text.end()] == ",")
        at += 1
    _insist(line[at : at + 1] == " " and NUMBER.fullmatch(line, at + 1), line)
    _insist(len({label for label, _ in labels}) == len(labels), line)
    return name[0], labels, float(line[at + 1 :])


def _insist(holds: object, line: str) -> None:
    if not holds:
        raise Unreadable(line)
