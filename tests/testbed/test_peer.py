"""What `make peer` asks of the suites' program, reads out of its report and writes of it."""

import json
import re
from pathlib import Path

import pytest

from testbed.peer.specs import Outcome, focus, listed, outcome
from testbed.peer.table import Reasons, outcomes_of, page
from testbed.plane.building import PEER, SOURCES
from testbed.up import ROOT

FIRST, SECOND = "Drift Budgets should keep a budget (of 50%)", "Drift Budgets should keep a budget (of 50%) twice"


def spec(containers: list[str], leaf: str, state: str = "passed", kind: str = "It", message: str = "") -> object:
    failure = {"Message": message, "Location": {"FileName": "/go/suites/drift_test.go", "LineNumber": 7}}
    return {
        "ContainerHierarchyTexts": containers,
        "LeafNodeText": leaf,
        "LeafNodeType": kind,
        "State": state,
        "RunTime": 2_500_000_000,
        "StartTime": "2026-01-02T03:04:05.6Z",
        **({"Failure": failure} if message else {}),
    }


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """As Ginkgo writes one: nodes of the suite are among the specs, and those out of focus."""
    specs = [
        spec([], "", kind="BeforeSuite"),
        spec(["Drift", "Budgets"], "should keep a budget (of 50%)"),
        spec(["Drift", "Budgets"], "should keep a budget (of 50%) twice", "failed", message="Expected\n    <int>: 3"),
        spec(["Chaos"], "should end", "skipped"),
    ]
    file = tmp_path / "report.json"
    file.write_text(json.dumps([{"SuiteDescription": "Regression", "SpecReports": specs}]))
    return file


def test_specs_are_listed_by_their_full_text(report: Path) -> None:
    assert listed(report) == [FIRST, SECOND, "Chaos should end"]


def test_a_focus_is_that_spec_alone() -> None:
    assert re.search(focus(FIRST), f"Regression {FIRST}")
    assert not re.search(focus(FIRST), f"Regression {SECOND}")
    assert " " in focus(FIRST) and "\\ " not in focus(FIRST), "Go refuses an escaped space"


def test_an_outcome_says_when_and_why(report: Path) -> None:
    passed, failed = outcome(report, FIRST), outcome(report, SECOND)

    assert passed == Outcome(spec=FIRST, passed=True, seconds=2, day="2026-01-02")
    assert failed is not None and not failed.passed
    assert failed.why == "failed at drift_test.go:7: Expected <int>: 3"
    assert outcome(report, "Chaos should end") is None, "it was not run"


def test_the_page_counts_what_passed_failed_and_cannot_apply() -> None:
    outcomes = {
        "a": Outcome(spec="a", passed=True, seconds=None, day="2026-01-02"),
        "b | c": Outcome(spec="b | c", passed=False, seconds=1, day="2026-01-03", why="Expected <int>"),
    }
    reasons = Reasons(suites={"dra": "not known"}, specs={"d": "no such thing"})

    text = page("karpenter v1", ["a", "b | c", "d", "e"], outcomes, reasons)

    assert "Of the 4 specs of its regression suite: 1 passed, 1 failed, 1 not applicable, 1 not run." in text
    assert "| regression | a | passed | 2026-01-02 | – |" in text
    assert "| regression | b \\| c | failed: Expected &lt;int> | 2026-01-03 | 1 |" in text
    assert "| regression | d | not applicable: no such thing | – | – |" in text
    assert "| regression | e | not run | – | – |" in text
    assert "| dra | all | not applicable: not known | – | – |" in text
    assert outcomes_of(text) == outcomes, "what is not run again keeps its row"


def test_the_page_in_the_docs_is_of_the_pinned_version_and_its_reasons() -> None:
    text = (ROOT / "docs" / "peer.md").read_text()
    pinned = re.search(r"sigs\.k8s\.io/karpenter v\S+", (SOURCES / PEER.module / "go.mod").read_text())

    assert pinned is not None and pinned[0] in text, "run `make peer`"
    reasons = Reasons.read()
    for named in (*reasons.specs, *reasons.suites):
        assert f"| {named} | " in text, f"reasons.toml names {named}, which docs/peer.md does not: run `make peer`"
    assert text.count("not applicable: ") == len(reasons.specs) + len(reasons.suites)
