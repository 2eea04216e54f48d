"""What the guides to safe disruption promise is held by tests, and what they show can be applied and typed.

A sentence without a row is a promise that nobody keeps; a row without its sentence keeps what nobody is promised.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.parsing.policies import parse_freeze, parse_policy
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.api.kinds import KINDS
from dovetail.api.validation import parse
from dovetail.model.own.policies import Freeze, Policy
from dovetail.model.own.rollouts import Rollout
from dovetail.model.values.json import Json
from tests.docs.promised import ASKS, PAGES, commands, manifests, promises_in, rows, sentences_in, text_of
from tests.printed_commands import fault_of
from tests.test_rules import rows as rules
from tests.test_rules import runs_in_make_test

MODELS = {kind.kind: kind.model for kind in KINDS}
OURS: dict[str, Callable[[Json], Policy | Freeze | Rollout]] = {
    "DisruptionPolicy": parse_policy,
    "Freeze": parse_freeze,
    "NodeRollout": parse_rollout,
}
MOST_WORDS = 1400


@pytest.mark.parametrize("page", PAGES)
def test_each_sentence_has_a_row_and_each_row_its_sentence(page: str) -> None:
    promised, held = list(promises_in(text_of(page))), [row.says for row in rows(page)]

    assert [each for each in promised if each not in held] == [], "without a row: name the tests that hold it"
    assert [each for each in held if each not in promised] == [], "without a sentence: see whether its tests hold it"
    assert held == promised, "as often, and in the order of the page"


@pytest.mark.parametrize("page", PAGES)
def test_each_row_names_rules_and_tests_that_are_there(page: str) -> None:
    shown = {rule.id for rule in rules() if rule.promises}

    assert [row.says for row in rows(page) if not row.held_by] == []
    assert [
        (row.says, each)
        for row in rows(page)
        for each in row.held_by
        if each not in shown and not runs_in_make_test(each)
    ] == []


def test_what_is_read_is_every_sentence_row_and_comment_but_what_asks_for_something() -> None:
    page = (
        "# A title\n\nIt holds `a. B` here\nfor an hour. See [there](x.md). A second.\nA third!\n\n"
        "| You want | Use |\n|---|---|\n| this | [that](x.md) |\n\n"
        "```yaml\nkind: Freeze  # nothing moves\n```\n\n## More\n\n`fail` holds. So it is.\n"
    )
    found = list(sentences_in(page))

    assert found == [
        "nothing moves",
        "It holds `a. B` here for an hour.",
        "See there.",
        "A second.",
        "A third!",
        "this | that",
        "`fail` holds.",
        "So it is.",
    ]
    assert [each for each in found if each not in promises_in(page)] == ["See there."]
    assert {"See"} <= ASKS


@pytest.mark.parametrize("page", PAGES)
def test_every_object_is_whole_and_loses_no_field(page: str) -> None:
    """By the schemas that the API server has; it prunes what it does not know."""
    found = list(manifests(page))

    assert found
    for each in found:
        kept = parse(MODELS[each["kind"]], each).as_object()
        assert list(lost(each, kept)) == []
        if each["kind"] in OURS:
            assert OURS[each["kind"]](each).fault == ""


def lost(given: Any, kept: Any, path: str = "") -> Iterator[str]:
    """The fields that are not in what was kept."""
    if isinstance(given, dict):
        for key, value in given.items():
            if not isinstance(kept, dict) or key not in kept:
                yield f"{path}.{key}"
            else:
                yield from lost(value, kept[key], f"{path}.{key}")
    elif isinstance(given, list):
        for place, value in enumerate(given):
            yield from lost(value, kept[place], f"{path}[{place}]")


def test_each_kind_of_ours_is_shown() -> None:
    assert {each["kind"] for page in PAGES for each in manifests(page)} >= set(OURS)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_can_be_typed(page: str) -> None:
    typed = list(commands(page))

    assert typed
    assert [line for line in typed if not line.startswith(("dovetail ", "kubectl "))] == []
    assert [fault for line in typed if (fault := fault_of(line))] == []
    assert [line for line in typed if re.search(r"(?:^|[ /])[A-Z]{3,}(?:$| )", line)] == [], "to be filled in"
    patches = [words[words.index("--patch") + 1] for line in typed if "--patch" in (words := shlex.split(line))]
    assert all(isinstance(json.loads(each), dict) for each in patches)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_stays_short(page: str) -> None:
    assert len(text_of(page).split()) <= MOST_WORDS
