"""The steps that begin something voluntary ask the API server at that moment; what is paused is published."""

from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.orders.carry_out_orders import CarryOutOrders
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.shared.looks.live_pauses import LivePauses
from dovetail.activities.upkeep.pauses import PauseUpkeep
from dovetail.disruption.choose import decide
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.orders import DeleteClaim
from dovetail.messages.outcomes import CreateOutcome, MarkOutcome
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, Seen, Target
from dovetail.messages.requests import CreateRequest, MarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.objects.workloads import Namespace
from dovetail.model.own.claim_memory import Pin, memory_of
from dovetail.model.own.policies import Expiry, Policy, TimeRules
from dovetail.model.own.rollouts import Rollout, RolloutState, RolloutStatus
from dovetail.model.own.stable_images import StableImage, StableImages
from dovetail.model.pools import Budget, DisruptionPolicy, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Forbidden
from dovetail.ports.objects import MetadataChange
from tests.activities.test_creating_claims import NODE, POOL
from tests.activities.test_gated_orders import OnePool, order_ports
from tests.activities.test_upkeep import Pools
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool
from worlds import disruption
from worlds.fakes import (
    FakeClaims,
    FakeNotices,
    World,
    create_ties,
    live_pauses,
    mark_ports,
)
from worlds.time_rules import with_rules

TARGET = Target(
    claim="pool-1",
    claim_uid="uid-pool-1",
    node="node-1",
    node_uid="uid-node-1",
    provider_id="aws:///zone/i-1",
    pool="pool",
    pods=(),
)
COMMAND = DisruptionCommand(
    reason="Empty", method="emptiness", targets=(TARGET,), replacements=(), destinations=(), summary="", savings=0.0
)
REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")
SYSTEM = "kube-system"


class OneNamespace:
    """The port of namespaces with kube-system in it."""

    def __init__(self, paused: str = "") -> None:
        annotations = {names.PAUSED: paused, names.PAUSED_BY: "alice"} if paused else {}
        self.namespace = Namespace(name=SYSTEM, uid="n", annotations=annotations)

    async def read(self, name: str) -> Namespace | None:
        return self.namespace if name == SYSTEM else None

    async def patch(self, namespace: Namespace, change: MetadataChange) -> Namespace | None:
        raise NotImplementedError


class GivenRules:
    """The policies that are there."""

    def __init__(self, rules: TimeRules) -> None:
        self.rules = rules

    async def read(self, _: str) -> TimeRules:
        return self.rules


class NoRules:
    """Policies that nobody may read."""

    async def read(self, _: str) -> TimeRules:
        raise Forbidden("NodeRollout", "forbidden")


def a_joined_world() -> World:
    world = World()
    world.put(a_joined_claim(), a_joined_node())
    return world


def pauses(world: World, general: str = "", own: str = "") -> LivePauses:
    pool = replace(a_new_pool(), annotations={names.PAUSED: own} if own else {})
    return live_pauses(world, pools=OnePool(pool), namespaces=OneNamespace(general))


def marking(world: World, live: LivePauses) -> MarkAndUnmarkNodes:
    return MarkAndUnmarkNodes(
        mark_ports(world, pauses=live),
        world.now,
    )


async def marked(world: World, live: LivePauses, reason: str = "Empty", *, terminates_first: str = "") -> MarkOutcome:
    seen = Seen(taken_at=world.now(), versions=()).ready(world.now())
    command = replace(COMMAND, reason=reason, terminates_first=terminates_first)
    request = MarkRequest(owner="c/disrupt/1", command=command, seen=seen)
    outcome: MarkOutcome = await ActivityEnvironment().run(marking(world, live).mark_nodes, request)
    return outcome


