"""Named differences cover exactly what they say, and each entry of the list has a decision record."""

import re
from collections import Counter
from pathlib import Path

import pytest

from acceptance.traffic.comparing.found import Found
from acceptance.traffic.comparing.values import ABSENT
from acceptance.traffic.named import FILE, Facts, read_named, sort_out
from tests.recorded.test_aws_traffic import recorded

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


def test_no_named_difference_swallows_everything() -> None:
    anything = Found(phase="step1", what="call TerminateInstances", path="input.InstanceIds.[0]", theirs="a", ours="b")

    assert [each.name for each in read_named() if each.place(anything, Facts()) is not None] == []


def test_no_named_difference_names_a_case() -> None:
    ids = {name.partition("/")[2] for name in recorded()}

    written = FILE.read_text(encoding="utf-8")

    assert len(ids) > 100
    assert [each for each in ids if "-" in each and re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", written)] == []


def test_a_place_covers_no_more_in_a_phase_than_it_says(tmp_path: Path) -> None:
    file = tmp_path / "named.yaml"
    file.write_text(RULE.replace("theirs: \\(absent\\)}", "theirs: \\(absent\\), most: 1}"))
    twice = [_found(), _found(path="input.Tags.y")]
    in_another_phase = Found(phase="step1", what="call CreateFleet", path="input.Tags.z", theirs=ABSENT, ours="y")

    rest, met = sort_out([*twice, in_another_phase], read_named(file))

    assert (rest, met) == (twice[1:], Counter({"tags": 2}))


def test_a_number_is_bounded_by_the_pods_of_the_case(tmp_path: Path) -> None:
    file = tmp_path / "named.yaml"
    file.write_text(RULE.replace("theirs: \\(absent\\)}", "ours_at_most: pods}"))
    numbers = [Found(phase="launch", what="call CreateFleet", path="input.Tags.x", theirs=1, ours=n) for n in (2, 3)]

    assert sort_out(numbers, read_named(file), Facts(pods=2))[0] == numbers[1:]
    assert sort_out([_found()], read_named(file), Facts(pods=2))[0] == [_found()]  # a text is no number


def test_a_rule_for_empty_subnets_is_for_those_alone(tmp_path: Path) -> None:
    file = tmp_path / "named.yaml"
    file.write_text(RULE.replace("input\\.Tags\\..*", "input\\.Tags\\.{empty-subnet}"))
    empty, other = _found(path="input.Tags.subnet-0a"), _found(path="input.Tags.subnet-0b")
    world = {"subnets": [{"id": "subnet-0a", "free": 0}, {"id": "subnet-0b", "free": 1}]}
    world["subnets"] = [{**each, "zone": "z"} for each in world["subnets"]]

    assert sort_out([empty, other], read_named(file), Facts(world=world))[0] == [other]
    assert sort_out([empty, other], read_named(file), Facts())[0] == [empty, other]
