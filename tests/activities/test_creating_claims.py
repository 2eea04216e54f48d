"""create_node_claims: what the pool itself, read again at that moment, still allows (LIF-3)."""

from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.messages.outcomes import CreateOutcome
from dovetail.messages.plans import ProposedNode
from dovetail.messages.requests import CreateRequest
from dovetail.model import names
from dovetail.model.pools import ClaimTemplate, NodePool
from testing.fakes import FakeClaims, FakeNotices, World
from tests.activities.test_gated_orders import OnePool
from tests.lifecycle.objects import a_joined_claim

POOL = NodePool(
    name="pool", uid="u", template=ClaimTemplate(node_class=a_joined_claim().node_class), limits={"cpu": 8 * 10**9}
)
NODE = ProposedNode(
    pool="pool",
    pool_uid="u",
    node_class=a_joined_claim().node_class,
    requirements=(),
    type_list=0,
    expire_after=3600.0,
    termination_grace=60.0,
)


async def created(world: World, pool: NodePool, node: ProposedNode = NODE) -> CreateOutcome:
    step = CreateNodeClaims(FakeClaims(world), OnePool(pool), FakeNotices(world), world.now)
    request = CreateRequest(plan_id="p", proposed=(node,), type_lists=((),))
    outcome: CreateOutcome = await ActivityEnvironment().run(step.create_node_claims, request)
    return outcome


@pytest.mark.parametrize(("used", "made"), [(7, 1), (8, 1), (9, 0)])
async def test_a_pool_beyond_its_limit_gets_no_claim_and_one_at_its_limit_still_does(used: int, made: int) -> None:
    """LIF-3: strictly beyond; what is created does not count yet, so that one claim may overshoot."""
    world = World()

    outcome = await created(world, replace(POOL, usage={"cpu": used * 10**9}))

    assert (len(outcome.claims), len(world.claims)) == (made, made)
    assert [why for _, why in outcome.refused] == ([] if made else ["NodePool pool is over its limit of cpu"])


@pytest.mark.parametrize("pool", [replace(POOL, uid="another"), replace(POOL, deleting_since=1.0)])
async def test_a_pool_that_is_gone_or_leaving_gets_no_claim(pool: NodePool) -> None:
    world = World()

    outcome = await created(world, pool)

    assert (len(outcome.refused), world.claims) == (1, {})


async def test_a_claim_has_its_pools_grace_and_expiry() -> None:
    """LIF-2, LIF-62: frozen on the claim at its creation."""
    world = World()

    await created(world, POOL)

    (claim,) = world.claims.values()
    assert (claim.expire_after, claim.termination_grace) == (3600.0, 60.0)


async def test_a_claim_of_a_pool_without_a_grace_has_none() -> None:
    """LIF-2: nor an expiry; no default stands behind the pool's."""
    world = World()

    await created(world, POOL, replace(NODE, expire_after=None, termination_grace=None))

    (claim,) = world.claims.values()
    assert (claim.expire_after, claim.termination_grace) == (None, None)


async def test_a_claim_comes_with_its_finalizer() -> None:
    """LIF-7: before anything could be launched for it."""
    world = World()

    await created(world, POOL)

    (claim,) = world.claims.values()
    assert claim.finalizers == (names.TERMINATION_FINALIZER,)
