"""Gates that ask Prometheus: what an answer means, what it holds, and for how long it counts."""

from dataclasses import replace
from math import inf, nan
from typing import Final

import pytest

from dovetail.activities.upkeep.time_rules import questions_of, rollout_status
from dovetail.disruption.explain import explain_node
from dovetail.model import names
from dovetail.model.own.gates import (
    NOT_ASKED,
    AlertsRule,
    Answer,
    AskedGate,
    GateResult,
    GateVerdict,
    QueryRule,
    Series,
)
from dovetail.model.own.health import HealthRule
from dovetail.model.own.policies import Policy
from dovetail.model.own.rollouts import Intent, PoolNodes, Rollout, RolloutState
from dovetail.model.own.stable_images import StableImages
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.rollout.conditions import conditions_of
from dovetail.rules.rollout.moves import next_move
from dovetail.rules.said import Cause
from tests.disruption.test_rollouts import POOL, SETTINGS, a_rollout, a_status, begun, rolling_out
from worlds.disruption import NOW, a_pair, a_world, condition
from worlds.kept_rollouts import kept
from worlds.time_rules import with_rules

PASSING, UNKNOWN, FAILING = GateResult.PASSING, GateResult.UNKNOWN, GateResult.FAILING
ERRORS: Final = QueryRule(expression="slo:errors:ratio5m", most=0.01)
SLO: Final = AskedGate(name="slo", query=ERRORS)
ALERTS: Final = AskedGate(name="alerts", alerts=AlertsRule(firing='{severity="critical",team="platform"}'))


def answered(*values: float, at: float = NOW, fault: str = "") -> Answer:
    return Answer(at=at, samples=tuple(Series(value=value) for value in values), fault=fault)


@pytest.mark.parametrize(
    ("rule", "values", "result", "words"),
    [
        (ERRORS, [0.004], PASSING, "0.004"),
        (ERRORS, [0.01], PASSING, "0.01"),  # at most that
        (ERRORS, [0.02], FAILING, "0.02 is more than 0.01"),
        (ERRORS, [0.001, 0.02], FAILING, "0.02 is more than 0.01"),  # each series
        (ERRORS, [0.001, 0.002], PASSING, "0.001 to 0.002"),
        (ERRORS, [inf], FAILING, "inf is more than 0.01"),
        (ERRORS, [-inf], PASSING, "-inf"),
        (ERRORS, [nan], UNKNOWN, "the answer is no number"),
        (ERRORS, [0.02, nan], UNKNOWN, "the answer is no number"),
        (ERRORS, [], UNKNOWN, "the answer is empty: no series has a value now"),
        (QueryRule(expression="up", least=3), [2], FAILING, "2 is less than 3"),
        (QueryRule(expression="up", least=3), [3], PASSING, "3"),
        (QueryRule(expression="up", least=1, most=3), [4], FAILING, "4 is more than 3"),
    ],
)
def test_every_value_must_be_within_the_bounds(
    rule: QueryRule, values: list[float], result: GateResult, words: str
) -> None:
    found = AskedGate(name="slo", query=rule).judged(None, answered(*values), NOW)

    assert (found.result, found.message, found.asked, found.since) == (result, words, NOW, NOW)


def test_no_alert_may_fire_and_those_that_do_are_named_by_their_numbers() -> None:
    def firing(*names: str) -> Answer:
        return Answer(at=NOW, samples=tuple(Series(labels=(("alertname", name),), value=1.0) for name in names))

    assert ALERTS.judged(None, firing(), NOW).result == PASSING
    found = ALERTS.judged(None, firing("Slow", "Slow", "Down"), NOW)
    assert (found.result, found.message) == (FAILING, "alerts fire: Down, Slow (2)")
    assert ALERTS.judged(None, firing(*"abcde"), NOW).message == "alerts fire: a, b, c and 2 more"
    assert "\x1b" not in ALERTS.judged(None, firing("\x1b[2Jgone"), NOW).message


