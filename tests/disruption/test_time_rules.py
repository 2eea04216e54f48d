"""Windows and Freezes hold nodes back in every decision, each for its own pools and reasons, and say until when."""

import random
from dataclasses import replace
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.explain import explain_node
from dovetail.disruption.outlook.forecast import foretell
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.lifecycle.unfinished import expired
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.own.openings import Window, wall_clock
from dovetail.model.own.policies import Freeze, Policy, closed
from dovetail.model.own.rates import Rate
from dovetail.model.pods import Expression, LabelSelector
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.rules.rate.rates import BegunNodes, with_begun
from worlds.disruption import HOUR, NOW, a_pair, a_pod, a_pool, a_world
from worlds.time_rules import ZONES, a_moment, a_window, with_rules

SETTINGS = DisruptionSettings()
BERLIN = ZoneInfo("Europe/Berlin")
EMPTY = a_world([a_pair("n1"), a_pair("n2")])
NO_CONSOLIDATION = [a_pool(consolidate_after=None)]
DRIFTED = a_world([a_pair("n1", also=(names.DRIFTED,))], [a_pod("n1")], NO_CONSOLIDATION)
REPLACED = a_world(
    [a_pair("n1", claim={"expire_after": HOUR})],
    [a_pod("n1")],
    [a_pool(annotations={names.REPLACE_FIRST: "true"}, consolidate_after=None)],
)
ASKED_FOR = a_world(
    [a_pair("n1", claim={"annotations": {names.REPLACE: "a new disk"}})], [a_pod("n1")], NO_CONSOLIDATION
)
DEFAULT = a_pool().name


def at_night(*reasons: str) -> Window:
    """From 23:00 to 05:00; NOW is 22:13:20 in UTC and 23:13:20 in Berlin."""
    return Window(start=23 * 3600, end=5 * 3600, reasons=frozenset(reasons))


def methods(world: Snapshot) -> list[str]:
    choice = choose(world, SETTINGS, never)
    return [command.method for command in choice.commands] if isinstance(choice, DisruptionPlan) else []


@pytest.mark.parametrize(
    ("world", "method", "reason"),
    [
        (EMPTY, "emptiness", "Empty"),
        (DRIFTED, "drift", "Drifted"),
        (REPLACED, "expiration", "Expired"),
        (ASKED_FOR, "requests", "Requested"),
    ],
)
def test_a_method_begins_in_the_windows_of_its_reason_alone(world: Snapshot, method: str, reason: str) -> None:
    others = {str(each) for each in DisruptionReason} - {reason}

    def found(allow: tuple[Window, ...] = (), deny: tuple[Window, ...] = (), zone: str = "UTC") -> list[str]:
        return methods(with_rules(world, Policy(name="p", allow=allow, deny=deny, zone=zone)))

    assert methods(world) == [method]
    assert found(allow=(at_night(reason),)) == []  # in UTC the night has not begun
    assert found(allow=(at_night(reason),), zone="Europe/Berlin") == [method]
    assert found(allow=(at_night(*others),)) == [method]  # a reason that none names stays open
    assert found(allow=(at_night(),)) == []
    assert found(deny=(at_night(reason),), zone="Europe/Berlin") == []
    assert found(deny=(at_night(*others),), zone="Europe/Berlin") == [method]
    assert found(allow=(at_night(),), deny=(at_night(reason),), zone="Europe/Berlin") == []  # deny wins


def test_all_policies_of_a_pool_must_be_open_and_others_are_not_asked() -> None:
    shut, open_ = Policy(name="a", deny=(Window(),)), Policy(name="b", allow=(Window(),))
    elsewhere = LabelSelector(expressions=(Expression(key="tier", operator="In", values=("other",)),))

    assert methods(with_rules(DRIFTED, open_)) == ["drift"]
    assert methods(with_rules(DRIFTED, open_, shut)) == []
    assert methods(with_rules(DRIFTED, open_, replace(shut, selector=elsewhere))) == ["drift"]


def test_a_policy_that_is_not_understood_closes_its_pools_and_others_go_on() -> None:
    pools = [a_pool("a", labels={"tier": "prod"}), a_pool("b")]
    world = a_world([a_pair("n1", pool="a"), a_pair("n2", pool="b")], pools=pools)
    prod = LabelSelector(expressions=(Expression(key="tier", operator="In", values=("prod",)),))
    choice = choose(with_rules(world, Policy(name="p", selector=prod, fault="spec.timeZone: none")), SETTINGS, never)

    assert isinstance(choice, DisruptionPlan)
    assert {target.pool for command in choice.commands for target in command.targets} == {"b"}


