"""Windows by the wall clock: at every change of daylight saving, at the edges of days, against a scan by minutes."""

import random
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from dovetail.model.own.openings import Dates, Timetable, Window, next_change, offset, wall_clock
from dovetail.model.own.policies import Policy, next_opening
from worlds.time_rules import ZONES, a_moment, a_window

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3600


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        (Window(start=22 * HOUR, end=5 * HOUR), ("2026-06-01T20:00Z", "2026-06-02T02:59Z"), ("2026-06-02T03:00Z",)),
        # The day is the one on which the window begins: Monday night ends on Tuesday morning.
        (
            Window(start=22 * HOUR, end=5 * HOUR, days=frozenset({0})),
            ("2026-06-01T20:00Z", "2026-06-02T02:00Z"),
            ("2026-06-01T02:00Z", "2026-06-02T20:00Z"),
        ),
        (Window(days=frozenset({5, 6})), ("2026-06-05T22:00Z", "2026-06-07T21:59Z"), ("2026-06-07T22:00Z",)),
        (
            Window(dates=(Dates((2026, 12, 24), (2027, 1, 2)),)),
            ("2026-12-23T23:00Z", "2027-01-02T22:59Z"),
            ("2027-01-02T23:00Z", "2027-12-24T12:00Z"),
        ),
        (Window(dates=(Dates((5, 1), (5, 1)),)), ("2026-05-01T12:00Z", "2031-05-01T12:00Z"), ("2026-05-02T12:00Z",)),
        (Window(dates=(Dates((12, 24), (1, 2)),)), ("2026-12-31T12:00Z", "2027-01-01T12:00Z"), ("2027-01-03T12:00Z",)),
        (Window(), ("2026-01-01T00:00Z", "2026-06-01T12:00Z"), ()),
        # 02:30 does not exist on the last Sunday of March, and comes twice on the last of October.
        (
            Window(start=2 * HOUR, end=3 * HOUR),
            ("2026-10-25T00:00Z", "2026-10-25T01:59Z"),
            ("2026-03-29T00:59Z", "2026-03-29T01:00Z", "2026-10-25T02:00Z"),
        ),
    ],
)
def test_a_window_covers_what_its_words_say(window: Window, inside: tuple[str, ...], outside: tuple[str, ...]) -> None:
    assert [text for text in inside if not window.covers(wall_clock(at(text), BERLIN))] == []
    assert [text for text in outside if window.covers(wall_clock(at(text), BERLIN))] == []


@pytest.mark.parametrize("year", range(2020, 2036))
def test_a_night_is_an_hour_shorter_in_march_and_an_hour_longer_in_october(year: int) -> None:
    """The European Union's rule, on every change from 2020 to 2035."""
    night = Window(start=22 * HOUR, end=5 * HOUR)
    for month, hours in ((3, 6), (10, 8)):
        last = date(year, month, 31)
        sunday = last - timedelta(days=(last.weekday() + 1) % 7)
        begin = datetime(sunday.year, sunday.month, sunday.day, 22, tzinfo=BERLIN) - timedelta(days=1)
        change = datetime(sunday.year, sunday.month, sunday.day, 1, tzinfo=UTC).timestamp()
        found = changes(night, BERLIN, begin.timestamp() - 1, begin.timestamp() + 10 * HOUR)

        assert found == [begin.timestamp(), begin.timestamp() + hours * HOUR]
        assert offset(change, BERLIN) - offset(change - 1, BERLIN) == (HOUR if month == 3 else -HOUR)


def changes(window: Window, zone: ZoneInfo, after: float, until: float) -> list[float]:
    """When the window begins and ends, one after the other."""
    found, moment = [], next_change([Timetable(zone, (), (window,))], after)
    while moment is not None and moment < until:
        found.append(moment)
        moment = next_change([Timetable(zone, (), (window,))], moment)
    return found


def by_minutes(window: Window, zone: ZoneInfo, after: float, until: float) -> list[float]:
    moments = range(int(after // 60) * 60, int(until), 60)
    states = [(float(m), window.covers(wall_clock(m, zone))) for m in moments]
    return [this[0] for before, this in pairwise(states) if before[1] != this[1]]


@pytest.mark.parametrize("seed", [*range(12), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(12, 400)]])
def test_every_change_that_a_scan_by_minutes_finds_is_named(seed: int) -> None:
    """Over two weeks, in zones with all kinds of daylight saving."""
    chosen = random.Random(seed)
    zone, window = ZoneInfo(chosen.choice(ZONES)), a_window(chosen)
    after = float(int(a_moment(chosen) // 60) * 60)
    until = after + 14 * 86_400

    assert changes(window, zone, after, until) == by_minutes(window, zone, after, until)


def by_edges(policies: list[Policy], now: float) -> float | None:
    """When they next open or close together: each moment of 400 days at which some window may begin or end is tried."""
    zones = [ZoneInfo(policy.zone) for policy in policies]
    times = {
        second for policy in policies for each in (*policy.allow, *policy.deny) for second in (each.start, each.end)
    }
    known = any(policy.why_closed("Drifted", now) for policy in policies)
    for hour in range(int(now // HOUR) * HOUR, int(now) + 400 * 24 * HOUR, HOUR // 2):
        walls = {wall_clock(hour, zone) for zone in zones}
        found = {hour + (second - wall) % (24 * HOUR) for second in {0, *times} for wall in walls}
        for moment in sorted({hour, *(each for each in found if each < hour + HOUR // 2)}):
            if moment > now and any(policy.why_closed("Drifted", moment) for policy in policies) != known:
                return float(moment)
    return None


@pytest.mark.parametrize(
    "seed", [*range(20), 60, 241, *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(2000, 2400)]]
)
def test_policies_open_when_a_reader_of_every_edge_says_so(seed: int) -> None:
    """Of up to three policies, each in a zone of its own, with dates that are over, that come once, or every year."""
    chosen = random.Random(seed)
    policies = [
        Policy(
            name=str(number),
            zone=chosen.choice(ZONES),
            allow=tuple(a_window(chosen) for _ in range(chosen.randrange(4))),
            deny=tuple(a_window(chosen) for _ in range(chosen.randrange(3))),
        )
        for number in range(chosen.randrange(1, 4))
    ]
    now = a_moment(chosen)
    expected = by_edges(policies, now)

    assert next_opening(tuple(policies), "Drifted", now) == expected


@pytest.mark.parametrize("day", ["02-29", "02-28/02-29", "02-29/03-01", "12-31/01-01", "02-29/02-28"])
@pytest.mark.parametrize("now", ["2026-06-01T00:00Z", "2027-06-01T00:00Z", "2028-01-01T00:00Z"])
def test_a_day_that_is_not_in_every_year_is_foreseen_as_it_is_judged(day: str, now: str) -> None:
    first, _, last = day.partition("/")
    dates = Dates(*(tuple(map(int, text.split("-"))) for text in (first, last or first)))
    policy = Policy(name="p", deny=(Window(dates=(dates,)),))

    assert next_opening((policy,), "Drifted", at(now)) == by_edges([policy], at(now))


def test_a_change_beyond_400_days_is_not_looked_for() -> None:
    never = Window(dates=(Dates((2001, 1, 1), (2001, 1, 1)),))
    now = at("2026-06-01T00:00Z")

    assert next_change([Timetable(ZoneInfo("UTC"), (), (never,))], now) is None
    assert next_change([Timetable(ZoneInfo("UTC"), (never,), ())], now) is None
