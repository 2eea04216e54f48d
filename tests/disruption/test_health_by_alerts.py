"""A policy's health by alerts: what fires holds, and so does a Prometheus that says nothing."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.activities.upkeep.time_rules import policy_status
from dovetail.model.own.gates import AlertsRule, Answer, GateResult, GateVerdict, Series
from dovetail.model.own.health import HealthResult, HealthRule
from dovetail.model.own.policies import Policy, PolicyStatus
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.said import Cause
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.ours.time_rules import HELP, time_rule_samples
from tests.disruption.test_health import a_fleet, begins
from worlds.disruption import NOW
from worlds.time_rules import with_rules

RULE: Final = HealthRule(max_not_ready="10%", stable_for=600.0, alerts=AlertsRule(firing='{severity="page"}'))
POLICY: Final = Policy(name="calm", health=RULE)
assert RULE.gate is not None
QUESTION: Final = RULE.gate.question
FIRES: Final = (Series(labels=(("alertname", "Down"),), value=1.0),)


def looked(policy: Policy, now: float, *samples: Series, fault: str = "") -> Policy:
    """The policy with what upkeep writes at that answer."""
    world = with_rules(replace(a_fleet(4), now=now), policy)
    answers = {QUESTION: Answer(at=now, samples=samples, fault=fault)}
    return replace(policy, status=policy_status(policy, world, now, answers))


def held(policy: Policy, now: float) -> str:
    world = with_rules(replace(a_fleet(4), now=now), policy)
    hold = hold_of(said_in(world, "a"), Cause.DRIFTED)
    assert (begins(world) == 0) is (hold is not None)
    return "" if hold is None else hold.ends


def is_blind(policy: Policy, now: float) -> bool:
    found = measured(time_rule_samples(with_rules(replace(a_fleet(4), now=now), policy)), HELP, "dovetail_")
    [line] = [line for line in found if line.startswith("dovetail_disruption_held_blind")]
    return line.endswith(" 1")


def test_what_was_never_asked_holds_and_is_no_failure_to_wait_after() -> None:
    assert "nobody can tell whether alerts fire: it has not been asked yet" in held(POLICY, NOW)
    assert is_blind(POLICY, NOW)

    asked = looked(POLICY, NOW)
    assert (held(asked, NOW), is_blind(asked, NOW), asked.status.health) == ("", False, None)


def test_an_alert_that_fires_holds_until_none_has_for_ten_minutes() -> None:
    policy, found = POLICY, []
    for minute in range(30):
        now = NOW + 60.0 * minute
        policy = looked(policy, now, *(FIRES if 5 <= minute < 10 or minute == 12 else ()))
        found.append(bool(held(policy, now)))

    assert found == [5 <= minute < 23 for minute in range(30)]
    assert policy.status.health is not None and policy.status.health.message == "alerts fire: Down"


def test_without_an_answer_what_was_known_counts_for_two_minutes_and_then_nothing_begins() -> None:
    policy, found = looked(POLICY, NOW), []
    for second in range(30, 300, 30):
        policy = looked(policy, NOW + second, fault="Prometheus: it did not answer within 10 s")
        found.append(bool(held(policy, NOW + second)))

    assert found == [second > 120 for second in range(30, 300, 30)]
    assert "nobody can tell whether alerts fire: Prometheus: it did not answer" in held(policy, NOW + 300)
    assert is_blind(policy, NOW + 300)
    assert policy.status.health is not None and policy.status.health.result == HealthResult.FAILING

    again = looked(policy, NOW + 330)
    assert held(again, NOW + 330).startswith("until ") and not is_blind(again, NOW + 330)
    assert "it passes again, after nobody can tell" in held(again, NOW + 330)


def test_a_worker_that_was_away_is_believed_only_once_it_has_asked_again() -> None:
    """Nobody has asked for hours: what stands in the status holds nothing open, and is no failure either."""
    asked, later = looked(POLICY, NOW), NOW + 7200
    assert "the last answer is of" in held(asked, later) and is_blind(asked, later)

    waiting = replace(asked, status=policy_status(asked, with_rules(replace(a_fleet(4), now=later), asked), later))
    assert held(waiting, later) and waiting.status.health is None
    assert held(looked(waiting, later + 1), later + 1) == ""


@pytest.mark.parametrize(
    ("verdict", "blind"),
    [
        (None, True),
        (GateVerdict(name="alerts", result=GateResult.UNKNOWN, asked=NOW, message="no answer"), True),
        (GateVerdict(name="alerts", result=GateResult.FAILING, asked=NOW, message="alerts fire: Down"), False),
        (GateVerdict(name="alerts", result=GateResult.PASSING, asked=NOW, message=""), False),
    ],
)
def test_the_metric_tells_silence_from_alerts(verdict: GateVerdict | None, blind: bool) -> None:
    assert is_blind(replace(POLICY, status=PolicyStatus(alerts=verdict)), NOW) is blind


def test_a_policy_without_alerts_asks_nothing_and_forgets_what_was_said() -> None:
    plain = replace(POLICY, health=replace(RULE, alerts=None), status=looked(POLICY, NOW).status)

    assert policy_status(plain, with_rules(a_fleet(4), plain), NOW).alerts is None
    assert not any("blind" in sample.name for sample in time_rule_samples(with_rules(a_fleet(4), plain)))
