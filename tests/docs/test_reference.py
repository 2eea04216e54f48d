"""The pages of docs/reference are what the code says, and the code has nothing that they lack."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.tools.reference.annotations import NOTES_OF_DOVETAIL, WRITTEN_BY_PEOPLE
from docs.tools.reference.events import NORMAL, WARNINGS
from docs.tools.reference.pages import pages
from dovetail.model import names

ROOT = Path(__file__).parents[2]
PAGES = pages()
# Where Events are worded, and where a decision is given its Event's reason.
WORDED_IN = (
    "dovetail/notices",
    "dovetail/disruption",
    "dovetail/adapters/aws/upkeep",
    "activities",
    "workflows",
    "worker",
)
HELD_ELSEWHERE = {"metrics.md", "logs.md", "situations.md", "api.md"}  # by tests of their own; the last by hand
MAKERS = {
    "Notice",
    "notice_about",
    "warnings_on_pools",
    "NoticeRequest",
    "decision_notice",
    "_of",
    "_of_claim",
    "_of_pod",
    "_notice",
    "_warning",
    "_Words",
}
_REASON = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")
KINDS = {"Pod", "Node", "NodeClaim", "NodePool", "NodeRollout", "NodeOverlay", "CapacityBuffer", "Warning", "Normal"}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_each_page_is_as_the_code_has_it(name: str) -> None:
    page = ROOT / "docs/reference" / name
    assert page.read_text(encoding="utf-8") == PAGES[name], "run `make reference`"


def test_every_page_in_the_folder_is_written_by_the_code() -> None:
    folder = ROOT / "docs/reference"
    there = {str(page.relative_to(folder)) for page in folder.rglob("*") if page.is_file()}
    assert there - HELD_ELSEWHERE == set(PAGES)


def test_every_name_of_our_own_is_on_the_page_of_annotations() -> None:
    ours = {value for value in vars(names).values() if isinstance(value, str) and value.startswith("dovetail.sh/")}
    ours |= {f"{prefix}NAME" for prefix in (names.PRE_DRAIN_HOOK, names.PRE_TERMINATE_HOOK)}
    listed = [word.key for word in (*WRITTEN_BY_PEOPLE, *NOTES_OF_DOVETAIL)]
    assert sorted(listed) == sorted(ours)


def reasons_in_the_code() -> Iterator[str]:
    """Words in capitals that stand as an argument where an Event is made, or as a Block's event."""
    for folder in WORDED_IN:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield from _reasons_of(node)


def _reasons_of(call: ast.Call) -> Iterator[str]:
    called = getattr(call.func, "id", getattr(call.func, "attr", ""))
    given = [*call.args, *[word.value for word in call.keywords]] if called in MAKERS else []
    given += [word.value for word in call.keywords if word.arg == "event"]
    for one in given:
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and _REASON.fullmatch(one.value):
            yield one.value


def test_every_reason_of_an_event_is_on_its_page() -> None:
    listed = {said.reason for said in (*WARNINGS, *NORMAL)}
    found = set(reasons_in_the_code()) - KINDS
    assert len(found) > 30
    assert sorted(found - listed) == []


def test_no_reason_is_listed_that_the_code_does_not_have() -> None:
    text = "".join(file.read_text(encoding="utf-8") for folder in WORDED_IN for file in (ROOT / folder).rglob("*.py"))
    listed = [said.reason for said in (*WARNINGS, *NORMAL)]
    assert [reason for reason in listed if f'"{reason}"' not in text] == []
    assert len(set(listed)) == len(listed)
