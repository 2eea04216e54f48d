"""Which rule holds which reason, and what cannot be understood, as Prometheus reads it."""

from dataclasses import replace

from dovetail.model.own.openings import Window
from dovetail.model.own.policies import Freeze, Opening, Policy, PolicyStatus
from dovetail.model.own.rates import Rate
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.ours.time_rules import HELP, time_rule_samples
from worlds.disruption import HOUR, NOW, a_pool, a_world
from worlds.time_rules import with_rules


def lines(*rules: Policy | Freeze) -> set[str]:
    world = with_rules(a_world(pools=[a_pool("a")]), *rules)
    return {line for line in measured(time_rule_samples(world), HELP, "dovetail_") if not line.startswith("#")}


def test_each_reason_has_the_first_rule_that_holds_it_and_none_where_none_does() -> None:
    shut = Policy(name="p", deny=(Window(reasons=frozenset({"Drifted"})),), rates=(Rate(nodes="0", per=HOUR),))

    assert lines(shut) == {
        'dovetail_beginnings_held{rule="window",reason="Drifted",pool="a"} 1',
        *(f'dovetail_beginnings_held{{rule="rate",reason="{each}",pool="a"}} 1' for each in ("Empty", "Expired")),
        'dovetail_beginnings_held{rule="rate",reason="Underutilized",pool="a"} 1',
        'dovetail_beginnings_held{rule="rate",reason="Unhealthy",pool="a"} 1',
        'dovetail_time_rule_not_understood{kind="DisruptionPolicy",name="p"} 0',
    }


def test_a_freeze_that_is_not_understood_holds_and_is_named() -> None:
    found = lines(Freeze(name="f", until=NOW + HOUR, fault="spec.from: no date"))

    assert 'dovetail_time_rule_not_understood{kind="Freeze",name="f"} 1' in found
    assert 'dovetail_beginnings_held{rule="freeze",reason="Requested",pool="a"} 1' in found
    assert len(found) == 7


def test_a_reason_whose_windows_never_open_is_named() -> None:
    shut = Opening(reason="Drifted", open=False, why="closed by deny")
    later = Opening(reason="Empty", open=False, until=NOW + HOUR, why="closed by deny")
    policy = Policy(name="p", status=PolicyStatus(openings=(shut, later)))

    assert {line for line in lines(policy) if "never" in line} == {
        'dovetail_policy_never_opens{name="p",reason="Drifted"} 1',
        'dovetail_policy_never_opens{name="p",reason="Empty"} 0',
    }
    assert not any("never" in line for line in lines(replace(policy, fault="spec.timeZone: no zone")))
