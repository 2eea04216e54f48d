"""The API server's time is followed by its answers, whatever this machine's clock says."""

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.adapters.kube import server_clock
from dovetail.adapters.kube.server_clock import DOUBT_ANSWERS, DOUBT_SECONDS, ServerClock
from dovetail.ports.clock import UNFIT_SECONDS, unfit_clock

SERVER_STARTED = 1_800_000_000.0  # its clock when the machine's monotonic one was 0


class Machine:
    """A machine whose own clock is off by that much."""

    def __init__(self, off: float) -> None:
        self.uptime, self.off = 5000.0, off
        self.clock = ServerClock(lambda: SERVER_STARTED + self.uptime + self.off, lambda: self.uptime)

    def server(self) -> float:
        return SERVER_STARTED + self.uptime

    def ask(self, there: float = 0.01, back: float = 0.01, ahead: float = 0.0) -> None:
        """A question that takes so long there, and its answer so long back. `ahead`: of the server that answers, where
        its clock is wrong."""
        self.uptime += there
        header = float(int(self.server() + ahead))
        self.uptime += back
        self.clock.heard(header, there + back)


@given(
    off=st.floats(-1e6, 1e6),
    trips=st.lists(st.tuples(st.floats(0.0, 2.0), st.floats(0.0, 2.0), st.floats(0.0, 600.0)), min_size=1, max_size=20),
)
def test_after_an_answer_the_time_is_the_servers_within_a_second_and_the_trip(
    off: float, trips: list[tuple[float, float, float]]
) -> None:
    machine = Machine(off)
    for there, back, later in trips:
        machine.ask(there, back)
        assert abs(machine.clock.now() - machine.server()) <= 1.0 + there + back + 1e-5
        machine.uptime += later


@pytest.mark.parametrize("off", [0.0, 0.2, -0.2])
def test_a_right_clock_is_believed_as_it_is(off: float) -> None:
    machine = Machine(off)
    machine.uptime += 0.5  # in the middle of a second
    for _ in range(50):
        machine.ask()
        machine.uptime += 10.0
    assert machine.clock.now() == pytest.approx(machine.server() + off, abs=0.3)
    assert unfit_clock(machine.clock) == ""


def test_a_step_of_the_machines_clock_changes_no_deadline_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine(0.0)
    machine.ask()
    before = machine.clock.now() - machine.server()
    machine.off = 300.0  # somebody sets it
    assert machine.clock.now() - machine.server() == pytest.approx(before)
    assert unfit_clock(machine.clock) == "the clock of this worker is 300 s ahead of the API server's"

    with caplog.at_level(logging.INFO):
        for _ in range(3):
            machine.ask()
        machine.off = 0.0
        machine.ask()
    assert [record.getMessage() for record in caplog.records] == [
        "the clock of this worker is 300 s ahead of the API server's; set the wrong one right (NTP)",
        "the clock of this worker agrees with the API server's again",
    ]
    assert unfit_clock(machine.clock) == ""


@pytest.mark.parametrize(("off", "fit"), [(UNFIT_SECONDS - 2, True), (-UNFIT_SECONDS - 2, False)])
def test_a_worker_is_unfit_beyond_half_a_minute_either_way(off: float, fit: bool) -> None:
    machine = Machine(off)
    machine.ask()
    assert (unfit_clock(machine.clock) == "") is fit


@pytest.mark.parametrize("ahead", [7200.0, -7200.0, 20.0, -20.0])
def test_a_server_of_several_whose_clock_is_wrong_moves_nothing_and_is_named_once(
    ahead: float, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(0.0)
    machine.ask()
    with caplog.at_level(logging.WARNING):
        for turn in range(60):
            machine.uptime += 1.0
            machine.ask(ahead=ahead if turn % 3 else 0.0)
            assert abs(machine.clock.now() - machine.server()) < 2.0
    [said] = [record.getMessage() for record in caplog.records]
    assert "the clock of one of its servers is to be set right (NTP)" in said
    assert unfit_clock(machine.clock) == ""


@pytest.mark.parametrize(("answers", "apart"), [(DOUBT_ANSWERS - 1, DOUBT_SECONDS), (50, DOUBT_SECONDS / 100)])
def test_a_leap_counts_once_several_answers_over_some_seconds_agree_on_it(answers: int, apart: float) -> None:
    machine = Machine(0.0)
    machine.ask()
    machine.uptime += 60.0
    for _ in range(answers):
        machine.ask(ahead=600.0)
        machine.uptime += apart
        assert unfit_clock(machine.clock) == ""
    machine.uptime += DOUBT_SECONDS
    machine.ask(ahead=600.0)
    assert abs(machine.clock.now() - machine.server() - 600.0) < 2.0
    assert unfit_clock(machine.clock)
    machine.ask()
    assert unfit_clock(machine.clock) == "", "this machine's clock says so too"


@pytest.mark.parametrize("slept", [600.0, -600.0])
def test_a_leap_that_this_machine_s_clock_has_made_too_counts_at_once(slept: float) -> None:
    """A machine that was asleep: its monotonic clock stood still."""
    machine = Machine(0.0)
    machine.ask()
    machine.off = slept
    assert unfit_clock(machine.clock)
    machine.ask(ahead=slept)
    assert unfit_clock(machine.clock) == ""
    assert abs(machine.clock.now() - machine.server() - slept) < 2.0


async def test_in_doubt_the_server_is_asked_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, pauses = Machine(0.0), list[float]()
    machine.ask()

    async def ask() -> None:
        machine.ask(ahead=600.0)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        machine.uptime += seconds
        if unfit_clock(machine.clock):
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await machine.clock.keep(ask)
    assert len(pauses) > DOUBT_ANSWERS - 1 and sum(pauses[1:]) < 3 * DOUBT_SECONDS + server_clock.ASK_SECONDS
