"""The decision records: each says whether it holds, each is found by its subject, and none is cited that is not there.

Without this the records pile up: some change others, and nobody can say what holds today.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from tests.test_rules import ROOT, assert_none, texts

FOLDER: Final = ROOT / "docs" / "decisions"
INDEX: Final = FOLDER / "README.md"
NAME: Final = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
TITLE: Final = re.compile(r"# (\d+)\. (\S.*)")
NUMBERS: Final = r"\d+(?:(?:, | and )\d+)*"
STATUS: Final = re.compile(rf"Status: (holds|replaced by (\d+)|dropped)\.(?: Takes in ({NUMBERS})\.)?")
LISTED: Final = re.compile(r"^\| (\d+) \| \[(.*)\]\((\S+)\) \| ([\d, ]*) ?\|$", re.MULTILINE)
SUBJECT: Final = re.compile(r"^## (.*)$", re.MULTILINE)
CITED: Final = re.compile(rf"\b(?:decisions?|decision\s+records?)\s+\[?({NUMBERS})\b(?![-:.]\d)", re.IGNORECASE)
CITED_IN_DOCS: Final = re.compile(rf"\brecords?\s+\[?({NUMBERS})\b(?![-:.]\d)", re.IGNORECASE)
LINK: Final = re.compile(r"\]\(([^)\s#]*?\d{4}-[a-z0-9-]+\.md)")
NUMBERED_LINK: Final = re.compile(r"\[(?:[a-z/]*\s*)?(\d+)\]\([^)\s]*?(\d{4})-[a-z0-9-]+\.md", re.IGNORECASE)
NAMED: Final = re.compile(r'\bdecision: "(\d{4})"')  # of a named difference of recorded traffic
PATH: Final = re.compile(r"docs/decisions/(\d{4})")
PLAYED: Final = ("tests/recorded/", "tests/test_decisions.py")


class Record(NamedTuple):
    """One record, as its first lines have it."""

    file: str
    number: int
    title: str
    status: str
    takes_in: tuple[int, ...]


def numbers_in(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def read(file: Path) -> Record:
    title, _, status = file.read_text().splitlines()[:3]
    headed, said = TITLE.fullmatch(title), STATUS.fullmatch(status)
    assert headed, f"{file.name}: {title}"
    assert said, f"{file.name}: {status}"
    return Record(file.name, int(headed[1]), headed[2], said[1], numbers_in(said[3] or ""))


@cache
def records() -> tuple[Record, ...]:
    return tuple(read(file) for file in sorted(FOLDER.glob("*.md")) if file != INDEX)


def subjects() -> Iterator[tuple[str, str]]:
    """Each subject of the index, with its table."""
    parts = SUBJECT.split(INDEX.read_text())[1:]
    yield from zip(parts[::2], parts[1::2], strict=True)


def cited() -> Iterator[tuple[str, int]]:
    """Every place that names a decision by its number."""
    for path, text in texts().items():
        if path.startswith(PLAYED):
            continue
        patterns = (CITED, PATH, NAMED, *((CITED_IN_DOCS,) if path.startswith("docs/") else ()))
        for pattern in patterns:
            for found in pattern.findall(text):
                for number in numbers_in(found):
                    yield path, number


def test_every_record_says_its_number_and_whether_it_holds() -> None:
    assert len(records()) > 60
    assert_none(one.file for one in records() if not NAME.fullmatch(one.file) or int(one.file[:4]) != one.number)


def test_no_number_means_two_records() -> None:
    times = Counter(number for one in records() for number in (one.number, *one.takes_in))
    assert_none(str(number) for number, count in times.items() if count > 1)


def test_what_is_replaced_names_a_record_that_is_there() -> None:
    there = {one.number for one in records()}
    assert_none(one.file for one in records() for number in numbers_in(one.status) if number not in there)


def test_the_index_lists_every_record_once_as_it_is() -> None:
    listed = LISTED.findall(INDEX.read_text())
    wanted = [(str(one.number), one.title, one.file, ", ".join(map(str, one.takes_in))) for one in records()]
    assert sorted((number, title, file, took.strip()) for number, title, file, took in listed) == sorted(wanted)


def test_the_site_has_every_record_under_its_subject() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    [made] = [section["How it is made"] for section in site["nav"] if "How it is made" in section]
    [decisions] = [entry["Decisions"] for entry in made if "Decisions" in entry]
    shown = [
        (subject, [file for entry in entries for file in entry.values()])
        for section in decisions[1:]
        for subject, entries in section.items()
    ]
    assert shown == [
        (subject, [f"decisions/{file}" for _, _, file, _ in LISTED.findall(table)]) for subject, table in subjects()
    ]


def test_every_decision_that_is_cited_is_there() -> None:
    there = {one.number for one in records()}
    places = set(cited())
    assert len(places) > 80
    assert_none(f"{path}: {number}" for path, number in places if number not in there)


def test_every_link_to_a_record_leads_to_it() -> None:
    """Pages outside the site too: the changelog."""
    assert_none(
        f"{path}: {target}"
        for path, text in texts().items()
        if path.endswith(".md")
        for target in LINK.findall(text)
        if not (ROOT / path).parent.joinpath(target).is_file()
    )


def test_a_link_says_the_number_that_it_leads_to() -> None:
    assert_none(
        f"{path}: {said} leads to {number}"
        for path, text in texts().items()
        for said, number in NUMBERED_LINK.findall(text)
        if int(said) != int(number)
    )


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("(decision 185)", ["185"]),
        ("decisions 2, 5 and 83", ["2, 5 and 83"]),
        ("decision record\n[73](", ["73"]),
        ("as decision 2026-05-28T17-26-40.000Z_disruption saw it", []),
    ],
)
def test_a_citation_is_found(text: str, numbers: list[str]) -> None:
    assert CITED.findall(text) == numbers
