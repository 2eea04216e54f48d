"""The day of `make bench`: a small cluster, both policies, about a minute."""

from dataclasses import replace
from typing import Any

from research.days import NAME
from research.days.__main__ import played, totals
from research.days.play import Course

COURSE = Course(cost=False, nodes=12, steps=100, every=10)


def line_of(course: Course = COURSE) -> dict[str, Any]:
    """What the day comes to: pods that came, dollars under the policy cost and over the default's, and the rest side by
    side as default and cost."""
    plain, cost = (totals(played(replace(course, cost=chosen))) for chosen in (False, True))
    beside = {key: [plain[key], cost[key]] for key in ("dollars", "lowest", "moved", "launched", "unready_seconds")}
    return {
        "input": NAME,
        "pods": cost["came"],
        "cpu": plain["processor_seconds"] + cost["processor_seconds"],
        "cost": round(cost["dollars"], 2),
        "over upstream": round(cost["dollars"] / plain["dollars"], 4),
        "default, cost": beside,
    }
