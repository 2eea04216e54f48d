"""A cloud's types are compiled once, for as many snapshots as list the same objects."""

from dataclasses import replace

import pytest

from dovetail.placement.facts import type_table
from dovetail.placement.facts.type_table import Compilers, TypeCompiler
from tests.placement.builders import TYPES, a_snapshot, a_type, a_waiting_pod, an_index, placed


@pytest.fixture(autouse=True)
def _a_compiler_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compilers, "_current", TypeCompiler())


def test_two_snapshots_of_one_list_share_what_was_compiled() -> None:
    """PLF-22: nothing is worked out again that has not changed."""
    first, second = (an_index(a_snapshot([a_waiting_pod(name)])) for name in "pq")

    (one,), (other,) = first.templates, second.templates

    assert [a is b for a, b in zip(one.table.types, other.table.types, strict=True)] == [True] * len(TYPES)


def test_a_type_that_has_changed_is_compiled_anew() -> None:
    """PLC-115: a changed price must not be answered from what was compiled before."""
    small = a_type("small", "2", 0.1)
    changed = replace(small, offerings=tuple(replace(offer, available=False) for offer in small.offerings))

    before = placed(a_snapshot([a_waiting_pod("p")], types=(small,)))
    after = placed(a_snapshot([a_waiting_pod("p")], types=(changed,)))

    assert (len(before.new), len(after.new)) == (1, 0)


def test_after_too_many_types_the_next_snapshot_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices change every few minutes, and each change is new objects."""
    monkeypatch.setattr(type_table, "_MOST_KEPT", len(TYPES))
    compiler = Compilers.current()

    an_index(a_snapshot(types=TYPES))
    assert Compilers.current() is compiler
    an_index(a_snapshot(types=(a_type("other", "2", 0.1),)))

    assert Compilers.current() is not compiler
    assert len(placed(a_snapshot([a_waiting_pod("p")])).new) == 1