@pytest.mark.parametrize(
    ("rule", "question"),
    [
        (AlertsRule(), 'ALERTS{alertstate="firing"}'),
        (AlertsRule(firing="{ }"), 'ALERTS{alertstate="firing"}'),
        (AlertsRule(firing='{severity="page", }'), 'ALERTS{alertstate="firing",severity="page"}'),
        (
            AlertsRule(firing='{severity="page"}', ignore='{alertname="Watchdog"}'),
            'ALERTS{alertstate="firing",severity="page"} unless ALERTS{alertstate="firing",alertname="Watchdog"}',
        ),
    ],
)
def test_alerts_that_fire_are_asked_for(rule: AlertsRule, question: str) -> None:
    assert AskedGate(name="alerts", alerts=rule).question == question


def test_so_many_answers_in_a_row_fail_it_and_each_is_judged_once() -> None:
    gate, known = replace(SLO, failures=3), None
    found = []
    for minute, value in enumerate((0.001, 0.02, 0.02, 0.001, 0.02, 0.02, 0.02, 0.02)):
        now = NOW + 60 * minute
        answer = answered(value, at=now)
        known = gate.judged(known, answer, now)
        assert gate.judged(known, answer, now + 1) == known
        found.append((known.result, known.failed))

    once, twice, thrice = (UNKNOWN, 1), (UNKNOWN, 2), (FAILING, 3)
    assert found == [(PASSING, 0), once, twice, (PASSING, 0), once, twice, thrice, thrice]
    assert known is not None and known.since == NOW + 360
    silent = gate.judged(known, answered(at=NOW + 480, fault="it did not answer"), NOW + 480)
    assert (silent.result, silent.failed, silent.since) == (UNKNOWN, 3, NOW + 480)  # no answer is no excuse
    assert gate.judged(silent, answered(0.02, at=NOW + 540), NOW + 540).result == FAILING


def test_a_verdict_that_stays_the_same_is_written_once_a_minute() -> None:
    gate = replace(SLO, every=15.0)
    first = gate.judged(None, answered(0.001), NOW)

    assert gate.judged(first, answered(0.002, at=NOW + 15), NOW + 15) == first
    assert gate.judged(first, answered(0.02, at=NOW + 15), NOW + 15).result == FAILING
    later = gate.judged(first, answered(0.002, at=NOW + 60), NOW + 60)
    assert (later.asked, later.since) == (NOW + 60, NOW)


def gated(verdict: GateVerdict | None, step: str = "rest", intent: Intent = Intent.RUN) -> Rollout:
    asked = () if verdict is None else (verdict,)
    return replace(a_rollout(a_status(step, asked=asked), intent), gates=(SLO,))


SAYS: Final = {
    PASSING: GateVerdict(name="slo", result=PASSING, asked=NOW - 30, since=NOW - 600, message="0.004"),
    UNKNOWN: GateVerdict(name="slo", result=UNKNOWN, asked=NOW - 30, since=NOW - 600, message="it did not answer"),
    FAILING: GateVerdict(name="slo", result=FAILING, asked=NOW - 30, since=NOW - 600, message="0.02 is more than 0.01"),
}


@pytest.mark.parametrize(
    ("verdict", "begin", "words"),
    [
        (SAYS[PASSING], 8, ""),
        (SAYS[UNKNOWN], 0, "as gate slo is Unknown: it did not answer"),
        (SAYS[FAILING], 0, "as gate slo is Failing: 0.02 is more than 0.01"),
        (None, 0, f"as gate slo is Unknown: {NOT_ASKED}"),
        (replace(SAYS[PASSING], asked=NOW - 180), 8, ""),
        (
            replace(SAYS[PASSING], asked=NOW - 181),  # three minutes of a question a minute
            0,
            "gate slo is Unknown: the last answer is of 2023-11-14T22:10:19Z",
        ),
        (replace(SAYS[PASSING], name="another"), 0, f"as gate slo is Unknown: {NOT_ASKED}"),
    ],
)
def test_only_a_fresh_answer_that_passes_lets_further_nodes_begin(
    verdict: GateVerdict | None, begin: int, words: str
) -> None:
    world = rolling_out(8, 1, gated(verdict))

    assert begun(world) == begin
    held = hold_of(said_in(world, "a"), Cause.DRIFTED)
    assert held is None if not words else held is not None and words in held.message
    if held is not None:
        assert held.message in {answer.message for answer in explain_node(world, SETTINGS, "old0").methods}
    assert begun(rolling_out(8, 1, gated(verdict, intent=Intent.PROMOTE))) == 8  # whoever promotes has seen it


