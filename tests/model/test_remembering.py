"""Memories of texts are bounded by bytes, whatever the texts are."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dovetail.model.values.remembering import LARGEST_KEPT, Recent, Shared, remembered, size_of


class Thing:
    """Something that can be let go of."""


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sizes=st.lists(st.integers(0, 2 * LARGEST_KEPT), max_size=60))
def test_what_is_kept_is_never_more_than_the_bound(sizes: list[int]) -> None:
    bound = 100_000
    recent: Recent[str, int] = Recent(bound)
    keys = [f"{number}{'x' * size}" for number, size in enumerate(sizes)]

    for key in keys:
        recent.put(key, 1)
        kept = [key for key in keys if recent.get(key, 0)]
        assert sum(size_of(key) for key in kept) <= bound
        assert all(len(key) <= LARGEST_KEPT for key in kept)


def test_what_is_asked_for_again_is_kept_and_the_rest_is_forgotten() -> None:
    asked: list[str] = []

    @remembered(20_000)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    for number in range(1000):
        assert length("often") == 5
        assert length(f"once {number}") == len(f"once {number}")

    assert asked.count("often") == 1
    assert length("once 0") == 6
    assert asked.count("once 0") == 2


def test_a_large_text_is_answered_and_not_kept() -> None:
    asked: list[int] = []

    @remembered(10 * LARGEST_KEPT)
    def length(text: str) -> int:
        asked.append(1)
        return len(text)

    assert [length("x" * LARGEST_KEPT) for _ in range(3)] == [LARGEST_KEPT] * 3
    assert len(asked) == 3


def test_an_answer_of_none_is_remembered_too() -> None:
    asked: list[str] = []

    @remembered(10_000)
    def nothing(text: str) -> None:
        asked.append(text)

    nothing("a")
    nothing("a")

    assert asked == ["a"]


def test_equal_things_are_one_while_anybody_has_them() -> None:
    shared: Shared[str, Thing] = Shared()
    first = shared.one("a", Thing)

    assert shared.one("a", Thing) is first
    assert shared.one("b", Thing) is not first
    assert len(shared) == 1
    del first
    assert len(shared) == 0
