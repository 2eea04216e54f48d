"""A NodePool's breaker, as several workers that are killed at any moment write it."""

import asyncio
import random
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.breakers import BreakerMemory
from dovetail.activities.disruption.give_back import GiveBack
from dovetail.activities.upkeep.breakers import BreakerUpkeep
from dovetail.messages.outcomes import MarkOutcome
from dovetail.messages.requests import GiveBackRequest
from dovetail.model import names
from dovetail.model.own.breaker_rules import BreakerRule
from dovetail.model.own.claim_memory import Pin, with_memory
from dovetail.model.own.policies import Policy, TimeRules
from dovetail.model.own.rollouts import Rollout, RolloutState, RolloutStatus, RolloutStep
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Conflict
from dovetail.rules.brake.breakers import (
    Breaker,
    Happened,
    breaker_of,
    open_breakers,
    with_breaker,
    with_failures_answered,
)
from tests.activities.test_rates import Killed, Kills, Pools, Scene
from tests.lifecycle.objects import a_joined_claim
from worlds.fakes import FakeClaims, FakeNotices, FakePods, World, live_pauses

SAID = BreakerRule(within=1800.0, first=600.0)
RULE = SAID.brake
POLICY = Policy(name="p", breaker=SAID)
OPEN = Breaker(reason="Drifted", failures=(Happened(10.0, "00000001"),), opened=10.0)
TEMPORAL_TRIES = 30


def opened(scene: Scene, breaker: Breaker = OPEN) -> None:
    scene.rules.policy = POLICY
    scene.pools.pool = with_breaker(scene.pools.pool, breaker)


def known(pools: Pools) -> Breaker:
    found = breaker_of(pools.pool, "Drifted")
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(20))
async def test_exactly_one_of_the_disruptions_of_two_schedulers_begins_where_one_is_tried(seed: int) -> None:
    """Both know the same cluster and plan as they like; their workers are killed before and after writes."""
    chosen = random.Random(seed)
    scene = Scene(6, kills=Kills(chosen, left=10, chance=0.4))
    scene.world.clock = 700.0
    opened(scene)
    running, ended = {f"c/disrupt/{n}": target for n, target in enumerate(scene.targets)}, list[MarkOutcome]()
    for _ in range(TEMPORAL_TRIES):
        begun = [scene.mark(owner, target, worker=chosen.randrange(2)) for owner, target in running.items()]
        for owner, answer in zip(list(running), await asyncio.gather(*begun, return_exceptions=True), strict=True):
            if isinstance(answer, Killed | Conflict):
                continue
            assert isinstance(answer, MarkOutcome), answer
            del running[owner]
            ended.append(answer)

    assert not running and len(scene.marks) == 1
    [winner] = [outcome.marked for outcome in ended if outcome.marked]
    assert len(winner) == 1
    assert all("one is being tried since 1970-01-01T00:1" in why for each in ended for _, why in each.refused)
    assert known(scene.pools).probe is not None


async def test_a_try_that_is_refused_at_the_mark_leaves_its_place_to_another() -> None:
    scene = Scene(2)
    scene.world.clock = 700.0
    opened(scene)
    del scene.world.nodes["node-0"]

    assert (await scene.mark("c/disrupt/0", scene.targets[0])).marked == ()
    assert known(scene.pools) == OPEN
    assert (await scene.mark("c/disrupt/1", scene.targets[1])).marked == ("pool-1",)


async def test_what_a_person_requests_takes_no_place_and_is_not_held() -> None:
    scene = Scene(2)
    scene.world.clock = 100.0
    opened(scene)
    scene.ask_for(scene.targets[0])

    assert (await scene.mark("c/disrupt/0", scene.targets[0], reason="Requested")).marked == ("pool-0",)
    [(_, why)] = (await scene.mark("c/disrupt/1", scene.targets[1])).refused
    assert "one is tried at 1970-01-01T00:10:10Z" in why
    assert known(scene.pools) == OPEN


@dataclass(frozen=True)
class Rules:
    rollouts: tuple[Rollout, ...] = ()

    async def read(self, _: str) -> TimeRules:
        return TimeRules(policies={"p": POLICY}, rollouts={each.name: each for each in self.rollouts})


