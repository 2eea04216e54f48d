"""What a benchmark is asked for: `POLICY`, `COST_SECONDS`, `COST_SPOT_CHANCE`, `LEAST_SECONDS`, refused clearly."""

from collections.abc import Callable, Mapping
from math import isfinite

from dovetail.placement.settings import CostSettings

POLICIES = ("", "default", "cost")


class AskedWrongly(ValueError):
    """A variable that cannot be read, with its name and value."""


def cost_settings(environment: Mapping[str, str], stopwatch: Callable[[float], Callable[[], bool]]) -> CostSettings:
    """The policy and its settings: cheaper nodes are looked for under `POLICY=cost` alone."""
    policy = environment.get("POLICY", "")
    if policy.lower() not in POLICIES:
        raise AskedWrongly(f"POLICY: {policy} is neither default nor cost")
    return CostSettings(
        everywhere=policy.lower() == "cost",
        seconds=_number(environment, "COST_SECONDS", 0.7, least=0.001, most=3600.0),
        steps=20_000,
        spot_chance=_number(environment, "COST_SPOT_CHANCE", CostSettings().spot_chance, least=0.01, most=1.0),
        stopwatch=stopwatch,
    )


def least_seconds(environment: Mapping[str, str]) -> float:
    """How many seconds of the processor the bound on the least cost may take; with 0 none is looked for."""
    return _number(environment, "LEAST_SECONDS", 30.0, least=0.0, most=3600.0)


def beginning_seconds(environment: Mapping[str, str]) -> float:
    """The longest that the first, rough bound may take, of the clock."""
    return 4 * least_seconds(environment)


def _number(environment: Mapping[str, str], name: str, default: float, least: float, most: float) -> float:
    text = environment.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        raise AskedWrongly(f"{name}: {text} is no number") from None
    if not isfinite(value) or not least <= value <= most:
        raise AskedWrongly(f"{name}: {text} is not between {least:g} and {most:g}")
    return value
