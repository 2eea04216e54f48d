"""Whose pods something was saved for: `dovetail savings --by namespace`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload

from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.answers.failures import NotUnderstood
from dovetail.answers.questions import record
from dovetail.answers.questions.asking import Asked, Source
from dovetail.answers.record.entries import Entry
from dovetail.answers.record.kept import Archive
from dovetail.answers.record.savings import NAMESPACE, SavingsAnswer, savings_markdown, savings_text
from dovetail.answers.record.whose import UNKNOWN_NOTE, by_namespace
from dovetail.messages.plans import NOBODY, OTHERS, DisruptionCommand, Share
from dovetail.settings.settings import read_settings
from dovetail.workflows.converter import DATA_CONVERTER
from tests.cli.test_ledger import HOUR, a_launch, a_move, an_end, found

CONVERTER: Final = DATA_CONVERTER.payload_converter
NIGHT: Final = 10 * HOUR + 60  # ten hours after the instance of a node has ended that left at 0


def shares(**of: float) -> tuple[Share, ...]:
    return tuple(Share(namespace=namespace, share=share) for namespace, share in of.items())


def parts(answer: SavingsAnswer) -> dict[str, float]:
    return {each.label: round(each.saved, 6) for each in answer.namespaces}


def test_a_move_is_divided_by_the_shares_of_its_plan() -> None:
    one = found(NIGHT, a_move(0.0, "web-1", pods=4, shares=shares(shop=0.75, search=0.25)), an_end(0.0, "web-1"))

    assert parts(one) == {"search": 0.5, "shop": 1.5}
    assert {each.namespace: each.predicted for each in one.namespaces} == pytest.approx({"search": 0.05, "shop": 0.15})


def test_what_came_back_is_set_against_those_whose_node_had_gone() -> None:
    shop = a_move(0.0, "web-1", pods=1, shares=shares(shop=1.0))
    search = a_move(60.0, "web-2", pods=1, shares=shares(search=1.0))
    ends = an_end(0.0, "web-1"), an_end(60.0, "web-2")

    one = found(NIGHT, shop, search, *ends, a_launch(120.0, "web-3"))

    assert parts(one) == {"search": 0.0, "shop": 2.0}


def test_an_empty_node_is_nobodys_also_in_older_records_and_of_older_moves_nothing_is_known() -> None:
    empty, older = a_move(0.0, "web-1", pods=0), a_move(0.0, "web-2", pods=3)
    many = a_move(0.0, "web-3", pods=9, shares=(*shares(shop=0.5), Share(namespace=OTHERS, share=0.5)))
    mixed = a_move(0.0, "web-4", pods=1, shares=(*shares(shop=0.5), Share(namespace=NOBODY, share=0.5)))
    ends = [an_end(0.0, f"web-{n}") for n in range(1, 5)]

    one = found(NIGHT, empty, older, many, mixed, *ends)

    assert parts(one) == {"shop": 2.0, "other namespaces": 1.0, "nobody's: it was empty": 3.0, "not known": 2.0}
    assert [each.whose for each in one.namespaces] == ["namespace", "others", "nobody", "unknown"]
    assert UNKNOWN_NOTE in savings_text(one, by=NAMESPACE) and UNKNOWN_NOTE not in savings_text(one)


def test_a_move_that_was_called_off_has_cost_those_whose_node_it_was() -> None:
    off = a_move(0.0, "web-1", "m4", "web-2", pods=1, shares=shares(shop=1.0), reason="Underutilized", saved=0.1)
    given_back = an_end(540.0, "web-2", "m2")

    one = found(HOUR, replace(off, outcome="cancelled"), a_launch(0.0, "web-2", "m2"), given_back)

    [shop] = one.namespaces
    assert (shop.namespace, shop.predicted, round(shop.saved, 6)) == ("shop", 0.0, round(-0.1 * 600 / HOUR, 6))


NAMES: Final = st.sampled_from(["shop", "search", "models", OTHERS, NOBODY])
DIVIDED: Final = st.dictionaries(NAMES, st.floats(0.0001, 1.0), max_size=5)
MOVES: Final = st.lists(
    st.tuples(
        st.floats(0.0, 50 * HOUR),
        st.sampled_from(["m2", "m4", "m8"]),
        st.sampled_from(["done", "cancelled", "running"]),
        st.integers(0, 20),
        DIVIDED,
    ),
    max_size=12,
)


@settings(deadline=None)
@given(moves=MOVES, launches=st.lists(st.tuples(st.floats(0.0, 60 * HOUR), st.sampled_from(["m2", "m8"])), max_size=8))
def test_the_parts_are_the_sum(
    moves: list[tuple[float, str, str, int, Mapping[str, float]]], launches: list[tuple[float, str]]
) -> None:
    entries = list[Entry]()
    for number, (at, kind, outcome, pods, divided) in enumerate(moves):
        move = a_move(at, f"web-{number}", kind, pods=pods, shares=shares(**divided))
        entries += [replace(move, outcome=outcome), an_end(at, f"web-{number}", kind)]
    entries += [a_launch(at, f"new-{number}", kind) for number, (at, kind) in enumerate(launches)]

    one = found(72 * HOUR, *entries)

    assert sum(each.saved for each in one.namespaces) == pytest.approx(one.total.saved, abs=1e-9)
    assert sum(each.predicted for each in one.namespaces) == pytest.approx(one.total.predicted, abs=1e-9)
    assert len({(each.whose, each.namespace) for each in one.namespaces}) == len(one.namespaces)


def test_what_neither_saved_nor_promised_anything_is_no_row() -> None:
    assert by_namespace([(a_move(0.0, "web-1", saved=0.0, pods=1, shares=shares(shop=1.0)), 0.0)]) == ()


def test_it_is_a_table_of_its_own_and_the_same_sum() -> None:
    one = found(NIGHT, a_move(0.0, "web-1", pods=4, shares=shares(shop=0.75, search=0.25)), an_end(0.0, "web-1"))

    head, columns, *rows = savings_text(one, by=NAMESPACE).splitlines()

    assert head.endswith("against a time without moves") and columns.split()[0] == "NAMESPACE"
    assert [row.split() for row in rows] == [
        ["search", "0.0500", "0.50"],
        ["shop", "0.1500", "1.50"],
        ["all", "0.2000", "2.00"],
    ]
    assert "| shop | 0.1500 | 1.50 |" in savings_markdown(one, by=NAMESPACE)
    assert savings_text(one, by="pool") == savings_text(one)


async def test_the_kept_record_has_it_and_one_without_it_is_read(tmp_path: Path) -> None:
    archive = Archive(FolderObjects(tmp_path), "demo")
    known = a_move(60.0, "web-1", pods=4, shares=shares(shop=0.75, search=0.25))
    await archive.put(0, [known, a_move(60.0, "web-2", pods=4)])

    read = (await archive.read([0])).entries

    assert [each.shares for each in read] == [known.shares, ()]
    assert read[0] == known


def test_a_plan_of_a_version_before_has_no_shares_and_what_later_ones_add_is_passed_over() -> None:
    """The input of a workflow, as it crosses Temporal between versions."""
    command = DisruptionCommand(reason="Drifted", method="drift", targets=(), shares=shares(shop=1.0))
    [payload] = CONVERTER.to_payloads([command])
    written = orjson.loads(payload.data)
    before, after = {key: value for key, value in written.items() if key != "shares"}, {**written, "later": 1}

    def read(fields: dict[str, Any]) -> DisruptionCommand:
        as_written = Payload(metadata=payload.metadata, data=orjson.dumps(fields))
        return cast(DisruptionCommand, CONVERTER.from_payloads([as_written], [DisruptionCommand])[0])

    assert (read(before), read(after)) == (replace(command, shares=()), command)


async def test_what_it_cannot_be_added_up_by_is_named() -> None:
    source: Any = _Source()

    with pytest.raises(NotUnderstood, match="by: 'team' is not known; it is pool or namespace"):
        await record.savings(cast(Source, source), Asked(words=(("by", "team"),)))


class _Source:
    """What is asked before anything is read."""

    settings = read_settings({"CLUSTER_NAME": "demo", "CLUSTER": "embedded"})
