"""A DisruptionPolicy has nodes that grow old replaced first, over a while, and deleted no sooner than it says."""

import random
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from math import inf

import pytest

from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.due import next_due
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.outlook.forecast import foretell
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.lifecycle.unfinished import expired, next_expiry
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.openings import Window
from dovetail.model.own.policies import Expiry, Policy
from dovetail.model.pools import Budget, NodePool
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.rules.expiry.expiries import deleted_at, replaced_from
from worlds.disruption import HOUR, NOW, a_pair, a_pod, a_pool, a_world
from worlds.time_rules import with_rules

SETTINGS = DisruptionSettings()
DAY = 24 * HOUR
LIFE = 10 * DAY
POOL = a_pool(consolidate_after=None)
ASKS = a_pool(consolidate_after=None, annotations={names.REPLACE_FIRST: "true"})


def ageing(age: float, pool: NodePool = POOL) -> Snapshot:
    """One node that was made so long ago and expires after ten days."""
    return a_world([a_pair("n1", claim={"expire_after": LIFE, "created": NOW - age})], [a_pod("n1")], [pool])


def policy(spread: float = 0.0, hard_after: float | None = None, name: str = "p") -> Policy:
    return Policy(name=name, expiry=Expiry(spread=spread, hard_after=hard_after))


def methods(world: Snapshot) -> list[str]:
    choice = choose(world, SETTINGS, never)
    return [command.method for command in choice.commands] if isinstance(choice, DisruptionPlan) else []


def test_a_node_is_replaced_before_it_expires_within_windows_and_budgets() -> None:
    world = ageing(LIFE - DAY)

    assert methods(world) == []  # without a policy nothing is replaced for its age
    assert methods(with_rules(world, policy(spread=DAY))) == ["expiration"]
    assert methods(with_rules(ageing(LIFE - DAY - 1), policy(spread=DAY))) == []
    assert methods(with_rules(world, policy(spread=DAY), policy(spread=HOUR, name="q"))) == []  # the shortest holds

    closed = a_pool(consolidate_after=None, budgets=(Budget(nodes="0", reasons=("Drifted",)),))
    for held, why in (
        (with_rules(world, policy(spread=DAY), Policy(name="q", deny=(Window(),))), WhyNot.OUTSIDE_WINDOW),
        (with_rules(ageing(LIFE - DAY, closed), policy(spread=DAY)), WhyNot.BUDGET),
    ):
        choice = choose(held, SETTINGS, never)
        assert isinstance(choice, NothingToDo)
        assert why in {refusal.reason for refusal in choice.refusals}


def test_a_round_is_due_when_the_next_node_is_replaced_for_its_age() -> None:
    def due(*rules: Policy) -> float | None:
        return next_due(Fleet(with_rules(ageing(LIFE - 2 * DAY), *rules), SETTINGS))

    assert (due(), due(policy(spread=DAY)), due(policy(hard_after=HOUR))) == (None, NOW + DAY, NOW + 2 * DAY)
    never_ends = a_world([a_pair("n1", claim={"expire_after": None})], pools=[POOL])
    assert next_due(Fleet(with_rules(never_ends, policy(spread=DAY)), SETTINGS)) is None


@pytest.mark.parametrize(
    ("rules", "pool", "after"),
    [
        ((), POOL, 0.0),
        ((policy(spread=DAY),), POOL, 0.0),  # the hard moment is what expireAfter is without a policy
        ((policy(hard_after=HOUR),), POOL, HOUR),
        ((policy(hard_after=HOUR), policy(hard_after=DAY, name="q")), POOL, DAY),  # the longest holds
        ((policy(hard_after=HOUR),), ASKS, HOUR),
        ((policy(spread=DAY),), ASKS, inf),
        ((policy(hard_after=inf),), POOL, inf),  # what cannot be read holds
    ],
)
def test_a_node_is_deleted_for_its_age_at_the_hard_moment_and_not_before(
    rules: tuple[Policy, ...], pool: NodePool, after: float
) -> None:
    for seconds in (0.0, HOUR - 1, HOUR, DAY, 300 * DAY):
        world = with_rules(ageing(LIFE + seconds, pool), *rules)
        assert (len(expired(world)) == 1) is (seconds >= after)
    if 0 < after < inf:
        assert next_expiry(with_rules(ageing(LIFE + 1, pool), *rules)) == NOW + after - 1


