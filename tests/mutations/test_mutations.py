"""The list of mutations can be played: every rule has its row, every file is there, and what is spoiled is found."""

import pytest

from tests.mutations.rules import Mutation, StaleMutation, named_tests, read_mutations, select, spoiled
from tests.test_rules import ROOT

ONE = Mutation(rule="BEH-2", what="the sign is wrong", file="x.py", before="a + b", after="a - b")


def test_every_mutation_breaks_a_promise_in_a_file_that_is_there() -> None:
    mutations = read_mutations()

    assert [m for m in mutations if not named_tests(m.rule)] == []
    assert [m for m in mutations if not (ROOT / m.file).is_file() or m.before == m.after] == []


def test_a_mutation_changes_the_one_place_that_it_names() -> None:
    assert spoiled("return a + b", ONE) == "return a - b"


@pytest.mark.parametrize("text", ["return b + a", "return a + b or a + b"])
def test_a_mutation_that_no_longer_fits_is_refused(text: str) -> None:
    with pytest.raises(StaleMutation, match=r"times in x\.py"):
        spoiled(text, ONE)


def test_mutations_are_chosen_by_rule_and_by_prefix() -> None:
    mutations = read_mutations()

    assert select(mutations, []) == mutations
    assert {m.rule for m in select(mutations, ["BEH-2"])} == {"BEH-2"}
    assert {m.rule.partition("-")[0] for m in select(mutations, ["NPL", "BEH-2"])} == {"NPL", "BEH"}
