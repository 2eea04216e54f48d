"""Random windows, zones and moments, and policies made of them."""

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta

from dovetail.model.own.openings import Dates, Window
from dovetail.model.own.policies import Freeze, Policy
from dovetail.model.own.rollouts import Rollout
from dovetail.model.snapshot import Snapshot

# With half hours and quarters, both hemispheres, a change at midnight (Cairo, Santiago), one of half an hour (Lord
# Howe), two a year around Ramadan (Casablanca), none at all, and one beyond UTC+13.
ZONES = (
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/Havana",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Asia/Tehran",
    "Asia/Gaza",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Australia/Eucla",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Apia",
    "Pacific/Kiritimati",
)
FIRST, LAST = date(2020, 1, 1), date(2036, 1, 1)
REASONS = ("Empty", "Underutilized", "Drifted", "Expired", "Requested")


def a_moment(chosen: random.Random) -> float:
    """Between 2020 and 2035."""
    days = (LAST - FIRST).days
    return 1_577_836_800.0 + chosen.randrange(days * 86_400)


def a_window(chosen: random.Random) -> Window:
    """Any mixture of times, days, dates and reasons; minutes, because the API has no seconds."""
    return Window(
        start=_second(chosen),
        end=_second(chosen),
        days=frozenset(chosen.sample(range(7), chosen.choice([0, 0, 1, 3, 5]))),
        dates=tuple(_dates(chosen) for _ in range(chosen.choice([0, 0, 0, 1, 3]))),
        reasons=frozenset(chosen.sample(REASONS, chosen.choice([0, 1, 2]))),
    )


def _second(chosen: random.Random) -> int:
    return chosen.choice([0, chosen.randrange(1440), chosen.randrange(0, 1440, 30)]) * 60


def _dates(chosen: random.Random) -> Dates:
    first = FIRST + timedelta(days=chosen.randrange((LAST - FIRST).days))
    last = first + timedelta(days=chosen.randrange(40))
    if chosen.random() < 0.5:
        return Dates((first.month, first.day), (last.month, last.day))
    return Dates((first.year, first.month, first.day), (last.year, last.month, last.day))


def with_rules(snapshot: Snapshot, *rules: Policy | Freeze | Rollout) -> Snapshot:
    """The same cluster with these and no others."""
    policies: Mapping[str, Policy] = {each.name: each for each in rules if isinstance(each, Policy)}
    freezes: Mapping[str, Freeze] = {each.name: each for each in rules if isinstance(each, Freeze)}
    rollouts: Mapping[str, Rollout] = {each.name: each for each in rules if isinstance(each, Rollout)}
    return replace(snapshot, policies=policies, freezes=freezes, rollouts=rollouts)