@pytest.mark.parametrize(("general", "own"), [("disruption", ""), ("", "disruption"), ("whatever", ""), ("", "all")])
async def test_a_node_is_not_marked_where_a_pause_has_begun_since_the_decision(general: str, own: str) -> None:
    world = a_joined_world()

    outcome = await marked(world, pauses(world, general, own))

    [(claim, why)] = outcome.refused
    assert (claim, outcome.marked) == ("pool-1", ())
    assert why.startswith("disruption paused for ")
    assert not world.claims["pool-1"].annotations and not world.nodes["node-1"].taints


@pytest.mark.parametrize(
    ("budgets", "reason", "goes"),
    [
        ((Budget(nodes="0"),), "Drifted", False),
        ((Budget(nodes="0%"),), "Requested", False),
        ((Budget(nodes="0", reasons=("Drifted",)),), "Expired", False),
        ((Budget(nodes="0", reasons=("Drifted",)),), "Empty", True),
        ((Budget(nodes="10%"), Budget(nodes="0", schedule="0 0 30 2 *", duration=60.0)), "Empty", False),
        ((Budget(nodes="one"),), "Empty", False),
        ((Budget(nodes="10%"),), "Empty", True),
        ((), "Empty", True),
    ],
)
async def test_a_node_is_not_marked_where_no_budget_lets_one_go_any_more(
    budgets: tuple[Budget, ...], reason: str, goes: bool
) -> None:
    """DIS-141. Somebody has closed it since the decision, or nobody has decided."""
    world = a_joined_world()
    pool = replace(a_new_pool(), disruption=DisruptionPolicy(budgets=budgets))
    live = live_pauses(world, pools=OnePool(pool))

    outcome = await marked(world, live, reason)

    words = f"spec.disruption.budgets of NodePool pool lets no node go for {reason}"
    assert outcome.refused == (() if goes else (("pool-1", words),))
    assert bool(world.nodes["node-1"].taints) == goes


async def test_a_mark_asks_for_what_the_reason_belongs_to() -> None:
    for general, reason in (("expiry", "Empty"), ("disruption", "Expired"), ("launches,drains", "Drifted")):
        world = a_joined_world()
        assert (await marked(world, pauses(world, general), reason)).marked == ("pool-1",), (general, reason)
    world = a_joined_world()
    assert (await marked(world, pauses(world, "expiry"), "Expired")).marked == ()


@pytest.mark.parametrize(("first", "marks"), [("static-at-limit", ()), ("", ("pool-1",))])
async def test_a_node_that_leaves_before_its_replacement_is_made_waits_for_launches(
    first: str, marks: tuple[str, ...]
) -> None:
    """Else its static pool lacks it for as long as launches are paused."""
    world = a_joined_world()

    outcome = await marked(world, pauses(world, "launches"), "Drifted", terminates_first=first)

    assert outcome.marked == marks
    assert bool(world.nodes["node-1"].taints) == bool(marks)
    assert all(why.startswith("launches paused for ") for _, why in outcome.refused)


@pytest.mark.parametrize("pauses_of", [("a", "a"), ("a", "b"), ("a", "c")])
@pytest.mark.parametrize("kind", ["Drifted", "Requested", "Expired"])
async def test_a_replacement_waits_for_launches_of_the_pool_in_which_it_is_made_as_its_decision_does(
    pauses_of: tuple[str, str], kind: str
) -> None:
    """The decision finds another pool where launches of its own are paused; the mark asks no more of it."""
    before, since = pauses_of
    launches = {names.PAUSED: "launches"}
    pools = {name: disruption.a_pool(name, consolidate_after=None, weight=10 * (name == "b")) for name in "abc"}
    pools[before] = replace(pools[before], annotations=launches)
    requested = {"annotations": {names.REPLACE: "soon"}} if kind == "Requested" else {}
    aged = {"expire_after": 90_000.0} if kind == "Expired" else {}
    pair = disruption.a_pair("n1", also=(names.DRIFTED,) if kind == "Drifted" else (), claim={**requested, **aged})
    snapshot = disruption.a_world([pair], [disruption.a_pod("n1", "6")], pools.values())
    if kind == "Expired":
        snapshot = with_rules(snapshot, Policy(name="p", expiry=Expiry(spread=7200.0, hard_after=7200.0)))
    plan = decide(snapshot, DisruptionSettings(), never).choice
    assert isinstance(plan, DisruptionPlan)
    (command,) = plan.commands
    world = World()
    world.clock = disruption.NOW
    world.put(pair.claim, pair.node, *snapshot.pods.values())
    pools[since] = replace(pools[since], annotations=launches)
    live = live_pauses(world, pools=Pools(*pools.values()))
    request = MarkRequest(owner="c/disrupt/1", command=command, seen=Seen.of(snapshot).ready(world.now()))

    outcome = await ActivityEnvironment().run(marking(world, live).mark_nodes, request)

    (made,) = command.replacements
    assert (command.reason, made.pool) == (kind, "b")
    assert outcome.marked == (() if since == "b" else ("claim-n1",))
    assert all(why.startswith("launches paused for NodePool b") for _, why in outcome.refused)