def test_the_refusal_and_explain_say_which_rule_holds_and_until_when() -> None:
    world = with_rules(DRIFTED, Policy(name="nights", allow=(at_night("Drifted"),)))
    choice = choose(world, SETTINGS, never)

    assert isinstance(choice, NothingToDo)
    [refusal] = [each for each in choice.refusals if each.reason == WhyNot.OUTSIDE_WINDOW]
    words = (
        f"Drifted may not begin for NodePool {DEFAULT} until 2023-11-14T23:00:00Z, "
        "by DisruptionPolicy nights: outside allow[0]"
    )
    assert words in refusal.examples[0]
    assert choice.next_due == NOW + 2800  # it looks again when the window opens
    assert words in {answer.message for answer in explain_node(world, SETTINGS, "n1").methods}


def test_a_freeze_is_a_pause_with_a_beginning_and_an_end() -> None:
    freeze = Freeze(name="peak", begins=NOW, until=NOW + HOUR, what=frozenset({"disruption"}), reason="peak season")
    choice = choose(with_rules(DRIFTED, freeze), SETTINGS, never)

    assert isinstance(choice, NothingToDo)
    [refusal] = [each for each in choice.refusals if each.reason == WhyNot.PAUSED]
    assert (
        "disruption paused for all NodePools until 2023-11-14T23:13:20Z, by Freeze peak: peak season"
        in (refusal.examples[0])
    )
    assert choice.next_due == NOW + HOUR
    assert methods(with_rules(DRIFTED, replace(freeze, begins=NOW + 1))) == ["drift"]
    assert methods(with_rules(DRIFTED, replace(freeze, until=NOW))) == ["drift"]
    assert methods(with_rules(DRIFTED, replace(freeze, what=frozenset({"expiry"})))) == ["drift"]
    assert methods(with_rules(DRIFTED, replace(freeze, what=frozenset(), fault="unreadable"))) == []


def test_what_has_expired_waits_for_a_freeze_and_not_for_a_window() -> None:
    world = a_world([a_pair("n1", claim={"expire_after": HOUR})])
    freeze = Freeze(name="peak", until=NOW + HOUR, what=frozenset({"expiry"}))

    assert len(expired(with_rules(world, Policy(name="p", deny=(Window(),))))) == 1
    assert expired(with_rules(world, freeze)) == ()


def test_who_asks_for_a_node_now_does_not_wait_for_a_window() -> None:
    now = {names.REPLACE: "a new disk", names.REPLACE_NOW: "true"}
    world = a_world([a_pair("n1", claim={"annotations": now})], [a_pod("n1")])

    assert methods(with_rules(world, Policy(name="p", deny=(Window(),)))) == ["requests"]
    assert methods(with_rules(world, Freeze(name="f", until=NOW + HOUR))) == []


def test_the_forecast_names_what_opens_what_closes_and_what_freezes() -> None:
    policy = Policy(name="nights", allow=(at_night("Drifted", "Expired"),))
    freeze = Freeze(name="peak", begins=NOW + HOUR, until=NOW + 3 * HOUR, what=frozenset({"disruption"}))
    found = foretell(with_rules(EMPTY, policy, freeze), SETTINGS, NOW + 12 * HOUR).coming

    assert [(each.at, each.text) for each in found if each.what in ("window", "pause")] == [
        (NOW + 2800, "Drifted, Expired may begin"),
        (
            NOW + HOUR,
            "Freeze peak of disruption begins, until 2023-11-15T01:13:20Z, by Freeze peak: no reason given",
        ),
        (NOW + 3 * HOUR, "Freeze peak of disruption ends"),
        (
            NOW + 2800 + 6 * HOUR,
            "Drifted, Expired may not begin until 2023-11-15T23:00:00Z, by DisruptionPolicy nights: outside allow[0]",
        ),
    ]


def six_drifted(*rates: Rate) -> Snapshot:
    """In a NodePool whose budgets let all go at once."""
    pairs = [a_pair(f"n{number}", also=(names.DRIFTED,)) for number in range(6)]
    pods = [a_pod(f"n{number}", cpu="5") for number in range(6)]
    return with_rules(a_world(pairs, pods, NO_CONSOLIDATION), Policy(name="slow", rates=rates))


