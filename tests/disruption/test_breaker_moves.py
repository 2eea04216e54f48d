"""What a NodePool's breakers become by its replacements, and what a day with an image that never comes up costs."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.outlook.forecast import foretell
from dovetail.disruption.outlook.waves import outlook
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.own.breaker_rules import BREAKER, BreakerRule
from dovetail.model.own.claim_memory import Pin, with_memory
from dovetail.model.own.policies import Policy
from dovetail.model.own.rollouts import Rollout, RolloutState, RolloutStatus, RolloutStep
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.brake import Brake
from dovetail.model.values.memory import mark
from dovetail.rules.brake.breaker_moves import breakers_look_again, next_breakers
from dovetail.rules.brake.breakers import (
    PROBE,
    Breaker,
    Happened,
    breaker_of,
    open_breakers,
    probe_of,
    with_breaker,
    with_failures_answered,
)
from worlds.disruption import HOUR, NOW, Pair, a_pair, a_pod, a_pool, a_world, condition
from worlds.time_rules import with_rules

SETTINGS = DisruptionSettings()
RULE = Brake(enough=3, window=1800.0, rests=replace(BREAKER.rests, first=600.0))
OPEN = Breaker(
    reason="Drifted", failures=tuple(Happened(NOW - 900 - n, f"{n:08x}") for n in (2, 1, 0)), opened=NOW - 900
)
TRIED = replace(OPEN, probe=probe_of("c/disrupt/p1", NOW - 300))


def a_replacement(
    name: str, initialized: float, *, ready: str = "True", since: float | None = None, reason: str = "Drifted"
) -> Pair:
    pair = a_pair(
        name, node={"conditions": (condition("Ready", changed=initialized if since is None else since, status=ready),)}
    )
    conditions = tuple(c for c in pair.claim.conditions if c.type != names.INITIALIZED_CONDITION)
    claim = replace(
        pair.claim,
        created=initialized - 60,
        annotations=with_memory({}, replacement_for=reason),
        conditions=(*conditions, condition(names.INITIALIZED_CONDITION, changed=initialized)),
    )
    return replace(pair, claim=claim)


def looked(pool: NodePool, pairs: Iterable[Pair], now: float = NOW, *rollouts: Rollout) -> NodePool:
    return next_breakers(pool, replace(with_rules(a_world(list(pairs), pools=[pool]), *rollouts), now=now), RULE, now)


def moved(known: Breaker | None, pairs: Iterable[Pair] = (), now: float = NOW) -> Breaker | None:
    pool = a_pool() if known is None else with_breaker(a_pool(), known)
    return breaker_of(looked(pool, pairs, now), "Drifted")


@pytest.mark.parametrize(
    ("pair", "counts"),
    [
        (a_replacement("r", NOW - 400, ready="Unknown", since=NOW - 100), True),
        (a_replacement("r", NOW - 400, ready="False", since=NOW - 101), True),
        (a_replacement("r", NOW - 500, ready="Unknown", since=NOW - 199), False),  # it was ready for longer
        (a_replacement("r", NOW - 2000, ready="Unknown", since=NOW - 1801), False),  # long ago
        (a_replacement("r", NOW - 400, since=NOW - 100), False),  # it is ready again
        (a_replacement("r", NOW - 400, ready="Unknown", since=NOW - 100, reason=""), False),  # made for pending pods
    ],
)
def test_a_replacement_that_does_not_stay_ready_for_five_minutes_has_failed(pair: Pair, counts: bool) -> None:
    found = moved(None, [pair])

    assert (found is not None) is counts
    if found is not None:
        assert found.failures == (Happened(NOW, mark(pair.claim.uid)),)
        assert moved(found, [pair], NOW + 5) == found, "once"


@pytest.mark.parametrize(
    ("pair", "closes"),
    [
        (a_replacement("r", NOW - 300), True),
        (a_replacement("r", NOW - 299), False),
        (a_replacement("r", NOW - 800, since=NOW - 299), False),  # it was not ready in between
        (a_replacement("r", NOW - 901), False),  # before the last failure
        (a_replacement("r", NOW - 300, ready="Unknown", since=NOW - 1), False),
        (a_replacement("r", NOW - 300, reason="Empty"), False),
    ],
)
@pytest.mark.parametrize("known", [OPEN, TRIED, Breaker(reason="Drifted", failures=(Happened(NOW - 900, "00000001"),))])
def test_a_replacement_that_has_stayed_ready_for_five_minutes_ends_it(known: Breaker, pair: Pair, closes: bool) -> None:
    found = moved(known, [pair])
    assert (found == Breaker(reason="Drifted", ended=known.last)) is closes and found is not None


@pytest.mark.parametrize("resumed", [False, True])
def test_what_has_failed_counts_once_and_no_more_when_a_good_one_or_a_person_has_ended_it(resumed: bool) -> None:
    """The nodes that failed stand there, perhaps for hours."""
    failed = [a_replacement(f"r{n}", NOW - 400, ready="Unknown", since=NOW - 100) for n in range(3)]
    opened = looked(a_pool(), failed)
    assert [each.reason for each in open_breakers(opened)] == ["Drifted"]

    pairs = failed if resumed else [*failed, a_replacement("good", NOW + 60)]
    pool = with_failures_answered(opened, NOW) if resumed else looked(opened, pairs, NOW + 360)
    for later in (370, 500, 1500):
        assert looked(pool, pairs, NOW + later) == pool and not open_breakers(pool)
    another = a_replacement("another", NOW + 360, ready="Unknown", since=NOW + 420)
    found = breaker_of(looked(pool, [*pairs, another], NOW + 425), "Drifted")
    assert found is not None and found.failures == (Happened(NOW + 425, mark(another.claim.uid)),)
    assert names.BREAKER not in looked(pool, pairs, NOW + 1800).annotations


def test_what_was_made_before_a_person_resumed_and_fails_after_it_is_no_failure_of_what_was_mended() -> None:
    pool = with_failures_answered(with_breaker(a_pool(), OPEN), NOW)
    late = [a_replacement(f"r{n}", NOW + 30, ready="Unknown", since=NOW + 100) for n in range(3)]
    anew = [a_replacement(f"n{n}", NOW + 90, ready="Unknown", since=NOW + 100) for n in range(3)]

    assert looked(pool, late, NOW + 100) == pool
    assert [each.reason for each in open_breakers(looked(pool, [*late, *anew], NOW + 100))] == ["Drifted"]


def test_a_replacement_at_another_template_says_nothing() -> None:
    pair = a_replacement("r", NOW - 300)
    claim = replace(pair.claim, annotations={**pair.claim.annotations, names.NODE_POOL_HASH: "2"})

    assert moved(OPEN, [replace(pair, claim=claim)]) == OPEN


@pytest.mark.parametrize(("makes", "counts"), [("image-2", 3), ("", 3), ("image-3", 0)])
def test_a_failure_of_an_image_that_a_roll_out_has_left_is_no_evidence_against_the_next(
    makes: str, counts: int
) -> None:
    """Three that come to nothing at once would take the next image back before a node has it."""
    failed = [a_replacement(f"r{n}", NOW - 400, ready="Unknown", since=NOW - 100) for n in range(3)]
    aim = Pin(target="image-2")
    made = [
        replace(p, claim=replace(p.claim, annotations=with_memory(p.claim.annotations, roll_out=aim))) for p in failed
    ]
    status = RolloutStatus(step="canary", state=RolloutState.REPLACING, begun=NOW - 200, makes=makes)
    rollout = Rollout(name="r", pool=a_pool().name, steps=(RolloutStep(name="canary", to="1"),), status=status)
    found = breaker_of(looked(a_pool(), made, NOW, rollout), "Drifted")

    assert (0 if found is None else len(found.failures)) == counts


def test_a_try_that_left_no_trace_is_over_after_a_while_and_one_that_goes_on_is_not() -> None:
    marked = a_pair("n1", claim={"annotations": {names.OWNER: "c/disrupt/p1"}})
    begun = NOW - 300

    assert moved(TRIED, now=begun + PROBE - 1) == TRIED
    assert moved(TRIED, now=begun + PROBE) == replace(TRIED, probe=None)
    assert moved(TRIED, [marked], now=begun + 10 * PROBE) == TRIED


def test_failures_of_long_ago_are_forgotten_and_each_change_has_its_moment() -> None:
    known = Breaker(reason="Drifted", failures=(Happened(NOW, "00000001"),))
    pool = with_breaker(a_pool(), known)
    world = a_world([a_replacement("r", NOW - 100)], pools=[pool])

    assert moved(known, now=NOW + 1799) == known
    assert moved(known, now=NOW + 1800) is None
    assert sorted(breakers_look_again(pool, world, RULE)) == [NOW + 200, NOW + 1800]
    tried = with_breaker(a_pool(), TRIED)
    assert list(breakers_look_again(tried, world, RULE)) == [NOW + 200, NOW - 300 + PROBE]


DRIFTED = [a_pair(f"n{number}", also=(names.DRIFTED,)) for number in range(12)]


def a_fleet(pool: NodePool, now: float = NOW, policy: Policy | None = None) -> Snapshot:
    world = a_world(DRIFTED, [a_pod(pair.node.name, "5") for pair in DRIFTED], [pool])
    return replace(with_rules(world, *(() if policy is None else (policy,))), now=now)


def test_the_refusal_and_the_forecast_say_when_one_is_tried_and_that_it_is_one() -> None:
    held = a_fleet(with_breaker(a_pool(consolidate_after=None), replace(OPEN, opened=NOW - 60)))
    choice = choose(held, SETTINGS, never)
    words = "were not ready in time or did not stay so: one is tried at 2023-11-14T22:42:20Z"

    assert isinstance(choice, NothingToDo)
    [refusal] = [each for each in choice.refusals if each.reason == WhyNot.BREAKER_OPEN]
    assert words in refusal.examples[0] and choice.next_due == NOW + 1740
    assert NOW + 1740 in [each.at for each in foretell(held, SETTINGS, NOW + HOUR).coming if words in each.text]
    first, second, *_ = outlook(held, SETTINGS, NOW + 96 * HOUR).waves
    assert (first.begins, len(first.departures), len(second.departures)) == (NOW + 1740, 1, 11)
    assert second.begins == first.ends + 300


def test_while_one_is_tried_no_other_begins() -> None:
    assert (
        choose(a_fleet(with_breaker(a_pool(consolidate_after=None), TRIED)), SETTINGS, never).__class__ is NothingToDo
    )
    due = choose(
        a_fleet(with_breaker(a_pool(consolidate_after=None), replace(OPEN, opened=NOW - 1800))), SETTINGS, never
    )
    assert isinstance(due, DisruptionPlan)
    assert sum(len(command.targets) for command in due.commands) == 1


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        (BREAKER, 8),
        (replace(BREAKER, rests=Backoff(first=600.0, longest=6 * HOUR)), 10),
        (Brake(enough=5, window=HOUR, rests=Backoff(first=600.0, longest=6 * HOUR)), 12),
    ],
)
def test_a_day_with_an_image_that_never_comes_up_costs_few_launches(rule: Brake, most: int) -> None:
    """One node at a time, each given back after ten minutes; with a memory of nodes alone these are more than a
    hundred."""
    said = BreakerRule(failures=rule.enough, within=rule.window, first=rule.rests.first, longest=rule.rests.longest)
    policy = Policy(name="p", breaker=said)
    pool, now, launches = a_pool(consolidate_after=None), NOW, 0
    while now < NOW + 24 * HOUR:
        choice = choose(a_fleet(pool, now, policy), SETTINGS, never)
        if isinstance(choice, DisruptionPlan):
            launches += 1
            known = breaker_of(pool, "Drifted")
            if known is not None and known.opened is not None:
                pool = with_breaker(pool, replace(known, probe=Happened(now, "0000beef")))
            now += 601
            known = breaker_of(pool, "Drifted") or Breaker(reason="Drifted")
            pool = with_breaker(pool, known.failed(f"{launches:08x}", rule, now))
        else:
            assert isinstance(choice, NothingToDo) and choice.next_due is not None and choice.next_due > now
            now = choice.next_due

    assert launches == most
