"""The watch over budgets in random days sees what it is there for."""

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.cluster.days.budget_watch import WINDOW_SECONDS, BudgetWatch


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def claims(marked: int, nodes: int = 4) -> list[Json]:
    return [
        {
            "metadata": {
                "name": f"c{number}",
                "uid": f"u{number}",
                "labels": {names.NODE_POOL: "left"},
                "annotations": {names.OWNER: "x"} if number < marked else {},
            }
        }
        for number in range(nodes)
    ]


def test_a_new_mark_beyond_the_budget_is_seen_and_one_within_it_is_not() -> None:
    watch = BudgetWatch(Clock())
    watch.allow("left", "50%")
    watch.look(claims(0))
    watch.look(claims(2))
    assert watch.exceeded == []

    watch.look(claims(3))
    assert len(watch.exceeded) == 1 and watch.exceeded[0].startswith("left lets 2 go, and 3 are marked")


def test_marks_of_a_larger_budget_may_stay_and_none_is_added() -> None:
    clock = Clock()
    watch = BudgetWatch(clock)
    watch.allow("left", "3")
    watch.look(claims(0))
    watch.look(claims(2))
    watch.allow("left", "1")
    clock.now += WINDOW_SECONDS + 1
    watch.look(claims(2))
    assert watch.exceeded == []

    watch.allow("left", "1")
    watch.look(claims(3))  # the larger budget was replaced before the window began
    assert len(watch.exceeded) == 1
