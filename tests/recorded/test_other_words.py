"""The engines answer by what an input means, however it is said: recorded inputs in other words, with their answers."""

import copy
from functools import cache
from random import Random
from typing import Any

import pytest

from acceptance.vectors.__main__ import compare, known_kinds, name_of, read_cases
from tests.recorded import RESULTS
from tests.recorded.rewording import REWORDINGS, Reworded

FILES = ("placement", "disruption-decisions", "disruption-decisions-random")
EVERY = 9  # of so many cases one is reworded: another one by most rewordings


@cache
def cases(name: str) -> list[dict[str, Any]]:
    return list(read_cases(RESULTS / f"{name}.jsonl.gz"))


def chosen(name: str, first: int) -> list[tuple[int, dict[str, Any]]]:
    """With their numbers; copies, to be changed."""
    return [(number + 1, copy.deepcopy(cases(name)[number])) for number in range(first, len(cases(name)), EVERY)]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("reworded", REWORDINGS, ids=lambda reworded: str(reworded.__name__))
def test_an_input_in_other_words_has_the_same_answer(name: str, reworded: Reworded) -> None:
    random, found = Random(name), []
    for number, case in chosen(name, REWORDINGS.index(reworded) % EVERY):
        reworded(random, case["input"])
        difference = compare(known_kinds()[name], case)
        if difference is not None:
            found.append(f"{name_of(case, number)}: {difference}")

    assert found == []


@pytest.mark.parametrize("reworded", REWORDINGS, ids=lambda reworded: str(reworded.__name__))
def test_a_rewording_changes_most_inputs_that_it_can_change(reworded: Reworded) -> None:
    random, changed = Random(1), 0
    for _, case in chosen("placement", 0):
        before = copy.deepcopy(case["input"])
        reworded(random, case["input"])
        changed += case["input"] != before

    assert changed >= 3