def test_a_decision_takes_what_rates_leave_and_then_says_which_one_holds_and_until_when() -> None:
    world = six_drifted(Rate(nodes="2", per=HOUR), Rate(nodes="4", per=24 * HOUR))
    choice = choose(world, SETTINGS, never)
    assert isinstance(choice, DisruptionPlan)
    assert sum(len(command.targets) for command in choice.commands) == 2

    begun = with_begun(a_pool(consolidate_after=None), [BegunNodes(NOW - 600, "Drifted", nodes=2)], {HOUR}, NOW)
    full = replace(world, pools={DEFAULT: begun})
    held = choose(full, SETTINGS, never)
    assert isinstance(held, NothingToDo)
    [refusal] = [each for each in held.refusals if each.reason == WhyNot.RATE_REACHED]
    assert refusal.count == 6
    assert "by DisruptionPolicy slow: rates[0], 2 of at most 2 nodes have begun within 1h" in refusal.examples[0]
    assert held.next_due == NOW - 600 + HOUR * 1.005
    assert any("rates[0]" in answer.message for answer in explain_node(full, SETTINGS, "n1").methods)


def test_the_forecast_plays_drift_at_the_pace_of_the_rates() -> None:
    world = six_drifted(Rate(nodes="2", per=HOUR))

    found = foretell(world, SETTINGS, NOW + 12 * HOUR)

    assert [(round((wave.begins - NOW) / HOUR, 1), len(wave.departures)) for wave in found.drift.waves] == [
        (0.0, 2),
        (1.0, 2),
        (2.0, 2),
    ]
    begun = with_begun(a_pool(consolidate_after=None), [BegunNodes(NOW - 600, "Drifted", nodes=2)], {HOUR}, NOW)
    [coming] = [
        each
        for each in foretell(replace(world, pools={DEFAULT: begun}), SETTINGS, NOW + 12 * HOUR).coming
        if each.what == "window"
    ]
    assert coming.at == NOW - 600 + HOUR * 1.005
    assert coming.text.startswith("Empty, Drifted, Underutilized, Unhealthy, Expired may begin again: no more until ")


@pytest.mark.parametrize("seed", [*range(5), *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 60)]])
def test_the_forecast_is_what_the_predicate_says_by_the_minute(seed: int) -> None:
    assert_foretold(seed)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(50))
def test_the_forecast_is_what_the_predicate_says_for_ten_thousand_policies(part: int) -> None:
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        assert_foretold(seed)


def assert_foretold(seed: int) -> None:
    """Over three days, of one reason under two policies."""
    chosen = random.Random(seed)
    start, pool = float(int(a_moment(chosen) // 60) * 60), a_pool()
    policies = {
        name: Policy(
            name=name,
            zone=chosen.choice(ZONES),
            allow=tuple(a_window(chosen) for _ in range(chosen.randrange(3))),
            deny=tuple(a_window(chosen) for _ in range(chosen.randrange(3))),
        )
        for name in ("a", "b")
    }
    world = replace(with_rules(a_world([], pools=[pool]), *policies.values()), now=start)
    ours = tuple(policies.values())
    minutes = range(int(start), int(start) + 3 * 86_400, 60)
    # Not `closed` for every minute: it works out until when as well, which is four fifths of the time.
    states = [(float(at), not any(each.why_closed("Drifted", at) for each in ours)) for at in minutes]
    scanned = [(at, is_open) for (_, before), (at, is_open) in pairs(states) if before != is_open]
    assert [closed(ours, pool, "Drifted", at) is None for at, _ in scanned] == [is_open for _, is_open in scanned]

    found = [
        (each.at, not each.text.partition("may ")[2].startswith("not"))
        for each in foretell(world, SETTINGS, minutes[-1]).coming
        if each.what == "window" and "Drifted" in each.text.partition(" may ")[0].split(", ")
    ]

    assert found == scanned


def pairs(states: list[tuple[float, bool]]) -> list[tuple[tuple[float, bool], tuple[float, bool]]]:
    return list(pairwise(states))


def test_the_wall_clock_of_a_zone_is_that_of_its_people() -> None:
    assert wall_clock(NOW, BERLIN) - int(NOW) == 3600
