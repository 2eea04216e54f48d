"""One grammar chooses nodes: for `nodes -l` and `replace -l`, for the filter of `top`, and on the web page."""

import json
from dataclasses import replace

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.answers.serving.page_files import files_of_page
from dovetail.answers.status.columns import FIELDS, page_columns
from dovetail.answers.status.terms import Term, meets, selector, sieve
from tests.cli.fleet import the_nodes

NODES = the_nodes(200).nodes
LABELLED = replace(NODES[0], labels={"team": "web", "example.com/tier": "Front", "type": "special"})


def count(text: str) -> int:
    return sum(1 for node in NODES if meets(node, sieve(text)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("pool=gpu", 50),
        ("pool!=gpu", 150),
        ("pool==gpu", 50),
        ("type~7G", 100),
        ("team=ml,pool=gpu", 0),
        ("team=web pool=gpu", 50),
        ("!team", 0),
        ("!no-such", 200),
        ("zone=eu-west-1", 0),
        ("zone~WEST-1a", 67),
    ],
)
def test_both_choose_the_same_by_terms(text: str, wanted: int) -> None:
    chosen = [node for node in NODES if meets(node, selector(text))]
    assert len(chosen) == count(text) == wanted


def test_a_label_goes_before_a_field_of_its_name() -> None:
    assert meets(LABELLED, selector("type=special")) and not meets(LABELLED, selector(f"type={LABELLED.type}"))
    assert meets(LABELLED, selector("example.com/tier=Front"))
    assert not meets(LABELLED, selector("example.com/tier=front")) and meets(LABELLED, selector("example.com/tier~fro"))


def test_a_word_alone_is_a_label_where_it_acts_and_a_part_of_the_line_in_a_filter() -> None:
    assert selector("team") == (Term("team", "any"),) and sieve("Team") == (Term("team", "word"),)
    assert meets(LABELLED, selector("team")) and not meets(LABELLED, selector("pdb"))
    assert meets(NODES[0], sieve("PDB")) and not meets(NODES[1], sieve("PDB"))


@pytest.mark.parametrize("text", ["team in (web)", "=web", "!team=web", "a=b=c", "!"])
def test_what_is_no_term_is_refused_where_it_acts_and_is_a_word_while_it_is_typed(text: str) -> None:
    with pytest.raises(CommandFailed, match="a term is KEY=VALUE, KEY!=VALUE, KEY~PART, KEY or !KEY"):
        selector(text)
    assert [term.sign for term in sieve(text)][-1] == "word"


def test_the_page_has_the_same_fields_and_signs() -> None:
    words, script = (str(files_of_page()[name][2]) for name in ("words.js", "nodes.js"))
    columns = json.loads(words.removeprefix("export default ").removesuffix(";\n"))["nodes"]
    assert columns == page_columns()
    assert columns["fields"] == {**dict(zip(FIELDS, FIELDS, strict=True)), "market": "capacityType"}
    assert "(!=|==?|~)" in script and '.replaceAll(" ", "-")' in script


def test_a_space_in_a_field_is_typed_as_a_hyphen() -> None:
    other = replace(NODES[1], state="not ours")
    assert meets(other, selector("state=not-ours")) and not meets(other, selector("state!=not-ours"))
    assert not meets(NODES[1], selector("state=not-ours")) and meets(other, sieve("state~ours"))
