"""What an idle wait tells of those who wait for it: soon, only what is new, and nothing where it answers at once."""

import asyncio
from typing import Any

import pytest

from dovetail.activities.shared.every_step import heartbeats
from dovetail.activities.shared.waits.sight import Reported, Sight, reported_in
from dovetail.workflows.options import planning
from tests.activities.test_heartbeats import beats_of

IDLE = {"heartbeat_timeout": planning("c")["heartbeat_timeout"], "activity_type": "await_of_sight"}
ONE, BOTH = frozenset({"a"}), frozenset({"a", "b"})


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the real pauses."""
    monkeypatch.setattr(heartbeats, "SAID_AFTER", 0.15)
    monkeypatch.setattr(heartbeats, "AT_WORK_SECONDS", 0.2)


async def told_by(wait: Any) -> list[Reported]:
    return [reported_in(details) for details in await beats_of(wait, 60, **IDLE)]


async def test_a_wait_that_thinks_says_so_again_and_again_and_then_that_it_has_answered() -> None:
    async def waits() -> None:
        sight = Sight(("Pod",))
        sight.sees(ONE, {"Pod": 7})
        await asyncio.sleep(1.0)
        sight.answered()
        await asyncio.sleep(1.0)

    reported = await told_by(waits)

    assert len(reported) > 2
    assert set(reported[:-1]) == {Reported(7, at_work=True)}
    assert reported[-1] == Reported(7, at_work=False)


async def test_what_was_told_is_not_told_again_and_what_is_new_is() -> None:
    async def waits() -> None:
        sight = Sight(("NodeClaim", "Node"))
        for seen, version in ((ONE, 7), (ONE, 8), (BOTH, 9), (ONE, 10)):
            sight.sees(seen, {"NodeClaim": version, "Node": 3})
            sight.answered()
            await asyncio.sleep(0.5)

    assert await told_by(waits) == [Reported(7, at_work=False), Reported(9, at_work=False)]


async def test_nothing_is_said_at_rest_nor_where_the_answer_comes_at_once() -> None:
    async def waits() -> None:
        sight = Sight(("Pod",))
        for number in range(5):
            sight.sees(frozenset(), {"Pod": number})
            sight.works()
            sight.rests()
            await asyncio.sleep(0.1)
        sight.sees(ONE, {"Pod": 9})

    assert await told_by(waits) == []


async def test_a_look_that_takes_long_says_so_although_nobody_is_new() -> None:
    """Otherwise one who comes meanwhile would be taken for one whom nobody sees."""

    async def waits() -> None:
        sight = Sight(("Pod",))
        sight.works()
        await asyncio.sleep(0.5)
        sight.rests()
        await asyncio.sleep(0.5)

    reported = await told_by(waits)

    assert (reported[0], reported[-1]) == (Reported(0, at_work=True), Reported(0, at_work=False))


@pytest.mark.parametrize("details", [[], ["text"], ["text", ["part"]], ["text", [], None], ["text", [], ["7", 1]]])
def test_a_worker_of_another_version_tells_nothing(details: list[Any]) -> None:
    assert reported_in(details) == Reported()
    assert reported_in(["text", [], [7, True]]) == Reported(7, at_work=True)