def test_what_holds_for_ever_has_no_moment() -> None:
    world = with_rules(ageing(LIFE + 1), policy(hard_after=inf))
    [claim] = world.claims.values()

    assert (deleted_at(world.policies, POOL, claim), next_expiry(world)) == (None, None)


def test_a_claim_without_a_node_waits_for_no_replacement() -> None:
    world = with_rules(ageing(LIFE), policy(hard_after=DAY))
    [claim] = world.claims.values()

    assert len(expired(replace(world, claims={claim.name: replace(claim, conditions=())}))) == 1


def test_the_forecast_names_both_moments() -> None:
    world = with_rules(ageing(LIFE - 2 * DAY), policy(spread=DAY, hard_after=HOUR))

    found = [(each.at, each.text) for each in foretell(world, SETTINGS, NOW + 5 * DAY).coming if each.what == "expiry"]

    assert found == [
        (NOW + DAY, "n1 is replaced from then on for its age"),
        (NOW + 2 * DAY + HOUR, "n1 is deleted for its age if it still stands, and its pods wait for new nodes"),
    ]


@dataclass(slots=True)
class OldPool:
    """A pool whose nodes are replaced as soon as they are due, each within the minutes that a replacement takes."""

    chosen: random.Random
    now: float = NOW
    claims: dict[str, NodeClaim] = field(default_factory=dict)
    leaving: dict[str, float] = field(default_factory=dict)
    begun: list[float] = field(default_factory=list)
    made: int = 0

    def make(self) -> None:
        self.made += 1
        pair = a_pair(f"n{self.made}", claim={"expire_after": LIFE, "created": self.now})
        claim = replace(pair.claim, uid=f"{self.chosen.getrandbits(64):016x}")
        self.claims[claim.name] = claim

    def minute(self, rules: Policy) -> None:
        for name, until in list(self.leaving.items()):
            if until <= self.now:
                del self.leaving[name], self.claims[name]
        due = replaced_from({"p": rules}, POOL, self.claims.values())
        for name, moment in due.items():
            if moment <= self.now and name not in self.leaving:
                assert self.now < (self.claims[name].expires_at or inf)  # none is due too late
                self.leaving[name] = self.now + 60 * self.chosen.randrange(2, 10)
                self.begun.append(self.now)
                self.make()
        self.now += 60.0

    def most_in_an_hour(self) -> int:
        return max(n + 1 - bisect_left(self.begun, at - HOUR + 1) for n, at in enumerate(self.begun))


@pytest.mark.parametrize("lost", [0, 40])
@pytest.mark.parametrize("seed", range(3))
def test_of_two_hundred_nodes_of_one_age_no_more_than_fifteen_begin_to_leave_in_any_hour(seed: int, lost: int) -> None:
    """Spread over a day; some of them go for other reasons meanwhile."""
    pool, rules = OldPool(random.Random(seed)), policy(spread=DAY)
    for _ in range(200):
        pool.make()
    old = set(pool.claims)
    gone = {pool.chosen.randrange(1440): name for name in pool.chosen.sample(sorted(old), lost)}
    pool.now = NOW + LIFE - DAY - HOUR
    for minute in range(1500 - 60):
        name = gone.get(minute, "")
        if name in pool.claims and name not in pool.leaving:
            del pool.claims[name]
            pool.make()
        pool.minute(rules)
    pool.now += 600
    pool.minute(rules)

    assert pool.most_in_an_hour() <= 15
    assert not old & set(pool.claims)