async def give_back(pools: Pools, plan: str, rules: Rules = Rules()) -> None:
    """The step, by as many workers as it takes; each knows what stands in the cluster and nothing else."""
    claim = replace(
        a_joined_claim("new", annotations={names.PLAN: f"{plan}/0", **with_memory({}, roll_out=Pin(target="image-2"))}),
        labels={names.NODE_POOL: "pool"},
        provider_id="aws:///zone/i-9",
        conditions=(),
        created=pools.world.clock - 600.0,
    )
    world = World()
    world.put(claim)
    request = GiveBackRequest(plan_id=plan, names=("new",), why="not ready in time", method="drift")
    for _ in range(TEMPORAL_TRIES):
        live = live_pauses(pools.world, pools=pools, rules=rules)
        step = GiveBack(FakeClaims(world), FakePods(world), BreakerMemory(pools, live, pools.world.now))
        try:
            await ActivityEnvironment().run(step.give_back, request)
        except Killed:
            continue
        return
    raise AssertionError("the step never came to its end")


@pytest.mark.parametrize("seed", range(10))
async def test_the_count_and_the_rest_outlive_the_workers(seed: int) -> None:
    pools = Pools(World(), Kills(random.Random(seed), left=12, chance=0.5))
    for plan in ("a", "b", "c"):
        await give_back(pools, plan)
        pools.world.clock += 300.0

    failed = known(pools)
    assert (len(failed.failures), failed.tries, failed.until(RULE)) == (3, 0, (failed.opened or 0.0) + 600.0)
    pools.pool = with_breaker(pools.pool, replace(failed, probe=Happened(failed.until(RULE) or 0.0, "0000beef")))
    pools.world.clock += 1200.0
    await give_back(pools, "d")

    failed = known(pools)
    assert (len(failed.failures), failed.tries, failed.until(RULE)) == (4, 1, (failed.opened or 0.0) + 1200.0)


@pytest.mark.parametrize(("waited", "opens"), [(300.0, False), (599.0, False), (600.0, True)])
async def test_what_was_made_before_a_person_resumed_and_is_given_up_later_opens_nothing_again(
    waited: float, opens: bool
) -> None:
    """Replacements of the broken image wait ten minutes, and a person mends the EC2NodeClass meanwhile."""
    pools = Pools(World(), Kills())
    pools.world.clock = 1000.0
    pools.pool = with_failures_answered(with_breaker(pools.pool, OPEN), 1000.0)
    pools.world.clock += waited
    for plan in ("a", "b", "c"):
        await give_back(pools, plan)

    assert bool(open_breakers(pools.pool)) is opens


@pytest.mark.parametrize(("makes", "counts"), [("image-2", True), ("", True), ("image-3", False)])
async def test_what_was_made_for_an_image_that_a_roll_out_has_left_is_no_failure_of_the_next(
    makes: str, counts: bool
) -> None:
    status = RolloutStatus(step="canary", state=RolloutState.REPLACING, makes=makes)
    rollout = Rollout(name="r", pool="pool", steps=(RolloutStep(name="canary", to="1"),), status=status)
    pools = Pools(World(), Kills())
    await give_back(pools, "a", Rules((rollout,)))

    assert (breaker_of(pools.pool, "Drifted") is not None) is counts


async def test_upkeep_publishes_what_holds_once_and_takes_off_what_holds_no_more() -> None:
    pools = Pools(World(), Kills())
    pools.world.clock = 1000.0
    opened_pool = with_breaker(pools.pool, OPEN)
    pools.pool = with_breaker(opened_pool, Breaker(reason="Empty", failures=(Happened(10.0, "00000002"),)))
    upkeep = BreakerUpkeep(cast(Any, pools), FakeNotices(pools.world), lambda: pools.world.clock + 3600.0)

    def snapshot() -> Snapshot:
        return Snapshot(now=pools.world.clock, pools={"pool": pools.pool}, policies={"p": POLICY})

    for _ in range(2):
        for write in (await upkeep.look(snapshot())).due:
            await write()

    [notice] = pools.world.notices
    assert (notice.reason, notice.name) == ("ReplacementsHeld", "pool")
    assert "1 replacements for Drifted" in notice.message
    assert breaker_of(pools.pool, "Empty") is None and known(pools) == OPEN
