"""The rule book: docs/rules/*.toml is the book, docs/rules/*.md are its pages, written from it.

One file for each subject: a title, an introduction, and sections of rules. Tests read the rules from there; the pages
are for people.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from docs.tools.reference.writing import write

BOOK: Final = Path(__file__).parents[2] / "rules"
MARKS: Final = ("same", "different", "not ours", "open")


class RuleBookError(Exception):
    """A file of the book that is not as the book is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What Karpenter does, and Dovetail's `mark` on it with its `note`; where that is, and the tests that show it.

    `was` is the number that recorded results cite; empty where the rule has none.
    """

    id: str
    was: str
    rule: str
    mark: str
    note: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rules under one heading, of level 2 or 3."""

    title: str
    level: int
    text: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One file of the book; its name is that of its page."""

    name: str
    title: str
    intro: str
    sections: tuple[Section, ...]


def read_book(folder: Path = BOOK) -> tuple[Subject, ...]:
    """All subjects, in the order of their names."""
    return tuple(read_subject(file) for file in sorted(folder.glob("*.toml")))


def read_subject(file: Path) -> Subject:
    found = tomllib.loads(file.read_text(encoding="utf-8"))
    _check(found, {"title", "intro", "section"}, file.name)
    sections = tuple(_section(section, file.name) for section in found["section"])
    return Subject(name=file.stem, title=found["title"], intro=found["intro"], sections=sections)


def _section(found: Mapping[str, Any], where: str) -> Section:
    _check(found, {"title", "level", "text", "rule"}, f"{where}: {found.get('title')}")
    rules = tuple(_rule(rule, where) for rule in found["rule"])
    return Section(title=found["title"], level=found["level"], text=found["text"], rules=rules)


def _rule(found: Mapping[str, Any], where: str) -> Rule:
    where = f"{where}: {found.get('id')}"
    _check(found, {field.name for field in fields(Rule)}, where)
    if found["mark"] not in MARKS:
        raise RuleBookError(f"{where}: mark: {found['mark']!r} is none of {', '.join(MARKS)}")
    return Rule(**{**found, "modules": tuple(found["modules"]), "tests": tuple(found["tests"])})


def _check(found: Mapping[str, Any], wanted: set[str], where: str) -> None:
    if found.keys() != wanted:
        odd = ", ".join(sorted(found.keys() ^ wanted))
        raise RuleBookError(f"{where}: missing, or not known: {odd}")


# --- pages


def page_of(subject: Subject) -> str:
    """The page, in Markdown."""
    head = f"<!-- Written by `make reference` from {subject.name}.toml. Change that, not this page. -->"
    return "\n\n".join([head, f"# {subject.title}", subject.intro.strip(), *_parts(subject)]) + "\n"


def _parts(subject: Subject) -> Iterator[str]:
    for section in subject.sections:
        yield f"{'#' * section.level} {section.title}"
        if section.text:
            yield section.text.strip()
        for rule in section.rules:
            yield from _paragraphs(rule)


def _paragraphs(rule: Rule) -> Iterator[str]:
    yield f"#### {rule.id}"
    yield rule.rule
    joint = "; " if rule.mark == "same" else ": "
    yield f"**{rule.mark}**{joint if rule.note else ''}{rule.note}"
    where = [("In", [f"`{name}`" for name in rule.modules]), ("Shown by", list(_by_file(rule.tests)))]
    said = [f"*{word}* {listed}." for word, names in where if (listed := ", ".join(names))]
    if said:
        yield " ".join(said)


def _by_file(tests: tuple[str, ...]) -> Iterator[str]:
    """Each file once, with its tests behind it."""
    for file, named in groupby(tests, key=lambda test: test.partition("::")[0]):
        yield f"`{file}`: " + ", ".join(f"`{test.partition('::')[2]}`" for test in named)


if __name__ == "__main__":
    rules = Path(sys.argv[1])
    write({f"{subject.name}.md": page_of(subject) for subject in read_book(rules)}, rules)
