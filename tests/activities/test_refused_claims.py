"""A NodeClaim that the API server refuses is refused alone, and proposed again once a dry run passes."""

from dataclasses import replace
from math import log2

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.provisioning.refused_claims import MOST_ASKS, Asks, RefusedClaims
from dovetail.messages.outcomes import CreateOutcome
from dovetail.messages.plans import PlannedPod, ProposedNode, ProvisioningPlan, Seen
from dovetail.messages.requests import CreateRequest, ProvisioningRequest
from dovetail.messages.states import MOST_REFUSED_PODS, SchedulerState
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Forbidden, Misconfigured, Permanent, Refused, Taken
from dovetail.ports.objects import NewClaim
from tests.activities.test_creating import NODE, POOL
from tests.activities.test_gated_orders import OnePool
from worlds.disruption import a_pod
from worlds.fakes import FakeClaims, FakeNotices, World, create_ties


class Policed(FakeClaims):
    """Claims of which an admission policy refuses those of one team."""

    def __init__(self, world: World, refusal: Permanent) -> None:
        super().__init__(world)
        self.refusal, self.refuses, self.judged = refusal, True, 0

    async def create(self, claim: NewClaim) -> NodeClaim:
        if self.refuses and claim.labels.get("team") == "refused":
            raise self.refusal
        return await super().create(claim)

    async def may_create(self, claim: NewClaim) -> None:
        self.judged += 1
        if self.refuses:
            raise self.refusal


def a_proposed_node(team: str, pod: str) -> ProposedNode:
    return replace(
        NODE,
        labels=(*POOL.node_labels.items(), ("team", team)),
        pods=(PlannedPod(namespace="default", name=pod, uid=f"uid-{pod}"),),
    )


REFUSALS = [cls("NodeClaim/x", "admission says no") for cls in (Forbidden, Refused, Taken, Misconfigured)]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: type(r).__name__)
async def test_one_claim_is_refused_the_others_are_made_and_the_pool_is_told(refusal: Permanent) -> None:
    world = World()
    creating = CreateNodeClaims(
        Policed(world, refusal), OnePool(POOL), FakeNotices(world), world.now, create_ties(world)
    )
    proposed = (a_proposed_node("free", "p1"), a_proposed_node("refused", "p2"), a_proposed_node("free", "p3"))
    request = CreateRequest(plan_id="plan", proposed=proposed, type_lists=(("small", "large"),))

    outcome: CreateOutcome = await ActivityEnvironment().run(creating.create_node_claims, request)

    assert len(outcome.claims) == 2
    assert [why for _, why in outcome.refused] == ["NodeClaim/x: admission says no"]
    assert outcome.refused_pods == ("uid-p2",)
    [told] = [n for n in world.notices if n.reason == "NodeClaimRefused"]
    assert (told.kind, told.name, told.uid, told.type) == ("NodePool", "pool", "u", "Warning")
    assert "admission says no" in told.message


async def test_a_refused_claim_is_asked_for_by_dry_runs_with_growing_pauses_and_holds_up_no_other() -> None:
    world = World()
    claims = Policed(world, REFUSALS[0])
    refused = RefusedClaims(claims, world.now)
    refused.begin(ProvisioningRequest(refused_pods=("uid-p2",)))
    plan = ProvisioningPlan(
        seen=Seen(taken_at=0.0),
        proposed=(a_proposed_node("free", "p1"), replace(a_proposed_node("refused", "p2"), pool="other")),
        type_lists=(("small",),),
    )

    async def trial(_: frozenset[str]) -> ProvisioningPlan:
        raise AssertionError("one pod is not divided")

    asks = Asks({}, {"other": POOL}, trial)

    async def launched() -> list[str]:
        await refused.ask_again(asks)
        await refused.look(plan, asks)
        return [one.pool for one in refused.without_doubtful(plan).proposed]

    asked: list[float] = []
    began = world.clock
    while world.clock < began + 300:
        before = claims.judged
        assert await launched() == ["pool"]
        if claims.judged > before:
            asked.append(world.clock - began)
        world.clock += 1

    assert asked == [0, 10, 30, 70, 130, 190, 250]
    claims.refuses = False
    world.clock += 60
    assert await launched() == ["pool", "other"]

    refused.begin(ProvisioningRequest(refused_pods=("uid-p2",)))  # refused all the same
    before = claims.judged
    assert (await launched(), claims.judged) == (["pool"], before), "what a dry run lets through is not tried in a loop"
    world.clock += 60
    assert await launched() == ["pool", "other"]


