"""Rates of DisruptionPolicies: a place is taken before the mark, by several workers that are killed at any moment."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.messages.outcomes import MarkOutcome
from dovetail.messages.plans import DisruptionCommand, Seen, Target
from dovetail.messages.requests import MarkRequest
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.policies import Policy, TimeRules
from dovetail.model.own.rates import Rate
from dovetail.model.pools import DisruptionPolicy, NodePool
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import MetadataChange, PoolStatus
from dovetail.rules.rate.hold import left_of_rates
from dovetail.rules.rate.rates import BegunNodes, begun_of, pace_of, with_begun
from dovetail.rules.said import Cause, Said
from tests.activities.test_pauses import COMMAND
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool
from worlds.disruption import ALL
from worlds.fakes import FakeClaims, World, live_pauses, mark_ports

HOUR = 3600.0


class Killed(RuntimeError):
    """The worker is gone."""


@dataclass
class Kills:
    """Before or after a write, at random, for as many times as are left."""

    chosen: random.Random = field(default_factory=lambda: random.Random(0))
    left: int = 0
    chance: float = 0.0

    def strike(self) -> None:
        if self.left and self.chosen.random() < self.chance:
            self.left -= 1
            raise Killed


class Pools:
    """The port with one NodePool, as the API server keeps it."""

    def __init__(self, world: World, kills: Kills) -> None:
        self.world, self.kills = world, kills
        self.pool = replace(
            a_new_pool(disruption=DisruptionPolicy(budgets=ALL)), resource_version="1", usage={"nodes": 40}
        )

    async def read(self, _: str) -> NodePool | None:
        await asyncio.sleep(0)
        return self.pool

    async def patch(self, pool: NodePool, change: MetadataChange) -> NodePool | None:
        self.kills.strike()
        await asyncio.sleep(0)
        if pool.resource_version != self.pool.resource_version:
            raise Conflict(pool.name, "the object has been modified")
        annotations = {key: value for key, value in {**self.pool.annotations, **change.annotations}.items() if value}
        version = str(int(self.pool.resource_version) + 1)
        self.pool = replace(self.pool, annotations=annotations, resource_version=version)
        self.world.clock += 1
        self.kills.strike()
        return self.pool

    async def patch_status(self, pool: NodePool, status: PoolStatus) -> NodePool | None:
        raise NotImplementedError


class Claims(FakeClaims):
    """Remembers when each owner was written."""

    def __init__(self, world: World, kills: Kills, marks: list[float]) -> None:
        super().__init__(world)
        self.kills, self.marks = kills, marks

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        self.kills.strike()
        patched = await super().patch(claim, change)
        if change.annotations.get(names.OWNER) and names.OWNER not in claim.annotations:
            self.marks.append(self.world.clock)
        self.kills.strike()
        return patched


class Rules:
    """The port of policies."""

    def __init__(self, *rates: Rate) -> None:
        self.policy = Policy(name="p", rates=rates)

    async def read(self, _: str) -> TimeRules:
        return TimeRules(policies={"p": self.policy})


class Scene:
    """Drifted nodes, workers that mark them, and one NodePool between them."""

    def __init__(self, nodes: int, *rates: Rate, kills: Kills | None = None) -> None:
        self.world, self.kills, self.marks = World(), kills or Kills(), list[float]()
        self.pools, self.rules = Pools(self.world, self.kills), Rules(*rates)
        self.targets = [self._node(number) for number in range(nodes)]
        self.workers = [self._worker() for _ in range(2)]

    def _node(self, number: int) -> Target:
        name, provider_id = f"node-{number}", f"aws:///zone/i-{number}"
        claim = a_joined_claim(f"pool-{number}", provider_id=provider_id, node_name=name)
        node = a_joined_node(name, provider_id=provider_id)
        self.world.put(claim, node)
        [target] = COMMAND.targets
        return replace(
            target, claim=claim.name, claim_uid=claim.uid, node=name, node_uid=node.uid, provider_id=provider_id
        )

    def _worker(self) -> MarkAndUnmarkNodes:
        now: Callable[[], float] = self.world.now
        live = live_pauses(self.world, pools=self.pools, rules=self.rules)
        claims = Claims(self.world, self.kills, self.marks)
        return MarkAndUnmarkNodes(mark_ports(self.world, claims=claims, pauses=live), now)

    async def mark(self, owner: str, *targets: Target, worker: int = 0, reason: str = "Drifted") -> MarkOutcome:
        command: DisruptionCommand = replace(COMMAND, reason=reason, targets=targets)
        seen = Seen(taken_at=self.world.now(), versions=()).ready(self.world.now())
        request = MarkRequest(owner=owner, command=command, seen=seen)
        found: MarkOutcome = await ActivityEnvironment().run(self.workers[worker].mark_nodes, request)
        return found

    def ask_for(self, *targets: Target) -> None:
        """As `dovetail replace` does."""
        for target in targets:
            claim = self.world.claims[target.claim]
            self.world.put(replace(claim, annotations={**claim.annotations, names.REPLACE: "worn out"}))

    def left(self, pool: NodePool) -> int | None:
        said = Said(now=self.world.now(), pool=pool, policies=(self.rules.policy,))
        return left_of_rates(said, Cause.DRIFTED)


FIVE_AN_HOUR = Rate(nodes="5", per=HOUR)


@pytest.mark.parametrize("seed", [*range(3), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 100)]])
async def test_a_rate_is_kept_and_reached_over_kills_and_two_workers(seed: int) -> None:
    """40 drifted nodes, 5 an hour, 30 kills: never more than 5 marks in any 3,600 s, and 4.9 an hour are reached."""
    chosen = random.Random(seed)
    kills = Kills(chosen, left=30, chance=0.3)  # more are struck than there are, however the steps interleave
    scene = Scene(40, FIVE_AN_HOUR, kills=kills)
    waiting, running, number = list(scene.targets), dict[str, Target](), 0
    seen = scene.pools.pool  # what the next decision knows: the watch lags
    while (waiting or running) and scene.world.clock < 20 * HOUR:
        for _ in range(min(scene.left(seen) or 0, len(waiting))):
            number += 1
            running[f"c/disrupt/{number}"] = waiting.pop(chosen.randrange(len(waiting)))
        seen = scene.pools.pool
        begun = [scene.mark(owner, target, worker=chosen.randrange(2)) for owner, target in running.items()]
        answers = await asyncio.gather(*begun, return_exceptions=True)
        for owner, answer in zip(list(running), answers, strict=True):
            if isinstance(answer, Killed | Conflict):
                continue  # Temporal tries the step again
            assert isinstance(answer, MarkOutcome), answer
            target = running.pop(owner)
            if answer.refused:
                waiting.append(target)
        scene.world.clock += chosen.choice([1, 5, 10])

    marks = sorted(scene.marks)
    assert len({*scene.world.claims}) == 40 and not waiting and not running and kills.left == 0
    assert [later - first for first, later in zip(marks, marks[5:], strict=False) if later - first < HOUR] == []
    assert (len(marks) - 5) / (marks[-1] - marks[0]) * HOUR >= 4.9


async def test_what_is_refused_names_the_rate_and_the_moment_and_takes_no_place() -> None:
    scene = Scene(7, FIVE_AN_HOUR)

    outcome = await scene.mark("c/disrupt/1", *scene.targets)

    assert len(outcome.marked) == 5
    assert {why for _, why in outcome.refused} == {"rates of NodePool pool let 5 more nodes begin for Drifted now"}
    again = await scene.mark("c/disrupt/2", scene.targets[6])
    [(_, why)] = again.refused
    assert why == (
        "no more for Drifted may begin for NodePool pool until 1970-01-01T01:16:58Z, by DisruptionPolicy p: "
        "rates[0], 5 of at most 5 nodes have begun within 1h"
    )
    assert len(begun_of(scene.pools.pool)) == 5


async def test_what_must_be_replaced_begins_for_all_of_its_nodes_or_for_none() -> None:
    scene = Scene(7, FIVE_AN_HOUR)
    said = await scene.workers[0].places.take("o", Cause.DRIFTED, scene.targets, whole=True)

    assert len(said) == 7 and begun_of(scene.pools.pool) == ()


async def test_a_place_of_a_node_that_is_not_marked_after_all_is_given_back() -> None:
    scene = Scene(2, FIVE_AN_HOUR)
    del scene.world.nodes["node-0"]

    outcome = await scene.mark("c/disrupt/1", *scene.targets)

    assert outcome.marked == ("pool-1",)
    assert len(begun_of(scene.pools.pool)) == 1


async def test_a_request_counts_and_is_not_held_and_other_reasons_have_rates_of_their_own() -> None:
    scene = Scene(4, Rate(nodes="1", per=HOUR), Rate(nodes="0", per=HOUR, reasons=frozenset({"Empty"})))
    scene.ask_for(*scene.targets[:2])

    assert (await scene.mark("c/disrupt/1", scene.targets[0], reason="Requested")).marked == ("pool-0",)
    assert (await scene.mark("c/disrupt/2", scene.targets[1], reason="Requested")).marked == ("pool-1",)
    [(_, drifted)] = (await scene.mark("c/disrupt/3", scene.targets[2])).refused
    [(_, empty)] = (await scene.mark("c/disrupt/4", scene.targets[3], reason="Empty")).refused
    assert "rates[0], 2 of at most 1 nodes have begun within 1h" in drifted
    assert "until it is changed, by DisruptionPolicy p: rates[1]" in empty


async def test_a_pool_without_rates_remembers_nothing() -> None:
    scene = Scene(1)

    assert (await scene.mark("c/disrupt/1", *scene.targets)).marked == ("pool-0",)
    assert scene.pools.pool.annotations == {}


def test_a_percentage_is_of_the_nodes_that_there_are_rounded_down_and_at_least_one() -> None:
    pool = replace(a_new_pool(), usage={"nodes": 19})
    assert [Rate(nodes=nodes, per=60).allowed(pool) for nodes in ("30%", "1%", "0%", "7")] == [5, 1, 0, 7]
    assert Rate(nodes="30%", per=60).allowed(replace(pool, usage=None)) == 1


def test_a_rate_of_no_node_lets_none_begin_as_a_number_or_as_a_percentage() -> None:
    pool = replace(a_new_pool(), usage={"nodes": 40})

    def begin(nodes: str) -> int | None:
        policy = Policy(name="p", rates=(Rate(nodes=nodes, per=60),))
        return left_of_rates(Said(now=1e9, pool=pool, policies=(policy,)), Cause.DRIFTED)

    assert [begin(nodes) for nodes in ("0", "0%", "1%", "100%")] == [0, 0, 1, 40]


@pytest.mark.slow
def test_what_is_remembered_stays_small_and_never_counts_less() -> None:
    """A node a minute for a day and a half, under a rate of ten minutes and one of a day."""
    rates = (Rate(nodes="9%", per=600), Rate(nodes="100%", per=24 * HOUR))
    periods, pool = {rate.per for rate in rates}, replace(a_new_pool(), usage={"nodes": 5000})
    moments = []
    for minute in range(36 * 60):
        now = 60.0 * minute
        pool = with_begun(pool, [BegunNodes(now, "Drifted", f"{minute:08x}")], periods, now)
        moments.append(now)
        if minute % 97 == 0:
            for rate in rates:
                true = sum(moment + rate.per > now for moment in moments)
                assert true <= pace_of(rate, pool, now).begun <= true * 1.02 + 1
    assert len(pool.annotations[names.BEGUN]) < 30_000


def test_an_annotation_that_somebody_has_spoilt_counts_as_none() -> None:
    known = (BegunNodes(5.0, "Drifted", "0a"), BegunNodes(6.0, "Empty", "", 3))
    one, other = '{"at":"1970-01-01T00:00:05Z","reason":"Drifted","mark":"0a"}', '{"at":"1970-01-01T00:00:06Z",'
    text = f'{{"v":1,"entries":[{one},{{"at":"zz"}},7,{other}"reason":"Empty","nodes":3}},{{"reason":"Empty"}}]}}'

    assert begun_of(replace(a_new_pool(), annotations={names.BEGUN: text})) == known
    assert begun_of(replace(a_new_pool(), annotations={names.BEGUN: "x,Drifted@5=0000000a,Empty@6*3"})) == ()
