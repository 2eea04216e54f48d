"""EC2 is throttled for minutes, and what it answers is half of it, twice, late, cut off or none at all."""

import asyncio
from typing import Final

import pytest

from dovetail.model.values.json import Json
from tests.storm.life import storm
from worlds.cluster.ground import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

SECONDS: Final = 240.0
RATES: Final = {
    "CreateFleet": {"burst": 1, "perSecond": 0.2},
    "TerminateInstances": {"burst": 1, "perSecond": 0.2},
    "DescribeInstances": {"burst": 2, "perSecond": 0.5},
    "CreateTags": {"burst": 1, "perSecond": 0.2},
    "DescribeSubnets": {"burst": 1, "perSecond": 0.1},
    "DescribeInstanceTypes": {"burst": 1, "perSecond": 0.1},
}
# What changes AWS is struck after its effect, too: the instance is there, or gone, and nobody learns of it.
FAULTS: Final[list[Json]] = [
    {"op": "CreateFleet", "share": 0.15, "answer": "drop"},
    {"op": "CreateFleet", "share": 0.15, "answer": "truncate"},
    {"op": "CreateFleet", "share": 0.15, "answer": "double"},
    {"op": "CreateFleet", "share": 0.15, "code": "InternalError", "status": 500, "when": "after"},
    {"op": "TerminateInstances", "share": 0.3, "answer": "cut"},
    {"op": "TerminateInstances", "share": 0.2, "answer": "double"},
    {"op": "DescribeInstances", "share": 0.2, "answer": "half"},
    {"op": "DescribeInstances", "share": 0.3, "answer": "double"},
    {"service": "ec2", "share": 0.05, "answer": "late", "delay": 15},
]


async def test_ec2_is_throttled_for_minutes_with_partial_and_duplicate_answers(ground: Ground) -> None:
    since = ground.cloud.control("GET", "ledger/last")
    try:
        async with storm(ground, seed=283, patience=SECONDS + 300):
            ground.world({"rateLimits": RATES, "fail": FAULTS, "visibleAfter": 5})
            await asyncio.sleep(SECONDS)
            ground.world({"rateLimits": dict.fromkeys(RATES), "fail": [], "visibleAfter": 0})
        calls = await asyncio.to_thread(ground.cloud.calls, None, since)
        struck = {call["fault"]["answer"] for call in calls if "fault" in call}
        throttled = sum(1 for call in calls if call["error"] == "RequestLimitExceeded")
        replayed = sum(1 for call in calls if call.get("replayed"))
        print(f"  of {len(calls)} calls {throttled} throttled, {replayed} repeated with their token; met: {struck}")
        assert throttled and {"half", "double"} <= struck
    finally:
        ground.world({"rateLimits": dict.fromkeys(RATES), "fail": [], "visibleAfter": 0})
