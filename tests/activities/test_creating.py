"""create_node_claims: what a plan's nodes become, and what is not made."""

from dataclasses import replace

from temporalio.testing import ActivityEnvironment

from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.disruption.methods.static_drift import node_from_template
from dovetail.messages.outcomes import CreateOutcome
from dovetail.messages.plans import PlannedPod, ProposedNode
from dovetail.messages.requests import CreateRequest
from dovetail.model import names
from dovetail.model.pods import Expression, Owner
from dovetail.model.pools import ClaimTemplate, NodePool
from tests.activities.test_gated_orders import OnePool
from tests.lifecycle.objects import a_joined_claim
from worlds.fakes import FakeClaims, FakeNotices, World, create_ties

NODE_CLASS = a_joined_claim().node_class
TEAM = Expression(key="team", operator="Exists", values=())
TEMPLATE = ClaimTemplate(node_class=NODE_CLASS, requirements=(TEAM,), termination_grace=60.0)
POOL = NodePool(name="pool", uid="u", template=TEMPLATE, limits={"cpu": 8}, annotations={names.NODE_POOL_HASH: "1"})
NODE = replace(
    node_from_template(POOL),
    requirements=(Expression(key=names.ZONE, operator="In", values=("z1",)),),
    min_types=2,
    requests=(("cpu", 2),),
    labels=(*POOL.node_labels.items(), ("team", "a")),
    pods=(PlannedPod(namespace="default", name="p", uid="uid-p"),),
)


async def create(world: World, pool: NodePool, *proposed: ProposedNode) -> CreateOutcome:
    creating = CreateNodeClaims(FakeClaims(world), OnePool(pool), FakeNotices(world), world.now, create_ties(world))
    request = CreateRequest(plan_id="plan", proposed=proposed, type_lists=(("small", "large"),))
    outcome: CreateOutcome = await ActivityEnvironment().run(creating.create_node_claims, request)
    return outcome


async def test_a_claim_is_what_its_pool_and_the_placement_say() -> None:
    """PLC-197, PLC-198, LIF-1."""
    world = World()

    await create(world, POOL, NODE)

    (claim,) = world.claims.values()
    assert claim.name.startswith("pool-")
    assert claim.owners == (Owner(api_version="karpenter.sh/v1", kind="NodePool", name="pool", uid="u"),)
    assert (claim.labels, claim.node_class) == ({**POOL.node_labels, "team": "a"}, NODE_CLASS)
    assert claim.requests == {"cpu": 2}
    assert (claim.annotations[names.NODE_POOL_HASH], claim.termination_grace) == ("1", 60.0)
    assert claim.requirements == (
        *NODE.requirements,
        Expression(key=names.INSTANCE_TYPE, operator="In", values=("small", "large"), min_values=2),
    )


async def test_a_pool_that_is_over_a_limit_gets_no_further_claim() -> None:
    """PLC-11, LIF-3: strictly over; what reaches it exactly may have one more."""
    over, at = replace(POOL, usage={"cpu": 9}), replace(POOL, usage={"cpu": 8})

    refused, made = await create(World(), over, NODE), await create(World(), at, NODE)

    assert [why for _, why in refused.refused] == ["NodePool pool is over its limit of cpu"]
    assert (refused.claims, len(made.claims)) == ((), 1)


async def test_one_claim_that_cannot_be_made_does_not_stop_the_others() -> None:
    """PLC-11."""
    world = World()

    outcome = await create(world, POOL, replace(NODE, pool_uid="of a former pool"), NODE)

    assert ([why for _, why in outcome.refused], len(outcome.claims)) == (["NodePool pool is gone"], 1)


async def test_pods_are_nominated_when_their_claim_is_made() -> None:
    """PLC-11, PLC-225."""
    world = World()

    await create(world, POOL, NODE)

    (claim,) = world.claims
    assert [(n.kind, n.name, n.message) for n in world.notices if n.reason == "Nominated"] == [
        ("Pod", "p", f"Pod should schedule on: nodeclaim/{claim}")
    ]