def test_the_scheduler_remembers_refused_pods_until_their_claims_are_made() -> None:
    state = SchedulerState(cluster="c").refuse(frozenset({"a", "b"}), ("a",))
    assert state.refused_pods == ("a",)
    assert state.refuse(frozenset({"x"}), ()).refused_pods == ("a",), "others' plans say nothing of it"
    assert state.refuse(frozenset({"a"}), ()).refused_pods == ()
    many = tuple(str(number) for number in range(MOST_REFUSED_PODS + 5))
    assert len(state.refuse(frozenset(), many).refused_pods) == MOST_REFUSED_PODS


class Crowd(FakeClaims):
    """Pods that all differ, planned onto one node, of which an admission policy refuses the bad ones."""

    def __init__(self, count: int, bad: int) -> None:
        super().__init__(World())
        self.pending = {f"u{n:04}": replace(a_pod("", "1"), uid=f"u{n:04}", requests={"cpu": n}) for n in range(count)}
        self.bad = frozenset(list(self.pending)[:: count // bad][:bad])
        self.asked = 0

    async def may_create(self, claim: NewClaim) -> None:
        self.asked += 1
        if self.bad.intersection(claim.annotations[names.PLANNED_PODS].split(",")):
            raise REFUSALS[0]

    async def plan(self, only: frozenset[str]) -> ProvisioningPlan:
        pods = tuple(PlannedPod(namespace="default", name=uid, uid=uid) for uid in sorted(only))
        node = replace(NODE, pods=pods)
        return ProvisioningPlan(seen=Seen(taken_at=0.0), proposed=(node,) if pods else (), type_lists=(("small",),))

    async def turn(self, refused: RefusedClaims) -> set[str]:
        """One pass; the pods that get a node by it."""
        asks = Asks(self.pending, {NODE.pool: POOL}, self.plan)
        await refused.ask_again(asks)
        while True:
            plan = await self.plan(frozenset(self.pending.keys() - refused.held(self.pending).keys()))
            if not await refused.look(plan, asks):
                return {pod.uid for node in refused.without_doubtful(plan).proposed for pod in node.pods}


@pytest.mark.parametrize(("count", "bad"), [(256, 1), (256, 3), (1024, 2)])
async def test_halving_asks_about_twice_the_logarithm_for_each_bad_pod(count: int, bad: int) -> None:
    crowd = Crowd(count, bad)
    refused = RefusedClaims(crowd, crowd.world.now)
    refused.begin(ProvisioningRequest(refused_pods=tuple(crowd.pending)))

    placed = await crowd.turn(refused)

    assert (placed, set(refused.alone)) == (crowd.pending.keys() - crowd.bad, set(crowd.bad))
    assert crowd.asked <= 2 * bad * log2(count) + 4
    before = crowd.asked
    assert await crowd.turn(refused) == placed
    assert crowd.asked == before + 1, "the next pass asks for the claim alone that it makes"


async def test_more_bad_pods_than_one_pass_may_ask_about_are_found_in_the_next_ones() -> None:
    crowd = Crowd(256, 40)
    refused = RefusedClaims(crowd, crowd.world.now)
    refused.begin(ProvisioningRequest(refused_pods=tuple(crowd.pending)))

    for _ in range(12):
        before = crowd.asked
        placed = await crowd.turn(refused)
        assert crowd.asked <= before + 2 * MOST_ASKS
        assert not placed & crowd.bad
        crowd.world.clock += 60.0

    assert placed == crowd.pending.keys() - crowd.bad