async def test_a_node_whose_disruption_was_called_off_since_the_decision_is_not_marked() -> None:
    for annotations in ({names.CANCEL: "not now"}, {names.REST: "5000/1/Empty"}):
        world = World()
        world.put(a_joined_claim(annotations=annotations), a_joined_node())

        outcome = await marked(world, pauses(world))

        assert outcome.marked == ()
        assert world.claims["pool-1"].annotations == annotations and not world.nodes["node-1"].taints


@pytest.mark.parametrize(
    ("reason", "general", "stays"),
    [
        ("expired", "expiry", True),
        ("expired", "all", True),
        ("expired", "disruption", False),
        ("static_scale_down", "disruption", True),
        ("static_scale_down", "expiry", False),
        ("unhealthy", "all", False),
        ("node_deleted", "all", False),
    ],
)
async def test_an_order_is_carried_out_unless_a_pause_has_begun_since(reason: str, general: str, stays: bool) -> None:
    world = World()
    ill = Condition(type=names.READY, status="Unknown", changed=0.0)
    world.put(
        a_joined_claim(expire_after=0.0),
        replace(a_joined_node(), conditions=(ill,), deleting_since=world.now()),
    )
    live = live_pauses(world, pools=OnePool(replace(POOL, replicas=0)), namespaces=OneNamespace(general))
    caretaking = CarryOutOrders("c", order_ports(world), marking(world, live), world.now)
    order = DeleteClaim(claim=REF, reason=reason, condition=names.READY)

    await ActivityEnvironment().run(caretaking.delete_claim_for, order)

    assert (world.claims["pool-1"].deleting_since is None) == stays


@pytest.mark.parametrize(("hard_after", "goes"), [(None, True), (60.0, True), (7200.0, False)])
async def test_what_has_expired_is_left_to_its_replacement_as_the_policies_say_at_that_moment(
    hard_after: float | None, goes: bool
) -> None:
    """The order was made before a policy came."""
    world = World()
    world.put(a_joined_claim(expire_after=0.0, created=world.now() - 3600), a_joined_node())
    rules = TimeRules(policies={"p": Policy(name="p", expiry=Expiry(hard_after=hard_after))})
    live = replace(pauses(world), rules=GivenRules(rules))
    caretaking = CarryOutOrders("c", order_ports(world), marking(world, live), world.now)

    await ActivityEnvironment().run(caretaking.delete_claim_for, DeleteClaim(claim=REF, reason="expired"))

    assert (world.claims["pool-1"].deleting_since is not None) == goes


@pytest.mark.parametrize(("general", "own", "made"), [("launches", "", 0), ("", "all", 0), ("disruption", "", 1)])
async def test_no_claim_is_made_while_launches_are_paused(general: str, own: str, made: int) -> None:
    world = World()
    live = live_pauses(world, pools=OnePool(POOL), namespaces=OneNamespace(general))
    pool = replace(POOL, annotations={names.PAUSED: own} if own else {})
    step = CreateNodeClaims(
        FakeClaims(world), OnePool(pool), FakeNotices(world), world.now, create_ties(world, pauses=live)
    )
    request = CreateRequest(plan_id="p", proposed=(NODE,), type_lists=((),))

    outcome: CreateOutcome = await ActivityEnvironment().run(step.create_node_claims, request)

    assert len(outcome.claims) == made
    assert [why.startswith("launches paused for ") for _, why in outcome.refused] == [True] * (1 - made)


