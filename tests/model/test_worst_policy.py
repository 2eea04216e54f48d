"""What the largest DisruptionPolicies that the definition admits cost one look, which is taken on the event loop.

Steps are counted, not timed. With a moment after another of a year ahead, each window and date of it asked at each, it
was a billion of them: four minutes in which no worker answered its liveness probe, and then the next worker's four.
"""

from datetime import date, timedelta
from itertools import cycle, islice
from typing import Final

import pytest

from dovetail.activities.upkeep.time_rules import policy_status
from dovetail.adapters.kubernetes_json.parsing.policies import parse_policy
from dovetail.api.own.disruption_policy import MOST_WINDOWS
from dovetail.model.own.pod_windows import LONGEST, opens_at
from dovetail.model.own.policies import Policy, next_opening
from dovetail.model.values.json import Json
from tests.properties.counted_lines import within_lines
from worlds.disruption import NOW, a_pool, a_world
from worlds.time_rules import REASONS

DAYS: Final = [date(2024, 1, 1) + timedelta(days=number) for number in range(366)]  # a leap year
YEARS: Final = {"past": "2020-", "coming": "2024-", "yearly": ""}  # it is November 2023
MOST_LINES: Final = 3_000_000  # of all reasons together; a fifth of a second


def dates(kind: str, number: int) -> list[str]:
    """As many as a window may have, no two windows' alike."""
    days = islice(cycle(DAYS), 31 * number, 31 * number + 7 * MOST_WINDOWS, 7)
    return [f"{YEARS[kind]}{day:%m-%d}" for day in days]


def a_window(kind: str, number: int) -> Json:
    minute = number * 13 % 1440
    times = {"from": f"{minute // 60:02}:{minute % 60:02}", "to": f"{(minute // 60 + 5) % 24:02}:{minute % 60:02}"}
    named = [reason for place, reason in enumerate(REASONS) if place != number % len(REASONS)]
    return {**times, "dates": dates(kind, number), "reasons": named}


def largest(kind: str, name: str = "p", zone: str = "Europe/Berlin") -> Policy:
    """Closed for ever, so that the whole year ahead must be looked at."""
    allow = [a_window(kind, number) for number in range(MOST_WINDOWS)]
    deny = [{}, *(a_window(kind, number) for number in range(1, MOST_WINDOWS))]
    spec = {"timeZone": zone, "allow": allow, "deny": deny}
    found = parse_policy({"metadata": {"name": name, "uid": name, "generation": 1}, "spec": spec})
    assert not found.fault
    return found


@pytest.mark.parametrize("kind", ["past", "coming", "yearly"])
def test_the_largest_policy_that_is_admitted_costs_a_look_no_more_than_a_bounded_number_of_steps(kind: str) -> None:
    policy, world = largest(kind), a_world([], [], [a_pool()])

    status = within_lines(MOST_LINES, lambda: policy_status(policy, world, NOW))

    assert {each.reason for each in status.openings} >= set(REASONS)
    assert all((each.open, each.until, each.why) == (False, None, "in deny[0]") for each in status.openings)


def test_so_do_several_of_several_zones_together() -> None:
    zones = ("Europe/Berlin", "America/Havana", "Australia/Lord_Howe")
    three = tuple(largest("yearly", name=zone, zone=zone) for zone in zones)

    assert within_lines(MOST_LINES, lambda: next_opening(three, "Drifted", NOW)) is None


def test_the_longest_windows_of_a_pod_cost_a_look_little() -> None:
    """Anybody may write them, each pod others."""
    text = ";".join(f"Sun {hour:02}:00-{hour:02}:01" for hour in range(LONGEST // len("Sun 00:00-00:01;")))

    assert within_lines(20_000, lambda: opens_at(text, NOW)) is not None
