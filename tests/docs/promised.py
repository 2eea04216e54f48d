"""What the guides to safe disruption promise: each sentence, and the rows that name the tests that hold it.

A sentence is one of a paragraph, a row of a table, or a comment in a block of code. One that asks the reader to do
something promises nothing.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
GUIDES: Final = ROOT / "docs/guides"
ROWS: Final = Path(__file__).parent / "promises"
PAGES: Final = ("disruption-rules", "roll-outs", "blocked-drains", "moves")
# With these a sentence asks for something.
ASKS: Final = frozenset({"Annotate", "Create", "Give", "Read", "See", "Set", "Turn", "Use"})
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)\s]+\)")
_CODE: Final = re.compile(r"`[^`]*`")
_ENDS: Final = re.compile(r"(?<=[.?!])\s+(?=[A-Z`])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A sentence, word by word, and what holds it: ids of the rule book, and tests."""

    says: str
    held_by: tuple[str, ...]


def text_of(page: str) -> str:
    return (GUIDES / f"{page}.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> Iterator[str]:
    """The page's blocks of code in that language."""
    yield from (code for found, code in _BLOCK.findall(text_of(page)) if found == language)


def manifests(page: str) -> Iterator[dict[str, Any]]:
    """The objects of the page, as a reader applies them."""
    for block in blocks(page, "yaml"):
        yield from yaml.safe_load_all(block)


def commands(page: str) -> Iterator[str]:
    """The lines that a reader types."""
    for block in blocks(page, "sh"):
        yield from block.replace("\\\n", " ").splitlines()


def sentences_in(text: str) -> Iterator[str]:
    """Every sentence of a page, without its links."""
    for _, code in _BLOCK.findall(text):
        yield from (comment.strip() for comment in re.findall(r"(?:^| )# (.*)", code))
    for part in re.split(r"\n\s*\n", _BLOCK.sub("\n\n", text)):
        lines = [_LINK.sub(r"\1", line) for line in part.strip().splitlines() if not line.startswith("#")]
        if lines and lines[0].startswith("|"):
            yield from (line.strip("| ") for line in lines[2:])
        else:
            yield from _apart(" ".join(lines))


def _apart(paragraph: str) -> Iterator[str]:
    """Its sentences; a mark within code ends none."""
    hidden = _CODE.sub(lambda found: found[0].replace(" ", "\0"), paragraph)
    yield from (each.replace("\0", " ") for each in _ENDS.split(hidden) if each)


def promises_in(text: str) -> Iterator[str]:
    """The sentences that say how something is."""
    yield from (each for each in sentences_in(text) if each.split()[0] not in ASKS)


def rows(page: str) -> tuple[Row, ...]:
    """The rows of a page."""
    found = tomllib.loads((ROWS / f"{page}.toml").read_text(encoding="utf-8"))
    return tuple(Row(says=each["says"], held_by=tuple(each["held_by"])) for each in found["row"])