SOAKED: Final = PoolNodes(old=7, at_target=1, ready=(NOW - 900,))


@pytest.mark.parametrize(
    ("verdict", "state"),
    [(SAYS[PASSING], "quarter"), (SAYS[UNKNOWN], "canary"), (SAYS[FAILING], "canary"), (None, "canary")],
)
def test_the_next_step_begins_only_where_it_passes(verdict: GateVerdict | None, state: str) -> None:
    soaked = gated(verdict, "canary")
    status = replace(soaked.status, state=RolloutState.SOAKING, since=NOW - 700, until=NOW - 1)
    found = next_move(replace(soaked, status=status, created=NOW - 900), POOL, SOAKED, NOW)

    assert found.step == state
    assert (found.state == RolloutState.JUDGING) is (verdict is not None and verdict.result == FAILING)
    stale = None if verdict is None else (replace(verdict, asked=NOW - 900),)
    assert next_move(replace(soaked, status=replace(status, asked=stale or ())), POOL, SOAKED, NOW).step == "canary"


def test_one_that_fails_for_three_minutes_takes_the_roll_out_back() -> None:
    failing = replace(SAYS[FAILING], since=NOW - 30 - 180)  # the last answer is half a minute old
    stable = replace(a_status().stable, since=NOW - 60, why_not="")
    rollout = replace(gated(failing), rolls_back=True)
    rollout = replace(rollout, status=replace(rollout.status, stable=stable))

    found = next_move(rollout, POOL, SOAKED, NOW)
    assert found.state == RolloutState.ROLLING_BACK
    assert found.failure is not None and found.failure.message == "gate slo is Failing: 0.02 is more than 0.01"
    before = replace(rollout, status=replace(rollout.status, asked=(replace(failing, since=NOW - 29 - 180),)))
    assert next_move(before, POOL, SOAKED, NOW).state == RolloutState.JUDGING
    old = replace(failing, asked=NOW - 181, since=NOW - 181 - 180)  # it failed while somebody had paused it
    too_old = replace(rollout, status=replace(rollout.status, asked=(old,)))
    assert next_move(too_old, POOL, SOAKED, NOW).state == RolloutState.JUDGING


@pytest.mark.parametrize(
    ("failing", "backs"),
    [
        ((900,), False),  # nobody has asked since
        ((900, 1500), False),  # nor between these two
        ((900, 1500, 1560, 1620), False),
        ((900, 1500, 1560, 1620, 1680), True),
    ],
)
def test_what_nobody_asked_while_all_workers_were_away_takes_nothing_back(
    failing: tuple[int, ...], backs: bool
) -> None:
    """One bad answer, then ten minutes without a worker: only answers that still count say for how long it fails."""
    drifted = condition(names.DRIFTED, reason="ImageDrift")
    pairs = [a_pair(f"old{n}", also=(drifted,), claim={"image_id": "image-1"}) for n in range(8)]
    pairs.append(a_pair("new", claim={"created": NOW - 30, "image_id": "image-2"}))
    status = a_status(stable=StableImages(since=NOW - 60))
    rollout = replace(a_rollout(status), gates=(SLO,), rolls_back=True)
    for second in (60, 120, 900, 1500, 1560, 1620, 1680, 1740):
        now = NOW + second
        answers = {SLO.question: answered(0.02 if second in failing else 0.001, at=now)}
        known = answers if second < 900 or second in failing else {}
        world = with_rules(replace(a_world(pairs, pools=[POOL]), now=now), rollout)
        rollout = kept(replace(rollout, status=rollout_status(rollout, world, now, answers=known)))

    assert (rollout.status.state == RolloutState.ROLLING_BACK) is backs
    assert backs or rollout.status.state == RolloutState.JUDGING


