"""How long a decision may take, and who is told what it set aside."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dovetail.activities.shared.looks.decision_thread import DecisionThread, rest_after
from dovetail.activities.upkeep.faults import FaultUpkeep
from dovetail.model.objects.unreadable import Unreadable
from dovetail.notices.notice import Notice
from worlds.disruption import a_world


@dataclass
class Clock:
    """A clock that a decision moves itself."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_decision_is_asked_to_stop_when_its_time_is_up() -> None:
    clock = Clock()
    thread = DecisionThread(10.0, clock)

    def decide(should_stop: Callable[[], bool]) -> list[bool]:
        asked = []
        for moment in (0.0, 9.9, 10.0):
            clock.now = began + moment
            asked.append(should_stop())
        return asked

    began = clock.now
    assert await thread.run(decide) == [False, False, True]
    began = clock.now  # the next decision has all of its time again
    assert await thread.run(decide) == [False, False, True]
    thread.close()


def test_the_rest_after_a_decision_is_nine_times_as_long_while_it_is_short_and_five_times_after_that() -> None:
    assert [rest_after(took) for took in (0.0, 0.125, 0.5, 1.0, 10.0)] == [0.0, 1.125, 4.5, 5.0, 50.0]


def test_the_rest_grows_with_each_decision_in_vain_up_to_five_seconds() -> None:
    assert [rest_after(0.01, in_vain) for in_vain in (1, 2, 5, 100)] == pytest.approx([0.09, 0.18, 0.45, 0.45])
    assert [rest_after(0.25, in_vain) for in_vain in (1, 2, 3)] == [2.25, 4.5, 5.0]
    assert rest_after(10.0, 100) == 50.0


@dataclass
class Notices:
    """The port."""

    published: list[Notice] = field(default_factory=list)

    async def publish(self, *notices: Notice) -> None:
        self.published += notices


async def test_an_object_that_cannot_be_read_gets_one_notice_for_each_thing_that_is_wrong() -> None:
    notices: Any = Notices()
    upkeep = FaultUpkeep(notices)
    slip = Unreadable(kind="NodePool", name="slip", field="spec.disruption", message="no duration", uid="u")

    for judging in ((slip,), (slip,), (replace(slip, message="no number"),), (), (slip,)):
        for write in (await upkeep.look(replace(a_world([]), unreadable=judging))).due:
            await write()

    told = [(n.kind, n.name, n.uid, n.reason, n.message.rpartition(": ")[2]) for n in notices.published]
    said = ["no duration", "no number", "no duration"]
    assert told == [("NodePool", "slip", "u", "CannotBeRead", text) for text in said]