KEPT = Rollout(
    name="r",
    pool="pool",
    launches_stable=True,
    status=RolloutStatus(
        state=RolloutState.SOAKING,
        stable=StableImages(since=1.0, images=(StableImage(id="ami-0", types=("m5.large",)),), why_not=""),
    ),
)


@pytest.mark.parametrize(
    ("rollout", "reason", "image"),
    [
        (KEPT, "provisioned", "stable"),
        (KEPT, "drifted", None),
        (replace(KEPT, pool="other"), "provisioned", None),
        (replace(KEPT, status=replace(KEPT.status, state=RolloutState.ROLLING_BACK)), "drifted", "back"),
        (None, "provisioned", None),  # they cannot be read: pods wait for the node
    ],
)
async def test_a_claim_says_that_it_takes_an_image_of_before(
    rollout: Rollout | None, reason: str, image: str | None
) -> None:
    world = World()
    rules = GivenRules(TimeRules(rollouts={"r": rollout})) if rollout is not None else NoRules()
    live = live_pauses(world, pools=OnePool(POOL), rules=rules)
    step = CreateNodeClaims(
        FakeClaims(world), OnePool(POOL), FakeNotices(world), world.now, create_ties(world, pauses=live)
    )
    request = CreateRequest(plan_id="p", proposed=(NODE,), type_lists=((),), reason=reason)

    await ActivityEnvironment().run(step.create_node_claims, request)

    (claim,) = world.claims.values()
    images = (StableImage(id="ami-0", types=("m5.large",)),) if image else ()
    assert memory_of(claim.annotations).roll_out == Pin(how=image or "", images=images)


def seen(now: float, *pools: NodePool, **general: str) -> Snapshot:
    keys = {"paused": names.PAUSED, "until": names.PAUSED_UNTIL}
    system = Namespace(name=SYSTEM, annotations={keys[key]: text for key, text in general.items()})
    return Snapshot(now=now, pools={pool.name: pool for pool in pools}, namespaces={SYSTEM: system})


async def test_each_pool_has_an_event_when_a_pause_begins_and_when_it_ends() -> None:
    world = World()
    upkeep = PauseUpkeep(FakeNotices(world))

    async def said(snapshot: Snapshot) -> list[tuple[str, str, str]]:
        world.notices.clear()
        look = await upkeep.look(snapshot)
        for write in look.due:
            await write()
        return [(n.name, n.reason, n.message) for n in world.notices]

    paused = {"paused": "all", "until": "1970-01-01T01:00:00Z"}
    one, two = a_new_pool("one"), a_new_pool("two")
    words = "disruption and expiry and launches"
    says = "until 1970-01-01T01:00:00Z, by somebody who left no name: no reason given"

    assert await said(seen(1.0, one, two)) == []
    assert await said(seen(2.0, one, two, **paused)) == [
        (name, "Paused", f"{words} paused for all NodePools {says}") for name in ("one", "two")
    ]
    assert await said(seen(3.0, one, two, **paused)) == []
    assert (await upkeep.look(seen(4.0, one, two, **paused))).again == 3600.0
    assert await said(seen(3600.0, one, two, **paused)) == [
        (name, "Resumed", f"{words} no longer paused for all NodePools") for name in ("one", "two")
    ]
    spoilt = replace(one, annotations={names.PAUSED: "everythng"})
    reasons = [(name, reason) for name, reason, _ in await said(seen(3601.0, spoilt, two))]
    assert reasons == [("one", "Paused"), ("one", "PauseNotUnderstood")]
