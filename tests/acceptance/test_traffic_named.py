"""Named differences cover exactly what they say, and each entry of the list has a decision record."""

from collections import Counter
from pathlib import Path

import pytest

from acceptance.traffic.comparing.case import Found
from acceptance.traffic.comparing.values import ABSENT
from acceptance.traffic.named import read_named, sort_out

DECISIONS = Path(__file__).resolve().parents[2] / "docs" / "decisions"
RULE = """
- name: tags
  decision: "0010"
  because: reasons
  where:
    - {what: call CreateFleet, path: 'input\\.Tags\\..*', theirs: \\(absent\\)}
"""


def _found(what: str = "call CreateFleet", path: str = "input.Tags.x", theirs: object = ABSENT) -> Found:
    return Found(phase="launch", what=what, path=path, theirs=theirs, ours="y")


def test_a_named_difference_is_counted_and_everything_else_stays(tmp_path: Path) -> None:
    file = tmp_path / "named.yaml"
    file.write_text(RULE)
    others = [_found(what="call RunInstances"), _found(path="input.Other.x"), _found(theirs="z")]

    rest, met = sort_out([_found(), *others], read_named(file))

    assert rest == others
    assert met == Counter({"tags": 1})


def test_a_rule_over_a_field_that_no_difference_has_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "named.yaml"
    file.write_text(RULE.replace("what:", "case:"))

    with pytest.raises(ValueError, match="tags"):
        read_named(file)


def test_consequences_are_covered_only_where_their_root_is(tmp_path: Path) -> None:
    file = tmp_path / "named.yaml"
    file.write_text(RULE + "  given: {what: nodeClasses, path: conditions}\n")
    root = _found(what="nodeClasses", path="conditions")

    assert sort_out([_found()], read_named(file))[0] == [_found()]
    assert sort_out([_found(), root], read_named(file))[0] == [root]


def test_every_named_difference_has_its_decision_record() -> None:
    records = {file.name[:4] for file in DECISIONS.glob("*.md")}

    named = read_named()

    assert named
    assert {each.decision for each in named} <= records
    assert len({each.name for each in named}) == len(named)


def test_no_named_difference_names_a_case_or_swallows_everything() -> None:
    anything = Found(phase="step1", what="call TerminateInstances", path="input.InstanceIds.[0]", theirs="a", ours="b")

    assert [each.name for each in read_named() if each.covers(anything)] == []
