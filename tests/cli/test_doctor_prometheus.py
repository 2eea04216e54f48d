"""`dovetail doctor` says whether what roll-outs and policies ask of Prometheus can be known."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.answers.doctor.findings import Check
from dovetail.answers.doctor.prometheus import prometheus_check
from dovetail.model.own.gates import GateResult, GateVerdict, Series
from dovetail.model.own.policies import Policy, PolicyStatus
from dovetail.model.own.rollouts import Rollout, RolloutState
from dovetail.ports.failures import Unreachable
from tests.disruption.test_asked_gates import SAYS, gated
from tests.disruption.test_health_by_alerts import POLICY
from tests.disruption.test_rollouts import rolling_out
from worlds.disruption import NOW
from worlds.time_rules import with_rules

GOOD = replace(
    POLICY, status=PolicyStatus(alerts=GateVerdict(name="alerts", result=GateResult.PASSING, asked=NOW, message=""))
)


class Answers:
    async def ask(self, expression: str) -> tuple[Series, ...]:
        assert expression == "vector(1)"
        return (Series(value=1.0),)


class Silent:
    async def ask(self, expression: str) -> tuple[Series, ...]:
        raise Unreachable("Prometheus", "it did not answer within 10 s")


async def checked(metrics: Any, *rules: Policy | Rollout) -> tuple[Check, ...]:
    world: Any = SimpleNamespace(metrics=metrics)
    return await prometheus_check(world, with_rules(rolling_out(1), *rules))


@pytest.mark.parametrize(
    ("metrics", "rules", "verdict", "words"),
    [
        (None, (POLICY,), "fails", "DisruptionPolicy calm: nobody can tell whether alerts fire"),
        (None, (GOOD,), "holds", "1 question of roll-outs and policies, which workers have been answered"),
        (Answers(), (GOOD,), "holds", "it answers; 1 question"),
        (Answers(), (), "holds", "it answers; nobody asks anything"),
        (Silent(), (GOOD,), "fails", "it did not answer within 10 s"),
        (Silent(), (), "warns", "it did not answer within 10 s"),
        (Answers(), (gated(SAYS[GateResult.UNKNOWN]),), "fails", "NodeRollout r: gate slo is Unknown"),
        (Answers(), (gated(None),), "fails", "NodeRollout r: gate slo is Unknown: it has not been asked yet"),
        (Answers(), (gated(SAYS[GateResult.FAILING]),), "holds", "it answers"),  # that is known
        (Answers(), (gated(SAYS[GateResult.PASSING]),), "holds", "it answers"),
    ],
)
async def test_what_cannot_be_known_is_named(
    metrics: Any, rules: tuple[Policy | Rollout, ...], verdict: str, words: str
) -> None:
    [found] = await checked(metrics, *rules)

    assert (found.name, found.verdict) == ("Prometheus", verdict)
    assert words in found.found and bool(found.advice) is (verdict != "holds")


async def test_nothing_is_said_where_nobody_asks_and_nobody_is_named() -> None:
    complete = gated(None)
    complete = replace(complete, status=replace(complete.status, state=RolloutState.COMPLETE))

    assert await checked(None) == () == await checked(None, complete)
