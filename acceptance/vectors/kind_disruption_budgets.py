"""disruption-budgets: what budgets allow at a moment (DIS-52 to DIS-56)."""

from typing import Any

from dovetail.adapters.kubernetes_json.parsing.pools import parse_budget
from dovetail.disruption.budgets.budgets import judge_budgets, limit_for
from dovetail.model.values.time import parse_time


def budgets(case: dict[str, Any]) -> str | None:
    """One list of budgets at one moment."""
    given, expected = case["input"], case["expected"]
    try:
        parsed = tuple(parse_budget(b) for b in given["budgets"])
    except (TypeError, ValueError) as error:
        return None if "parseError" in expected else f"ours does not read it: {error}"
    if "parseError" in expected:
        return "ours reads what upstream does not"
    verdicts = judge_budgets(parsed, parse_time(given["now"]))
    limits = {reason: limit_for(verdicts, reason, given["nodes"]) for reason in expected["allowed"]}
    ours = {
        "active": ["error" if v.error else v.active for v in verdicts],
        "allowed": {reason: limit.allowed for reason, limit in limits.items()},
        "error": any(limit.errors for limit in limits.values()),
    }
    theirs = {**expected, "error": expected["error"] is not None}
    return None if ours == theirs else f"{ours} is not {theirs}"


KINDS = {"disruption-budgets": budgets}
