"""Windows as Go's `time` has them: a program of the test bed answers the same questions (testbed/go/windows)."""

import calendar
import json
import os
import random
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zoneinfo import TZPATH, ZoneInfo, available_timezones

import pytest

from dovetail.model.own.openings import Window, offset, wall_clock
from testbed.plane.binaries import built_alone
from testbed.plane.building import WINDOWS
from testbed.plane.unavailable import TestbedUnavailable
from tests.unavailable import no_control_plane
from worlds.time_rules import ZONES, a_moment, a_window

DAY = 86_400
FIRST, LAST = 1_577_836_800, 2_082_758_400  # 2020 to 2035


@pytest.fixture(scope="module")
def windows() -> Path:
    try:
        return built_alone(WINDOWS, print)
    except TestbedUnavailable as error:
        no_control_plane(error)


def question(zone: str, window: Window, moments: Iterable[int]) -> dict[str, Any]:
    return {
        "zone": zone,
        "from": f"{window.start // 3600:02}:{window.start // 60 % 60:02}",
        "to": f"{window.end // 3600:02}:{window.end // 60 % 60:02}",
        "days": [calendar.day_name[day] for day in sorted(window.days)],
        "dates": [{"first": dates.first, "last": dates.last} for dates in window.dates],
        "moments": list(moments),
    }


def differing(program: Path, asked: list[tuple[str, Window, list[int]]]) -> list[tuple[str, Window, int]]:
    """The moments about which the two do not agree; both read the zones of the same folder."""
    given = "\n".join(json.dumps(question(*each)) for each in asked)
    folder = next((path for path in TZPATH if Path(path).is_dir()), "")
    environment = {**os.environ, **({"ZONEINFO": folder} if folder else {})}
    done = subprocess.run([program], input=given, capture_output=True, text=True, check=True, env=environment)
    found, walls = [], dict[tuple[str, int], list[int]]()
    for (zone, window, moments), answers in zip(asked, done.stdout.splitlines(), strict=True):
        if (zone, id(moments)) not in walls:
            walls[zone, id(moments)] = [wall_clock(moment, ZoneInfo(zone)) for moment in moments]
        for moment, wall, answer in zip(moments, walls[zone, id(moments)], answers, strict=True):
            if window.covers(wall) != (answer == "1"):
                found.append((zone, window, moment))
    return found


def sixty_zones(chosen: random.Random) -> list[str]:
    """Those that are awkward, and others."""
    others = sorted(zone for zone in available_timezones() - set(ZONES) if zone[0].isupper() and "/" in zone)
    return [*ZONES, *chosen.sample(others, 60 - len(ZONES))]


def a_sample(seed: int, zones: int, windows: int, moments: int) -> list[tuple[str, Window, list[int]]]:
    chosen = random.Random(seed)
    wanted = [a_window(chosen) for _ in range(windows)]
    times = [int(a_moment(chosen)) for _ in range(moments)]
    return [(zone, window, times) for zone in sixty_zones(chosen)[:zones] for window in wanted]


def test_random_moments_of_random_windows_are_as_go_has_them(windows: Path) -> None:
    assert differing(windows, a_sample(1, 24, 5, 40)) == []


@pytest.mark.soak
@pytest.mark.parametrize("part", range(100))
def test_a_hundred_thousand_moments_in_sixty_zones_and_forty_windows_are_as_go_has_them(
    windows: Path, part: int
) -> None:
    assert differing(windows, a_sample(1000 + part, 60, 40, 1000)) == []


def changes(zone: ZoneInfo, first: int, last: int) -> list[int]:
    """The first second of each new offset."""
    found, before = [], offset(first, zone)
    for begin in range(first, last, DAY // 4):
        low, high = begin, begin + DAY // 4
        behind = offset(high, zone)
        if behind != before:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if offset(middle, zone) == behind else (middle, high)
            found.append(high)
        before = behind
    return found


@pytest.mark.parametrize(
    "zone",
    [*ZONES[1:4], *[pytest.param(zone, marks=pytest.mark.soak) for zone in (*ZONES[4:], "America/Caracas", "UTC")]],
)
def test_every_change_of_the_clocks_from_2020_to_2035_is_as_go_has_it(windows: Path, zone: str) -> None:
    """Four hours around each, by ten minutes and by the seconds beside it, in windows of an hour and over midnight."""
    hour = [Window(start=begin * 3600, end=(begin + 1) % 24 * 3600) for begin in range(24)]
    days = [Window(days=frozenset({day})) for day in range(7)]
    night = [Window(start=22 * 3600, end=5 * 3600, days=frozenset({day})) for day in range(7)]
    moments = [
        moment
        for change in changes(ZoneInfo(zone), FIRST, LAST)
        for moment in (*range(change - 7200, change + 7201, 600), change - 1, change + 1)
    ]

    assert differing(windows, [(zone, window, moments) for window in (*hour, *days, *night)]) == []
