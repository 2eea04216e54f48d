"""docs/tctl.md names the signals that are heeded, and no other: Temporal takes any, and nothing comes of one that no
workflow handles. In an incident that is a pause that does not pause."""

import re
from pathlib import Path

from temporalio import workflow

from dovetail.worker.task_queues import WORKFLOWS

PAGE = Path(__file__).parents[2] / "docs" / "tctl.md"


def heeded() -> set[tuple[str, str]]:
    """Each workflow's type, and a signal that it defines."""
    defined = [workflow._Definition.must_from_class(each) for each in WORKFLOWS]
    return {(str(each.name), str(signal)) for each in defined for signal in each.signals}


def named(text: str) -> set[tuple[str, str]]:
    """The same by the table of the page."""
    rows = re.findall(r"^\| (`[A-Z].*?) \| `(\w+)` \|", text, re.MULTILINE)
    return {(kind, signal) for kinds, signal in rows for kind in re.findall(r"\w+", kinds)}


def test_the_page_has_the_signals_that_workflows_define_and_no_other() -> None:
    assert named(PAGE.read_text()) == heeded()


def test_a_signal_that_the_page_types_is_one_that_a_disruption_heeds() -> None:
    typed = re.findall(r"signal --workflow[_-]id ID --name (\w+)", PAGE.read_text())

    assert len(typed) == 2 and {("DisruptNodes", signal) for signal in typed} <= heeded()
