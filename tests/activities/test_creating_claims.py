"""create_node_claims: what the pool itself, read again at that moment, still allows (LIF-3)."""

from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.disruption.methods.static_drift import node_from_template
from dovetail.messages.outcomes import CreateOutcome
from dovetail.messages.plans import ProposedNode
from dovetail.messages.requests import CreateRequest
from dovetail.model import names
from dovetail.model.own.claim_memory import Pin, with_memory
from dovetail.model.pods import Expression
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.scheduling.taints import Taint
from tests.activities.test_gated_orders import OnePool
from tests.lifecycle.objects import a_joined_claim
from worlds.fakes import FakeClaims, FakeNotices, World, create_ties

TEMPLATE = ClaimTemplate(
    node_class=a_joined_claim().node_class,
    labels={"team": "a"},
    annotations={"team/mail": "a@example.com"},
    requirements=(Expression(key="example.com/size", operator="Exists"),),
    taints=(Taint(key="team", value="a", effect="NoSchedule"),),
    startup_taints=(Taint(key="starting", effect="NoSchedule"),),
    expire_after=3600.0,
    termination_grace=60.0,
)
POOL = NodePool(name="pool", uid="u", template=TEMPLATE, limits={"cpu": 8 * 10**9})
NODE = node_from_template(POOL)


async def created(world: World, pool: NodePool, node: ProposedNode = NODE) -> CreateOutcome:
    step = CreateNodeClaims(FakeClaims(world), OnePool(pool), FakeNotices(world), world.now, create_ties(world))
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


@pytest.mark.parametrize(
    ("field", "forged"),
    [
        ("annotations", replace(NODE, annotations=(*NODE.annotations, (names.DO_NOT_DISRUPT, "true")))),
        ("annotations", replace(NODE, annotations=(*NODE.annotations, (names.LAUNCH_REQUEST, "{}")))),
        *(
            ("annotations", replace(NODE, annotations=(*NODE.annotations, *with_memory({}, **what).items())))
            for what in ({"roll_out": Pin(how="stable")}, {"reboots": (1.0,)}, {"replacement_for": "Drifted"})
        ),
        ("annotations", replace(NODE, annotations=())),
        ("labels", replace(NODE, labels=(*NODE.labels, ("node-restriction.kubernetes.io/trusted", "yes")))),
        ("labels", replace(NODE, labels=(*NODE.labels, ("team", "another")))),
        ("labels", replace(NODE, labels=())),
        ("taints", replace(NODE, taints=())),
        ("startupTaints", replace(NODE, startup_taints=(*NODE.startup_taints, *NODE.taints))),
        ("expireAfter", replace(NODE, expire_after=None)),
        ("terminationGracePeriod", replace(NODE, termination_grace=None)),
        ("nodeClassRef", replace(NODE, node_class=replace(NODE.node_class, name="another"))),
    ],
)
async def test_a_node_that_the_pools_template_would_not_make_is_not_made(field: str, forged: ProposedNode) -> None:
    """LIF-2. It has changed since the plan, or nobody has planned it."""
    world = World()

    outcome = await created(world, POOL, forged)

    assert world.claims == {} and [why.rpartition("of ")[2] for _, why in outcome.refused] == [field]


@pytest.mark.parametrize(
    "planned",
    [
        replace(
            NODE,
            annotations=(*NODE.annotations, (names.NODE_POOL_HASH, "1"), *with_memory({}, keeps_places=True).items()),
        ),
        replace(NODE, labels=(*NODE.labels, ("example.com/size", "4"))),
        replace(
            NODE,
            labels=(*NODE.labels, ("example.com/not", "0")),
            requirements=(*NODE.requirements, Expression(key="example.com/not", operator="NotIn", values=("a",))),
        ),
    ],
)
async def test_a_node_has_what_planning_adds_to_the_template(planned: ProposedNode) -> None:
    """PLC-197: a label of the user's own that the pool leaves open, or that a pod does not want."""
    assert len((await created(World(), POOL, planned)).claims) == 1


async def test_a_claim_has_its_pools_grace_and_expiry() -> None:
    """LIF-2, LIF-62: frozen on the claim at its creation."""
    world = World()

    await created(world, POOL)

    (claim,) = world.claims.values()
    assert (claim.expire_after, claim.termination_grace) == (3600.0, 60.0)


async def test_a_claim_of_a_pool_without_a_grace_has_none() -> None:
    """LIF-2: nor an expiry; no default stands behind the pool's."""
    world = World()

    pool = replace(POOL, template=replace(TEMPLATE, expire_after=None, termination_grace=None))
    await created(world, pool, node_from_template(pool))

    (claim,) = world.claims.values()
    assert (claim.expire_after, claim.termination_grace) == (None, None)


async def test_a_claim_comes_with_its_finalizer() -> None:
    """LIF-7: before anything could be launched for it."""
    world = World()

    await created(world, POOL)

    (claim,) = world.claims.values()
    assert claim.finalizers == (names.TERMINATION_FINALIZER,)