@pytest.mark.parametrize("stop", [Intent.PAUSE, Intent.ABORT, None])
def test_one_that_fails_while_the_roll_out_is_stopped_asks_for_another_whole_soak(stop: Intent | None) -> None:
    """Stopped by a person, or for its length; what was a soak before is none any more once it goes on."""
    soaking = gated(SAYS[FAILING], "canary", stop or Intent.RUN)
    status = replace(soaking.status, state=RolloutState.SOAKING, since=NOW - 700, until=NOW - 1, begun=NOW - 900)
    stopped = replace(soaking, status=status, created=NOW - 900, longest=None if stop else 800.0)

    judged = next_move(stopped, POOL, SOAKED, NOW)
    assert (judged.step, judged.state) == ("canary", RolloutState.JUDGING)

    well = replace(stopped, intent=Intent.RUN, longest=None, status=replace(judged, asked=(SAYS[PASSING],)))
    found = next_move(well, POOL, SOAKED, NOW)
    assert (found.step, found.state) == ("canary", RolloutState.SOAKING)
    assert found.until is not None and found.until >= NOW + well.steps[0].soak


def test_another_target_is_judged_by_answers_of_its_own() -> None:
    found = next_move(gated(SAYS[PASSING]), replace(POOL, hash="3"), replace(SOAKED, old=8), NOW)

    assert (found.step, found.asked) == ("canary", ())


def test_a_person_is_needed_where_it_fails_or_nothing_is_known_for_half_an_hour() -> None:
    def stalled(verdict: GateVerdict) -> tuple[str, str]:
        return conditions_of(gated(verdict), POOL, (), NOW)["Stalled"][:2]

    assert stalled(SAYS[PASSING]) == ("False", "Advancing")
    assert stalled(SAYS[FAILING]) == ("True", "GateFails")
    assert stalled(SAYS[UNKNOWN]) == ("False", "Advancing")
    assert stalled(replace(SAYS[UNKNOWN], since=NOW - 1799)) == ("False", "Advancing")
    assert stalled(replace(SAYS[UNKNOWN], since=NOW - 1800)) == ("True", "GateUnknown")
    assert conditions_of(gated(SAYS[UNKNOWN]), POOL, (), NOW)["Healthy"] == (
        "Unknown",
        "GatesUnknown",
        "gate slo is Unknown: it did not answer",
    )


def test_upkeep_writes_what_was_answered_and_only_of_gates_that_are_asked_for() -> None:
    gone = replace(SAYS[PASSING], name="gone")
    rollout = replace(gated(SAYS[UNKNOWN]), gates=(SLO, ALERTS))
    rollout = replace(rollout, status=replace(rollout.status, asked=(SAYS[UNKNOWN], gone)))
    answers = {SLO.question: answered(0.001), ALERTS.question: answered(at=NOW, fault="it did not answer")}

    found = rollout_status(rollout, rolling_out(8, 1, rollout), NOW, "", answers)
    assert [(each.name, each.result, each.message) for each in found.asked] == [
        ("slo", PASSING, "0.001"),
        ("alerts", UNKNOWN, "it did not answer"),
    ]


def test_what_is_under_way_is_asked_and_each_question_once() -> None:
    policy = Policy(name="p", health=HealthRule(max_not_ready="10%", stable_for=600.0, alerts=ALERTS.alerts))
    under_way, complete = replace(gated(None), gates=(SLO, ALERTS)), a_status(state=RolloutState.COMPLETE)
    over = replace(a_rollout(complete), name="over", gates=(replace(SLO, query=QueryRule(expression="over", most=1)),))

    assert questions_of(with_rules(rolling_out(1), policy, under_way, over)) == {
        "slo:errors:ratio5m": 60.0,
        ALERTS.question: 30.0,
    }
