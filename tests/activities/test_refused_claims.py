"""A NodeClaim that the API server refuses is refused alone, and proposed again once a dry run passes."""

from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.provisioning.refused_claims import Asks, RefusedClaims
from dovetail.messages.outcomes import CreateOutcome
from dovetail.messages.plans import PlannedPod, ProposedNode, ProvisioningPlan, Seen
from dovetail.messages.requests import CreateRequest, ProvisioningRequest
from dovetail.messages.states import MOST_REFUSED_PODS, SchedulerState
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Forbidden, Misconfigured, Permanent, Refused, Taken
from dovetail.ports.objects import NewClaim
from testing.fakes import FakeClaims, FakeNotices, World
from tests.activities.test_creating import NODE, POOL
from tests.activities.test_gated_orders import OnePool


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


def a_node(team: str, pod: str) -> ProposedNode:
    return replace(NODE, labels=(("team", team),), pods=(PlannedPod(namespace="default", name=pod, uid=f"uid-{pod}"),))


REFUSALS = [cls("NodeClaim/x", "admission says no") for cls in (Forbidden, Refused, Taken, Misconfigured)]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: type(r).__name__)
async def test_one_claim_is_refused_the_others_are_made_and_the_pool_is_told(refusal: Permanent) -> None:
    world = World()
    creating = CreateNodeClaims(Policed(world, refusal), OnePool(POOL), FakeNotices(world), world.now)
    proposed = (a_node("free", "p1"), a_node("refused", "p2"), a_node("free", "p3"))
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
        proposed=(a_node("free", "p1"), replace(a_node("refused", "p2"), pool="other")),
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
