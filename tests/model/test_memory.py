"""What is remembered on objects: readable, bounded, and read whatever somebody wrote there."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.model import before_0_2, names
from dovetail.model.own.drain_rules import Level
from dovetail.model.pools import NodePool
from dovetail.model.values.memory import LARGEST, Memory, mark
from dovetail.rules.brake.unused_launches import remembered_launches, unused_launch, with_unused_launch
from tests.placement.builders import a_general_pool, a_snapshot, a_waiting_pod, placed
from worlds.disruption import NOW


@dataclass(frozen=True)
class Inner:
    at: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Noted:
    what: str
    number: int = 1
    at: float | None = None
    inner: Inner | None = None
    several: tuple[Inner, ...] = ()
    sure: bool = False
    levels: frozenset[Level] = frozenset()


MEMORY = Memory("dovetail.sh/noted", Noted, lambda _: ())

moments = st.integers(0, 253402300799).map(float)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
inners = st.builds(Inner, at=moments, words=st.lists(texts, max_size=3).map(tuple))
noted = st.builds(
    Noted,
    what=texts,
    number=st.integers(0, 2**31 - 1),
    at=st.none() | moments,
    inner=st.none() | inners,
    several=st.lists(inners, max_size=3).map(tuple),
    sure=st.booleans(),
    levels=st.frozensets(st.sampled_from(Level)),
)


NO_NUMBERS: list[Any] = [1e999, float("nan"), 1.5, -1, 2**31, True, "1", None]
NO_MOMENTS: list[Any] = [1e999, 5, "yesterday", "2026-01-01", None, []]
NO_TEXTS: list[Any] = ["\ud800", 5, None, []]
NO_INNER: list[Any] = [{}, [], "x", {"at": 5}, {"at": "2026-01-01T00:00:00Z", "words": [1]}]


def with_text(text: str, name: str = MEMORY.name) -> NodePool:
    return replace(a_general_pool(), annotations={name: text})


def entries(*found: object, version: object = 1) -> str:
    return json.dumps({"v": version, "entries": found})


@given(st.lists(noted, max_size=5))
def test_what_is_remembered_comes_back_as_it_was_written(given_: list[Noted]) -> None:
    pool = MEMORY.write(a_general_pool(), given_)

    assert MEMORY.read(pool) == tuple(given_)
    assert (MEMORY.name in pool.annotations) is bool(given_)


def test_a_person_can_read_it() -> None:
    pool = MEMORY.write(
        a_general_pool(), [Noted("Drifted", 3, 0, Inner(0.0, ("a",)), sure=True, levels=frozenset(Level))]
    )

    assert pool.annotations[MEMORY.name] == (
        '{"v":1,"entries":[{"what":"Drifted","number":3,"at":"1970-01-01T00:00:00Z",'
        '"inner":{"at":"1970-01-01T00:00:00Z","words":["a"]},"sure":true,"levels":["Ask","Force","Notify"]}]}'
    )


@pytest.mark.parametrize(
    "spoilt",
    [
        *({"what": "x", "number": number} for number in NO_NUMBERS),
        *({"what": "x", "at": at} for at in NO_MOMENTS),
        *({"what": what} for what in NO_TEXTS),
        *({"what": "x", "inner": inner} for inner in NO_INNER),
        *({"what": "x", "sure": sure} for sure in (1, "true", None)),
        *({"what": "x", "levels": levels} for levels in ("Ask", ["Shout"], [["Ask"]], [1])),
        {"number": 1},
        [],
        "x",
        None,
    ],
)
def test_an_entry_that_is_none_is_ignored_and_those_beside_it_are_not(spoilt: Any) -> None:
    assert MEMORY.read(with_text(entries({"what": "good"}, spoilt, {"what": "too", "later": 1}))) == (
        Noted("good"),
        Noted("too"),
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "{}", "null", "[]", "{" * 99_999),
        *('{"v":1}', '{"v":1,"entries":{}}', '{"v":1,"entries":[{"what":"x"}]'),
        '{"v":1,"entries":' + "[" * 60_000,
        entries({"what": "x"}, version=2),
        entries({"what": "x"}, version=None),
        '{"v":1,"entries":[{"what":"x","number":' + "9" * 9_999 + "}]}",
        entries({"what": "x"}) + " " * LARGEST,
    ],
)
def test_a_text_that_is_none_is_ignored(text: str) -> None:
    assert MEMORY.read(with_text(text)) == ()


def test_what_grows_too_large_forgets_its_oldest() -> None:
    pool = MEMORY.write(a_general_pool(), [Noted(f"{number}" * 100) for number in range(1000)])

    found = MEMORY.read(pool)
    assert len(pool.annotations[MEMORY.name]) <= LARGEST
    assert 0 < len(found) < 1000 and found[-1] == Noted("999" * 100)


def test_two_memories_of_one_annotation_leave_each_other_as_they_are_whatever_somebody_has_made_of_one() -> None:
    other = Memory(MEMORY.name, Noted, part="more")
    both = other.write(MEMORY.write(a_general_pool(), [Noted("a")]), [Noted("b")])

    assert (MEMORY.read(both), other.read(both)) == ((Noted("a"),), (Noted("b"),))
    assert other.read(MEMORY.write(both, [])) == (Noted("b"),)
    assert other.write(MEMORY.write(both, []), []).annotations == a_general_pool().annotations
    for spoilt in ('{"v":1,"more":' + "[" * 900 + "]" * 900 + "}", '{"v":1,"more":"' + "x" * (LARGEST - 99) + '"}'):
        again = MEMORY.write(with_text(spoilt), [Noted(f"{number}" * 40) for number in range(9)])
        assert len(again.annotations[MEMORY.name]) <= LARGEST
        assert MEMORY.read(other.write(with_text(spoilt), [Noted("c")])) == ()
        assert other.read(other.write(with_text(spoilt), [Noted("c")])) == (Noted("c"),)


def test_nobody_finds_another_text_with_the_same_mark() -> None:
    assert len(mark("a")) == 32 and mark("a") != mark("b")


def test_launches_in_vain_that_0_1_0_remembered_still_count_against_their_pods() -> None:
    pod = a_waiting_pod("web")
    crc = before_0_2.marks(pod.uid)[1]
    text = ",".join(f"c{number}@{NOW - 60:.0f}={crc}.0000beef" for number in range(3))
    pool = with_text(text + ",c9@yesterday=,@1=,c9", names.UNUSED_LAUNCHES)

    assert [each.claim for each in remembered_launches(pool, NOW)] == ["c0", "c1", "c2"]
    assert placed(a_snapshot([pod], pools=[pool])).new == ()
    assert placed(a_snapshot([a_waiting_pod("other")], pools=[pool])).new != ()
    more = with_unused_launch(pool, unused_launch("c3", NOW, ["u"]), NOW)
    assert more.annotations[names.UNUSED_LAUNCHES].startswith('{"v":1')
    assert [each.claim for each in remembered_launches(more, NOW)] == ["c0", "c1", "c2", "c3"]
