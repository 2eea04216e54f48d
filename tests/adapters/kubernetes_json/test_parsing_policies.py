"""DisruptionPolicies, Freezes and NodeRollouts as read: none is left out, what is not understood holds."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.adapters.kubernetes_json.parsing.policies import parse_freeze, parse_policy
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.adapters.kubernetes_json.rendering.policies import (
    render_approval,
    render_new_rollout,
    render_rollout,
    render_status,
)
from dovetail.api.own.node_rollout import RolloutGate
from dovetail.model.own.breaker_rules import BREAKER
from dovetail.model.own.drain_rules import Blocker, DrainRules, Escalation, HookRules, Level, hook_rules
from dovetail.model.own.gates import AlertsRule, AskedGate, GateResult, GateVerdict, QueryRule
from dovetail.model.own.health import HealthResult, HealthRule
from dovetail.model.own.openings import Dates, Window
from dovetail.model.own.policies import Expiry, PolicyStatus, TakenRate
from dovetail.model.own.rollout_approvals import Answered, Approval, Awaits
from dovetail.model.own.rollouts import (
    NewRollout,
    Order,
    Passage,
    Rollout,
    RolloutFailure,
    RolloutState,
    RolloutStatus,
)
from dovetail.model.own.stable_images import StableImage, StableImages
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.brake import Brake
from dovetail.model.values.time import parse_time
from dovetail.termination.ladder import DrainHold, forced_through, steps
from worlds.disruption import a_pair, a_pool, a_world
from worlds.time_rules import with_rules

DEV, PROD = a_pool("dev", labels={"tier": "dev"}), a_pool("prod", labels={"tier": "prod"})
HOUR = 3600
NOON = 1_800_000_000.0


def an_object(spec: Any, **more: Any) -> dict[str, Any]:
    meta = {
        "name": "p",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"metadata": meta, "spec": spec, **more}


def test_a_whole_policy_is_read() -> None:
    policy = parse_policy(
        an_object(
            {
                "nodePoolSelector": {"matchLabels": {"tier": "prod"}},
                "timeZone": "Europe/Berlin",
                "allow": [{"days": ["Mon", "Thu"], "from": "22:00", "to": "05:30", "reasons": ["Drifted"]}],
                "deny": [{"dates": ["2026-12-24/2027-01-02", "05-01", "12-31/01-01"]}],
            },
            status={"nodePools": ["prod"], "openings": [{"reason": "Drifted", "open": True}]},
        )
    )

    assert (policy.name, policy.generation, policy.fault) == ("p", 3, "")
    assert policy.zone == "Europe/Berlin"
    night = Window(start=22 * HOUR, end=5 * HOUR + 1800, days=frozenset({0, 3}), reasons=frozenset({"Drifted"}))
    assert policy.allow == (night,)
    assert policy.deny[0].dates == (
        Dates((2026, 12, 24), (2027, 1, 2)),
        Dates((5, 1), (5, 1)),
        Dates((12, 31), (1, 1)),
    )
    assert (policy.selects(PROD), policy.selects(DEV)) == (True, False)
    assert (policy.status.pools, policy.status.openings[0].open) == (("prod",), True)


def test_the_roll_out_of_a_policy_is_read_and_what_is_made_of_it_has_the_same_steps() -> None:
    steps = [{"name": "canary", "to": "1", "soak": "1h30m"}, {"name": "rest", "to": "100%"}]
    plan = parse_policy(an_object({"rollout": {"when": {"drifted": "2"}, "steps": steps}})).rollout
    usual = parse_policy(an_object({"rollout": {"steps": steps}})).rollout

    assert plan is not None and usual is not None and (plan.drifted, usual.drifted) == ("2", "1")
    assert [(step.name, step.to, step.soak) for step in plan.steps] == [("canary", "1", 5400.0), ("rest", "100%", 0.0)]
    new = NewRollout(name="r", pool="default", pool_uid="u1", policy="p", plan=plan)
    made = parse_rollout(render_new_rollout(new))
    assert (made.name, made.pool, made.policy, made.steps, made.fault) == ("r", "default", "p", plan.steps, "")
    every = replace(plan, launches_stable=True, rolls_back=True, longest_stable=60.0)
    stable = parse_rollout(render_new_rollout(replace(new, plan=every)))
    assert (stable.launches_stable, stable.rolls_back, stable.longest_stable) == (True, True, 60.0)
    assert (made.launches_stable, made.rolls_back, made.longest_stable) == (False, False, plan.longest_stable)
    [owner] = render_new_rollout(new)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("NodePool", "default", "u1")


def test_a_roll_out_that_cannot_be_understood_closes_the_pools_of_its_policy() -> None:
    policy = parse_policy(an_object({"rollout": {"steps": []}}))

    assert policy.rollout is None and policy.why_closed("Drifted", 0.0)


PROD_ONLY = {"matchLabels": {"tier": "prod"}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"timeZone": "Europe/Nowhere"}, "spec.timeZone"),
        ({"timeZone": "Europe"}, "spec.timeZone"),
        ({"timeZone": "/etc/passwd"}, "spec.timeZone"),
        ({"timeZone": "../../etc/localtime"}, "spec.timeZone"),
        ({"deny": [{"dates": ["02-30"]}]}, "spec.deny[0].dates[0]"),
        ({"deny": [{"dates": ["2026-02-29"]}]}, "spec.deny[0].dates[0]"),
        ({"deny": [{"dates": ["2026-12-24/2026-12-01"]}]}, "ends before it begins"),
        ({"allow": [{"from": "25:00"}]}, "spec.allow.0.from"),
        ({"allow": [{"reasons": ["Drift"]}]}, "spec.allow.0.reasons"),
        ({"allow": "always"}, "spec.allow"),
        ({"rates": [{"nodes": "5", "per": "59s"}]}, "spec.rates[0].per"),
        ({"rates": [{"nodes": "5", "per": "169h"}]}, "spec.rates[0].per"),
        ({"rates": [{"nodes": "101%", "per": "1h"}]}, "spec.rates.0.nodes"),
        ({"allow": [{}] * 51}, "spec.allow"),
    ],
)
def test_what_cannot_be_understood_closes_the_pools_that_are_selected_and_no_others(
    spec: dict[str, Any], field: str
) -> None:
    policy = parse_policy(an_object({"nodePoolSelector": PROD_ONLY, **spec}))

    assert field in policy.fault and len(policy.fault) < 600
    assert policy.why_closed("Drifted", 0.0).startswith("it cannot be understood: ")
    assert (policy.selects(PROD), policy.selects(DEV)) == (True, False)


@pytest.mark.parametrize(
    ("given", "expiry"),
    [
        (None, None),
        ({"spread": "24h"}, Expiry(spread=24.0 * HOUR)),
        ({"spread": "1h30m", "hardAfter": "72h"}, Expiry(spread=1.5 * HOUR, hard_after=72.0 * HOUR)),
        ({}, Expiry(hard_after=inf)),
        ({"hardAfter": "3d"}, Expiry(hard_after=inf)),
        ("24h", Expiry(hard_after=inf)),
    ],
)
def test_what_cannot_be_read_of_expiry_holds_it(given: Any, expiry: Expiry | None) -> None:
    policy = parse_policy(an_object({"expiry": given}))

    assert (policy.expiry, policy.fault != "") == (expiry, expiry == Expiry(hard_after=inf))
    # A slip elsewhere leaves what can be read of it.
    assert parse_policy(an_object({"expiry": given, "timeZone": "Europe/Nowhere"})).expiry == expiry


DRAIN = {
    "escalation": [
        {"after": "15m", "do": "Notify"},
        {"after": "24h", "do": "Force", "reasons": ["Drifted"], "blockers": ["PdbBlocks", "HookWaits"]},
    ],
    "hooks": {"timeout": "30m", "onTimeout": "Proceed"},
}


def test_what_is_said_of_drains_is_read_and_a_slip_elsewhere_leaves_it() -> None:
    force = Escalation(
        after=24.0 * HOUR,
        do=Level.FORCE,
        reasons=frozenset({"Drifted"}),
        blockers=frozenset({"PdbBlocks", "HookWaits"}),
    )
    said = DrainRules(
        escalation=(Escalation(after=900.0, do=Level.NOTIFY), force), hooks=HookRules(timeout=1800.0, proceeds=True)
    )

    for spec in ({"drain": DRAIN}, {"drain": DRAIN, "timeZone": "Europe/Nowhere"}):
        assert parse_policy(an_object(spec)).drain == said
    assert parse_policy(an_object({"drain": {"hooks": {}}})).drain == DrainRules(hooks=HookRules())


NO_VALUES = {"matchExpressions": [{"key": "tier", "operator": "In"}]}


@pytest.mark.parametrize(
    "spec",
    [
        {"drain": "x"},
        {"drain": {"escalation": [{"after": "1d", "do": "Force"}]}},
        {"drain": {"escalation": [{"after": "1h", "do": "Ask", "blockers": ["OfALaterVersion"]}]}},
        {"drain": {"hooks": {"timeout": 5}}},
        {"drain": DRAIN, "nodePoolSelector": NO_VALUES},  # it is for nobody knows which pools, so for all of them
    ],
)
def test_what_cannot_be_read_of_drains_forces_nothing_and_lets_no_hook_go(spec: Any) -> None:
    """TRM-49. Whatever another policy says of the same NodePool."""
    policy = parse_policy(an_object(spec))
    assert policy.fault and policy.drain is not None
    forces = DrainRules(
        escalation=(Escalation(after=60.0, do=Level.FORCE),), hooks=HookRules(timeout=60.0, proceeds=True)
    )
    hold = DrainHold(blockers=frozenset({Blocker.PDB_BLOCKS}), reason="Drifted")

    assert [level for _, level in steps([forces], hold)] == [Level.FORCE] and hook_rules([forces]).proceeds
    both = [forces, policy.drain]
    assert steps(both, hold) == () and forced_through(both, hold) == frozenset() and not hook_rules(both).proceeds


@pytest.mark.parametrize(
    "spec", [None, [], "x", {"nodePoolSelector": {"matchLabels": {"a": 1}}}, {"nodePoolSelector": []}]
)
def test_where_the_selector_cannot_be_read_every_pool_is_closed(spec: Any) -> None:
    policy = parse_policy(an_object(spec))

    assert policy.fault
    assert policy.selects(PROD) and policy.selects(DEV)


def test_the_rates_of_a_status_come_back_as_they_were_written() -> None:
    taken = (
        TakenRate(pool="a", rate=1, begun=2, allowed=5),
        TakenRate(pool="b", rate=0, begun=5, allowed=5, until=1_800_000_000.0),
    )
    status = render_status(PolicyStatus(rates=taken))

    assert parse_policy(an_object({"deny": [{}]}, status=status)).status.rates == taken
    assert render_status(PolicyStatus())["rates"] is None  # which takes away what stands there


SICK = {"state": "Passing", "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:10:00Z", "message": "4 of 9"}


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({}, HealthRule(max_not_ready="10%", stable_for=600.0)),
        ({"maxNotReady": "3", "stableFor": "1h"}, HealthRule(max_not_ready="3", stable_for=3600.0)),
        ({"maxNotReady": "101%"}, None),
        ({"stableFor": "169h"}, None),
        ("well", None),
    ],
)
def test_what_cannot_be_understood_of_health_closes_the_policy(given: Any, rule: HealthRule | None) -> None:
    policy = parse_policy(an_object({"health": given}))

    assert (policy.health, policy.fault == "") == (rule, rule is not None)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({}, BREAKER),
        (
            {"failures": 3, "within": "30m", "longest": "1h"},
            Brake(enough=3, window=1800.0, rests=Backoff(first=1800.0, longest=3600.0)),
        ),
        ({"failures": 0}, None),
        ({"first": "30s"}, None),
        ({"longest": "169h"}, None),
        ([], None),
    ],
)
def test_what_cannot_be_understood_of_a_breaker_closes_the_policy(given: Any, rule: Brake | None) -> None:
    policy = parse_policy(an_object({"breaker": given}))

    assert (policy.breaker and policy.breaker.brake, policy.fault == "") == (rule, rule is not None)


@pytest.mark.parametrize(
    ("health", "result"),
    [
        (SICK, HealthResult.PASSING),
        ({**SICK, "state": "Well"}, HealthResult.FAILING),
        ({**SICK, "since": "then"}, HealthResult.FAILING),
        ("well", HealthResult.FAILING),
        ([7], HealthResult.FAILING),
    ],
)
def test_a_health_that_somebody_has_spoilt_counts_as_a_failure(health: Any, result: HealthResult) -> None:
    state = parse_policy(an_object({"health": {}}, status={"openings": 7, "health": health})).status.health

    assert state is not None and state.result == result
    if health == SICK:
        assert render_status(PolicyStatus(health=state))["health"] == SICK


def test_a_status_that_somebody_has_spoilt_does_not_lift_a_policy() -> None:
    policy = parse_policy(an_object({"deny": [{}]}, status={"openings": 7, "conditions": "x"}))

    assert policy.why_closed("Empty", 0.0) == "in deny[0]"
    assert policy.status.openings == ()


def test_a_freeze_is_read() -> None:
    freeze = parse_freeze(an_object({"from": "2026-11-26T18:00:00+01:00", "until": "2026-11-30T08:00:00+01:00"}))

    assert freeze.begins == parse_time("2026-11-26T17:00:00Z")
    assert freeze.until == parse_time("2026-11-30T07:00:00Z")
    assert (freeze.what, freeze.fault) == (frozenset({"disruption", "expiry"}), "")
    assert not freeze.holds(freeze.begins - 1) and freeze.holds(freeze.begins) and not freeze.holds(freeze.until)


@pytest.mark.parametrize(
    ("spec", "until"),
    [
        ({"until": "soon"}, None),
        ({}, None),
        (None, None),
        ({"until": "2026-11-30T07:00:00Z", "from": "later"}, "2026-11-30T07:00:00Z"),
        ({"until": "2026-11-30T07:00:00Z", "what": ["everything"]}, "2026-11-30T07:00:00Z"),
        ({"until": "2026-11-30T07:00:00Z", "from": "2026-12-30T07:00:00Z"}, "2026-11-30T07:00:00Z"),
    ],
)
def test_a_freeze_that_cannot_be_understood_holds_until_its_end_or_without_one(spec: Any, until: str | None) -> None:
    freeze = parse_freeze(an_object(spec))

    assert freeze.fault
    assert freeze.until == (None if until is None else parse_time(until))
    assert freeze.holds(parse_time("2026-11-01T00:00:00Z"))


STEPS: list[Any] = [{"name": "canary", "to": "1", "soak": "30m"}, {"name": "rest", "to": "100%"}]


def test_a_rollout_is_read_with_its_place() -> None:
    status = {
        "step": {"name": "canary", "state": "Soaking", "since": "2026-11-01T00:00:00Z", "until": None},
        "target": {"nodePoolHash": "7", "begun": "2026-11-01T00:00:00Z"},
        "nodes": {"total": 4, "target": 1, "leaving": 1, "old": 2},
    }
    rollout = parse_rollout({**an_object({"nodePool": "default", "steps": STEPS, "intent": "Pause"}), "status": status})

    assert (rollout.pool, rollout.intent, rollout.fault) == ("default", "Pause", "")
    assert [(step.name, step.to, step.soak) for step in rollout.steps] == [("canary", "1", 1800.0), ("rest", "100%", 0)]
    assert (rollout.status.step, rollout.status.state, rollout.status.target) == ("canary", "Soaking", "7")
    assert rollout.status.begun == rollout.status.since == parse_time("2026-11-01T00:00:00Z")


def test_what_a_rollout_goes_back_to_is_read_as_it_was_written() -> None:
    asked = {"newLaunches": "Stable", "onFailure": "RollBack", "maxStableAge": "24h", "intent": "RollBack"}
    raw = an_object({"nodePool": "default", "steps": STEPS, **asked})
    rollout = parse_rollout(raw)
    assert (rollout.launches_stable, rollout.rolls_back, rollout.longest_stable) == (True, True, 86_400.0)
    assert (rollout.fault, rollout.intent) == ("", "RollBack")

    images = (StableImage(id="ami-1", types=("m5.large", "m5.xlarge")), StableImage(id="ami-2", types=("m6g.large",)))
    status = RolloutStatus(
        step="canary",
        state=RolloutState.ROLLING_BACK,
        since=1_700_000_000.0,
        begun=1_700_000_000.0,
        target="7",
        makes="0123",
        stable=StableImages(since=1_700_000_000.0, images=images, why_not=""),
        failure=RolloutFailure(generation=3, message="pods are not ready"),
        promoted_before=True,
    )
    for each in (status, RolloutStatus(step="canary", since=1.0, begun=1.0)):
        body = render_rollout(Rollout(name="r"), each)
        assert parse_rollout({**raw, "status": body}).status == each
    older = parse_rollout({**raw, "status": {"step": {"name": "canary", "state": "Replacing"}}})
    assert (older.status.stable, older.status.failure, older.status.makes) == (StableImages(), None, "")


def test_what_a_roll_out_asks_and_was_answered_comes_back_as_it_was_written() -> None:
    steps = [{"name": "canary", "to": "1", "approve": {"expiresAfter": "1h"}}, {"name": "rest", "to": "100%"}]
    given = Approval(step="canary", digest="1-2", by="alice", at=1_800_000_000.0)
    awaits = Awaits(digest="1-2", since=1_800_000_000.0, expires=1_800_003_600.0, shows="step rest", generation=7)
    rollout = parse_rollout(an_object({"nodePool": "default", "steps": steps, "approval": render_approval(given)}))
    assert (rollout.approval, [step.approve for step in rollout.steps]) == (given, [3600.0, None])

    for answered in (Answered(approval=given), Answered(approval=given, refused="late")):
        status = RolloutStatus(state=RolloutState.PAUSED, step="canary", awaits=awaits, answered=answered)
        written = {**an_object({"nodePool": "default", "steps": steps}), "status": render_rollout(rollout, status)}
        read = parse_rollout(written).status
        assert (read.state, read.awaits, read.answered) == (RolloutState.PAUSED, awaits, answered)
    assert render_rollout(rollout, RolloutStatus())["awaits"] is None  # which takes away what stands there


@pytest.mark.parametrize(
    ("spec", "pool"),
    [
        ({"nodePool": "default", "steps": []}, "default"),
        ({"nodePool": "default", "steps": STEPS[:1]}, "default"),
        ({"nodePool": "default", "steps": STEPS, "intent": "Rush"}, "default"),
        ({"nodePool": "default", "steps": "all"}, "default"),
        ({"steps": STEPS}, ""),
        ({"nodePool": 7, "steps": STEPS}, ""),
        ("x", ""),
        (None, ""),
    ],
)
def test_a_rollout_that_cannot_be_understood_holds_its_pool_or_all(spec: Any, pool: str) -> None:
    rollout = parse_rollout(an_object(spec))

    assert rollout.fault and rollout.pool == pool and rollout.is_held
    assert rollout.is_about("default") and rollout.is_about("other") is (pool == "")


@pytest.mark.parametrize("status", [None, {}])
def test_a_rollout_without_a_status_is_before_its_first_step(status: Any) -> None:
    rollout = parse_rollout({**an_object({"nodePool": "default", "steps": STEPS}), "status": status})

    assert (rollout.fault, rollout.status.state, rollout.is_held) == ("", "Waiting", True)


REFUSED: Any = {
    "step": {"name": "canary", "state": "Failed", "since": "2026-11-01T00:00:00Z"},
    "target": {"nodePoolHash": "7", "begun": "2026-11-01T00:00:00Z"},
    "failure": {"generation": 3, "message": "pods are not ready"},
}


@pytest.mark.parametrize(
    ("spoilt", "place"),
    [
        ({"gates": [{"name": "slo", "result": "Inconclusive"}]}, "status.gates[0].result: 'Inconclusive'"),
        ({"step": {**REFUSED["step"], "state": "Rushing"}}, "status.step.state: 'Rushing'"),
        ({"step": "canary"}, "status.step: not an object"),
        ({"nodes": {"total": "x"}}, "status.nodes.total: not a whole number"),
        ({"nodes": {"total": float("inf")}}, "status.nodes.total: not a whole number"),
        ({"awaits": {"digest": "1", "since": "x", "expires": "y"}}, "status.awaits.since: 'x' is no moment"),
        ({"awaits": {"digest": "1", "since": "2026-11-01T00:00:00Z"}}, "status.awaits.expires: it is missing"),
        ({"history": 7}, "status.history: not a list"),
        ({"target": {"nodePoolHash": 7}}, "status.target.nodePoolHash: not a text"),
    ],
)
def test_a_rollout_of_whose_status_a_part_cannot_be_read_stands_still_and_forgets_nothing(
    spoilt: Any, place: str
) -> None:
    """As another version has written it. What is written on it then leaves the status as it stands."""
    status = {**REFUSED, **spoilt}
    rollout = parse_rollout({**an_object({"nodePool": "a", "steps": STEPS}), "status": status})

    assert place in rollout.fault and rollout.fault == rollout.status.fault
    assert rollout.is_held and rollout.keeps_all and rollout.is_about("a")
    assert rollout.status.state == RolloutState.FAILED
    assert rollout.status.failure == RolloutFailure(generation=3, message="pods are not ready")
    pool = replace(a_pool(), hash="8")  # another target, for which it would begin anew
    wanted = rollout_status(rollout, with_rules(a_world([a_pair("n")], [], [pool]), rollout), NOON)
    assert wanted == replace(rollout.status, conditions=wanted.conditions)
    said = {each.type: (each.status, each.reason) for each in wanted.conditions}
    assert said == {"Ready": ("False", "NotUnderstood"), "Stalled": ("True", "NotUnderstood")}
    assert render_rollout(rollout, wanted).keys() == {"observedGeneration", "conditions"}


def test_what_is_no_field_of_a_status_says_nothing() -> None:
    more = {"fault": "x", "gate": {"result": "Passing"}, "asked": 7, "uid": []}
    raw = an_object({"nodePool": "default", "steps": STEPS, **more})

    assert parse_rollout({**raw, "status": {**REFUSED, **more}}) == parse_rollout({**raw, "status": REFUSED})


def test_a_status_that_is_no_object_holds_its_pool() -> None:
    rollout = parse_rollout({**an_object({"nodePool": "default", "steps": STEPS}), "status": "x"})

    assert (rollout.fault, rollout.is_held) == ("status: not an object: str", True)


GATES: Any = [
    {"name": "alerts", "alerts": {"firing": '{severity="critical"}', "ignore": '{alertname="Watchdog"}'}},
    {"name": "slo", "query": {"expr": "slo:errors", "max": "0.01", "min": "-1e3", "every": "30s", "failures": 3}},
]


def test_the_gates_the_order_and_the_longest_time_are_read_by_both_kinds_and_copied() -> None:
    """What is written into the NodeRollout that a policy makes is read as it was."""
    said = {"steps": STEPS, "gates": GATES, "order": "Zone", "maxDuration": "168h"}
    plan = parse_policy(an_object({"rollout": said})).rollout
    assert plan is not None
    alerts = AlertsRule(firing='{severity="critical"}', ignore='{alertname="Watchdog"}')
    query = QueryRule(expression="slo:errors", least=-1000.0, most=0.01)
    assert plan.gates == (
        AskedGate(name="alerts", alerts=alerts),
        AskedGate(name="slo", query=query, every=30.0, failures=3),
    )
    assert (plan.order, plan.longest) == (Order.ZONE, 168 * HOUR)

    made = render_new_rollout(NewRollout(name="r", pool="default", pool_uid="u", policy="p", plan=plan))
    rollout = parse_rollout(an_object(made["spec"]))
    assert rollout.fault == ""
    assert (rollout.gates, rollout.order, rollout.longest) == (plan.gates, plan.order, plan.longest)


@pytest.mark.parametrize(
    ("gate", "fault"),
    [
        ({"name": "slo"}, "exactly one of alerts and query"),
        ({"name": "slo", "alerts": {"firing": "{}"}, "query": {"expr": "1", "max": "1"}}, "exactly one of"),
        ({"name": "nodes", "alerts": {"firing": "{}"}}, "the gate nodes is always there"),
        ({"name": "slo", "query": {"expr": "up"}}, "min or max"),
        ({"name": "slo", "query": {"expr": "up", "max": "many"}}, "spec.gates.0.query.max"),
        ({"name": "slo", "query": {"expr": "up", "max": "1", "every": "14s"}}, "spec.gates[0].query.every: '14s'"),
        ({"name": "slo", "query": {"expr": "up", "max": "1", "every": "601s"}}, "not between 15s and 10m"),
        ({"name": "a", "alerts": {"firing": '{a="b"} or vector(0)'}}, "spec.gates.0.alerts.firing"),
        ({"name": "a", "alerts": {"firing": '{a="b"} unless {a="b"}'}}, "spec.gates.0.alerts.firing"),
        ({"name": "a", "alerts": {"firing": '{alertstate="pending"}'}}, "spec.gates[0].alerts.firing: alertstate can"),
        ({"name": "slo", "query": {"expr": "up", "max": "1e999"}}, "spec.gates[0].query.max: '1e999' is no number"),
        ({"name": "slo", "query": {"expr": "up", "min": "-1e999"}}, "spec.gates[0].query.min: '-1e999' is no number"),
    ],
)
def test_a_gate_that_cannot_be_understood_holds(gate: Any, fault: str) -> None:
    rollout = parse_rollout(an_object({"nodePool": "default", "steps": STEPS, "gates": [gate]}))

    assert fault in rollout.fault and rollout.is_held


@pytest.mark.parametrize(
    "selector",
    ["{}", "{ }", '{a="b"}', '{a="b",}', '{a=~"b|c", d!="e" , f!~"}{"}', r'{a="say \"no\", please"}'],
)
def test_a_selector_of_alerts_is_one_as_prometheus_writes_it(selector: str) -> None:
    gate = {"name": "a", "alerts": {"firing": selector}}
    rollout = parse_rollout(an_object({"nodePool": "default", "steps": STEPS, "gates": [gate]}))

    assert rollout.fault == "" and rollout.gates[0].alerts == AlertsRule(firing=selector)


def test_what_gates_said_and_the_story_are_written_and_read_again() -> None:
    asked = (
        GateVerdict(name="slo", result=GateResult.UNKNOWN, asked=NOON, since=NOON - 60, failed=2, message="no answer"),
        GateVerdict(name="alerts", result=GateResult.PASSING, asked=NOON, since=NOON, message=""),
        GateVerdict(name="new"),
    )
    story = (
        Passage(step="canary", began=NOON - 60, ended=NOON, result="Failed", message="pods are not ready"),
        Passage(step="canary", began=NOON),
    )
    status = RolloutStatus(step="canary", state=RolloutState.SOAKING, asked=asked, history=story)
    rollout = parse_rollout(an_object({"nodePool": "default", "steps": STEPS}))
    read = parse_rollout({**an_object({}), "status": render_rollout(rollout, status)}).status

    assert (read.asked, read.history) == (asked, story)
    schema = RolloutGate.model_validate(render_rollout(rollout, status)["gates"][1])
    assert schema.failed == 2


def test_what_was_said_of_alerts_is_read_apart_from_the_rest() -> None:
    said = GateVerdict(name="alerts", result=GateResult.FAILING, asked=NOON, since=NOON, message="alerts fire: Down")
    written = render_status(PolicyStatus(alerts=said))
    health = {"health": {"alerts": {"firing": "{}"}}}

    assert parse_policy({**an_object(health), "status": written}).status.alerts == said
    assert parse_policy({**an_object(health), "status": {**written, "rates": "x"}}).status.alerts == said
    assert parse_policy({**an_object(health), "status": {"alerts": {"result": "Fine"}}}).status.alerts is None
    assert render_status(PolicyStatus())["alerts"] is None
    rule = parse_policy(an_object(health)).health
    assert rule is not None and rule.alerts == AlertsRule(firing="{}")
