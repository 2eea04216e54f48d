"""Our definitions take, refuse, fill in and show what Karpenter's do, field by field; each difference has its reason.

Karpenter's side is recorded (tests/recorded/schemas). A manifest that Karpenter takes and our API server refuses is a
failed apply; a field that ours does not have is dropped without a word.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dovetail.api.crds import crd
from dovetail.api.kinds import KINDS
from tests.recorded.schemas.facts import Facts, facts_of
from tests.recorded.schemas.record import FOLDER

REASONS: Final = Path(__file__).with_name("karpenters_schemas.toml")
THEIRS: Final = sorted(file.stem for file in FOLDER.glob("*.jsonl"))
OURS: Final = {kind.kind: facts_of(crd(kind)) for kind in KINDS}


def recorded(kind: str) -> Facts:
    found: Facts = {}
    for line in (FOLDER / f"{kind}.jsonl").read_text().splitlines():
        found |= json.loads(line)
    return found


def differences(theirs: Facts, ours: Facts) -> set[tuple[str, str]]:
    """Where, and what differs there, in words that a row repeats."""
    found = set()
    for place in sorted(theirs.keys() | ours.keys()):
        if place not in ours or place not in theirs:
            found.add((place, "the field: not here" if place in theirs else "the field: only here"))
            continue
        found |= {(place, words) for words in _differing(theirs[place], ours[place])}
    return found


def _differing(theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    for fact in sorted(theirs.keys() | ours.keys()):
        if fact == "rules":
            yield from (f"rule {words}" for words in _differing(theirs.get(fact, {}), ours.get(fact, {})))
        elif theirs.get(fact) != ours.get(fact):
            yield f"{fact}: {_words(theirs.get(fact), ours.get(fact))}"


def _words(theirs: Any, ours: Any) -> str:
    if isinstance(theirs, list) and isinstance(ours, list):
        return " ".join(
            [*(f"-{each}" for each in theirs if each not in ours), *(f"+{e}" for e in ours if e not in theirs)]
        )
    return f"{json.dumps(theirs, sort_keys=True)}, here {json.dumps(ours, sort_keys=True)}"


def meant(kind: str) -> set[tuple[str, str]]:
    """The differences of a kind that have a reason."""
    rows = tomllib.loads(REASONS.read_text())["difference"]
    assert all(row["because"] for row in rows)
    return {(place, what) for row in rows if kind in row["kinds"] for place in row["places"] for what in row["what"]}


@pytest.mark.parametrize("kind", THEIRS)
def test_each_difference_from_karpenters_definition_has_its_reason(kind: str) -> None:
    """API-1, AWS-1: a row whose difference is gone fails as well."""
    found, known = differences(recorded(kind), OURS[kind]), meant(kind)

    assert sorted(found - known) == []
    assert sorted(known - found) == []


def test_every_kind_that_is_karpenters_is_compared() -> None:
    assert sorted(kind.kind for kind in KINDS if kind.group != "dovetail.sh") == THEIRS


@pytest.mark.parametrize(
    ("place", "fact", "value"),
    [
        (".spec.disruption.consolidationPolicy", "enum", ["WhenEmpty"]),
        (".spec.weight", "maximum", 99),
        (".spec.template.spec.expireAfter", "default", "1h"),
        (".spec.replicas", "type", "string"),
        (".spec.disruption.budgets", "rules", {}),
    ],
)
def test_a_fact_that_is_another_is_seen(place: str, fact: str, value: Any) -> None:
    """The comparison itself."""
    ours = OURS["NodePool"]
    spoiled = {**ours, place: {**ours[place], fact: value}}

    assert [at for at, _ in differences(ours, spoiled)] == [place]
    assert differences(ours, {at: facts for at, facts in ours.items() if at != place}) == {
        (place, "the field: not here")
    }
