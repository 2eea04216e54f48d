"""The steps around replacements and marks: waiting, giving back, marking, undoing (DIS-143 to DIS-158)."""

from dataclasses import replace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.await_progress import AwaitProgress
from dovetail.activities.disruption.breakers import BreakerMemory
from dovetail.activities.disruption.give_back import GiveBack
from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.disruption.methods.static_drift import node_from_template
from dovetail.disruption.nodes.resting import read_rest
from dovetail.messages.outcomes import MarkOutcome, ReadyOutcome
from dovetail.messages.plans import DisruptionCommand, Seen
from dovetail.messages.requests import CreateRequest, GiveBackRequest, MarkRequest, ReadyRequest, UnmarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values import memory as memories
from dovetail.ports.failures import NotReadable
from dovetail.rules.brake.breakers import Happened, breakers_of
from dovetail.workflows.disrupt_nodes import REPLACEMENT_SECONDS
from tests.activities.test_gated_orders import OnePool
from tests.activities.test_upkeep import Pools
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_joined_node, a_web_pod, target_of
from tests.placement.builders import a_general_pool
from worlds.disruption import NOW, a_claim
from worlds.fakes import (
    FakeClaims,
    FakeLookups,
    FakeNotices,
    FakePods,
    World,
    breaker_memory,
    create_ties,
    live_pauses,
    mark_ports,
)

OWNER = "c/disrupt/0199"
DISRUPTED = Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule")


class Playing(FakeLookups):
    """A cache in which a second passes with each look."""

    def revision(self) -> int:
        return 0

    async def changed(self, after: int) -> int:
        await self.world.pause(1.0)
        return 0


async def ready(world: World, *claims: str, seconds: float = 60.0) -> ReadyOutcome:
    view: Any = Playing(world)
    step = AwaitProgress(view, KnownClaims(view, FakeClaims(world)), world.now)
    refs = tuple(ClaimRef(name=name, uid=f"uid-{name}") for name in claims)
    request = ReadyRequest(claims=refs, until=world.clock + seconds)
    return cast(ReadyOutcome, await ActivityEnvironment().run(step.await_ready, request))


async def test_all_replacements_are_awaited() -> None:
    """DIS-150, DIT-111, DIT-115."""
    world = World()
    world.put(a_joined_claim("a"), a_claim("b"))
    world.at(world.clock + 20, lambda: world.put(a_joined_claim("b", node_name="node-b")))

    outcome = await ready(world, "a", "b")

    assert (outcome.kind, outcome.destinations) == ("ready", ("node-1", "node-b"))
    assert world.clock >= 1020.0


async def test_a_replacement_that_is_not_initialised_in_time_fails() -> None:
    """DIS-154, DIT-113."""
    world = World()
    world.put(a_joined_claim("a"), a_claim("b"))

    outcome = await ready(world, "a", "b", seconds=60.0)

    assert (outcome.kind, outcome.message) == ("failed", "replacement b was not ready in time")
    assert 1060.0 <= world.clock < 1063.0


async def test_a_replacement_that_was_given_up_ends_the_wait_at_once() -> None:
    """DIS-150, DIS-156, DIT-6."""
    world = World()
    world.put(a_claim("a"))
    world.at(world.clock + 5, lambda: world.put(a_claim("a", deleting_since=world.clock)))

    outcome = await ready(world, "a")

    assert (outcome.kind, outcome.message) == ("failed", "replacement a was given up")
    assert world.clock < 1010.0
    assert (await ready(World(), "a")).kind == "failed"


async def test_a_replacement_that_the_cache_has_not_shown_yet_is_no_failure() -> None:
    """DIT-112."""
    world = World()
    world.put(a_joined_claim("a"))
    world.hidden.add("a")

    assert (await ready(world, "a")).kind == "ready"


def test_a_disruption_gives_its_replacements_ten_minutes() -> None:
    """DIS-155: whatever else is under way."""
    assert REPLACEMENT_SECONDS == 600.0


def a_replacement(name: str, **fields: Any) -> NodeClaim:
    given = {"annotations": {names.PLAN: "plan/0", names.PLANNED_PODS: "uid-web-1"}, "node_name": f"node-{name}"}
    return a_joined_claim(name, **{**given, **fields})


async def give_back(world: World, *claims: str) -> str:
    step = GiveBack(FakeClaims(world), FakePods(world), breaker_memory(world))
    request = GiveBackRequest(plan_id="plan", names=claims, why="not ready in time")
    return str((await ActivityEnvironment().run(step.give_back, request)).message)


async def test_a_replacement_without_pods_is_deleted() -> None:
    """DIS-158, DIQ-16: DaemonSet pods are on every node."""
    world = World()
    world.put(a_replacement("a"), a_web_pod("agent", node_name="node-a", owners=(DAEMON,)))

    assert await give_back(world, "a", "never-made") == ""
    assert world.claims["a"].deleting_since is not None


async def test_a_replacement_that_pods_have_moved_to_is_kept() -> None:
    """DIS-158: and it is the plan's no longer."""
    world = World()
    world.put(a_replacement("a"), a_web_pod(node_name="node-a"))

    assert await give_back(world, "a") == "kept a"
    kept = world.claims["a"]
    assert (kept.deleting_since, names.PLAN in kept.annotations, names.PLANNED_PODS in kept.annotations) == (
        None,
        False,
        False,
    )


async def test_a_claim_of_another_plan_is_not_given_back() -> None:
    world = World()
    world.put(a_replacement("a", annotations={names.PLAN: "another/0"}))

    await give_back(world, "a")

    assert world.claims["a"].deleting_since is None


def a_marked_world(**claim: Any) -> World:
    world = World()
    world.put(a_joined_claim(**claim), a_joined_node())
    return world


def marking(world: World) -> MarkAndUnmarkNodes:
    return MarkAndUnmarkNodes(
        mark_ports(world),
        world.now,
    )


async def test_a_pod_that_cannot_be_read_after_the_taint_takes_the_mark_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the step would fail for ever, and taint and budget stay."""
    world = World()
    world.put(a_joined_claim(), a_joined_node())

    async def unreadable(self: FakePods, node: str) -> tuple[Pod, ...]:
        assert DISRUPTED in world.nodes[node].taints, "the node is tainted before its pods are read"
        raise NotReadable("Pod/apps/odd", "spec.tolerations: not a list")

    monkeypatch.setattr(FakePods, "list_on", unreadable)

    outcome = await mark(world)

    assert outcome.marked == ()
    [(claim, why)] = outcome.refused
    assert claim == "pool-1" and "Pod/apps/odd" in why
    assert DISRUPTED not in world.nodes["node-1"].taints
    assert names.OWNER not in world.claims["pool-1"].annotations


async def mark(world: World) -> MarkOutcome:
    claim, node = world.claims["pool-1"], world.nodes["node-1"]
    target = target_of(claim, node)
    command = DisruptionCommand(reason=DisruptionReason.DRIFTED, method="drift", targets=(target,))
    request = MarkRequest(owner=OWNER, command=command, seen=Seen(taken_at=world.clock))
    return cast(MarkOutcome, await ActivityEnvironment().run(marking(world).mark_nodes, request))


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        ({"pool": "open"}, "the label karpenter.sh/nodepool of NodeClaim and Node does not say open"),
        ({"node": "node-2", "node_uid": "uid-node-2", "provider_id": "aws:///zone/i-2"}, "the Node is gone"),
    ],
)
async def test_no_node_is_marked_by_another_ones_pool_or_claim(forged: dict[str, Any], why: str) -> None:
    """DIS-141. What holds nodes of its own NodePool would not be asked; the other's pods would not be looked at."""
    world = a_marked_world()
    world.put(a_joined_node("node-2", provider_id="aws:///zone/i-2"))
    target = replace(target_of(world.claims["pool-1"], world.nodes["node-1"]), **forged)
    command = DisruptionCommand(reason=DisruptionReason.DRIFTED, method="drift", targets=(target,))
    request = MarkRequest(owner=OWNER, command=command, seen=Seen(taken_at=world.clock))

    outcome = await ActivityEnvironment().run(marking(world).mark_nodes, request)

    assert outcome.refused == (("pool-1", why),)
    assert names.OWNER not in world.claims["pool-1"].annotations
    assert not any(node.taints for node in world.nodes.values())


async def test_a_mark_is_owner_taint_and_condition_in_this_order() -> None:
    """DIS-144, DIS-149: and the pods are read live after that."""
    world = a_marked_world()

    outcome = await mark(world)

    assert (outcome.marked, outcome.refused) == (("pool-1",), ())
    assert [what for what in world.ledger if not what.startswith("get")] == [
        "patch claim pool-1",
        "patch node node-1",
        "patch status pool-1",
        "list pods node-1",
    ]  # what is deleted at once says nothing of a plan
    claim, node = world.claims["pool-1"], world.nodes["node-1"]
    reason = claim.condition(names.DISRUPTION_REASON)
    assert reason is not None
    assert (reason.status, reason.reason, reason.message) == ("True", "Drifted", "Drifted")
    assert (claim.annotations[names.OWNER], node.taints) == (OWNER, (DISRUPTED,))


async def test_a_claim_that_another_plan_has_marked_is_refused_and_keeps_its_mark() -> None:
    """DIS-143, DIS-161, DIQ-23."""
    world = a_marked_world(annotations={names.OWNER: "c/disrupt/earlier"})

    outcome = await mark(world)

    assert outcome.refused == (("pool-1", "already marked by c/disrupt/earlier"),)
    assert world.claims["pool-1"].annotations[names.OWNER] == "c/disrupt/earlier"


async def test_a_mark_comes_off_where_a_pod_has_been_bound_since_the_decision() -> None:
    """DIS-141, DIS-152: read after the taint, which keeps further pods away."""
    world = a_marked_world()
    world.put(a_web_pod("late"))

    outcome = await mark(world)

    assert outcome.refused == (("pool-1", "pod apps/late was bound after the decision"),)
    claim, node = world.claims["pool-1"], world.nodes["node-1"]
    assert (node.taints, names.OWNER in claim.annotations, claim.condition(names.DISRUPTION_REASON)) == (
        (),
        False,
        None,
    )


async def unmark(world: World, **request: Any) -> None:
    ref = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")
    given = UnmarkRequest(owner=OWNER, claims=(ref,), **request)
    await ActivityEnvironment().run(marking(world).unmark_nodes, given)


async def test_an_undone_disruption_leaves_a_rest_that_doubles() -> None:
    """DIS-157, DIS-74."""
    world = a_marked_world()
    rests = []
    for _ in range(2):
        await mark(world)
        await unmark(world, why="not ready in time", rest="failed", reason="Drifted")
        rests.append(read_rest(world.claims["pool-1"]).until - world.clock)
        await world.pause(60.0)

    assert rests == [30.0, 60.0]
    assert world.nodes["node-1"].taints == ()


async def test_a_mark_of_a_node_that_is_leaving_is_left_alone() -> None:
    """DIS-13, DIS-14: termination owns it then."""
    world = a_marked_world()
    await mark(world)
    world.put(replace(world.claims["pool-1"], deleting_since=world.clock))

    await unmark(world)

    claim = world.claims["pool-1"]
    assert (world.nodes["node-1"].taints, claim.condition(names.DISRUPTION_REASON) is not None) == ((DISRUPTED,), True)


async def test_a_mark_of_a_claim_that_is_gone_is_nothing_to_do() -> None:
    """DIS-14."""
    world = a_marked_world()
    await mark(world)
    del world.claims["pool-1"]

    await unmark(world)

    assert world.claims == {}


OTHER_TAINTS = (Taint(key="team", effect="NoExecute"), Taint(key=names.DISRUPTED_TAINT, effect="NoExecute"))


async def test_a_nodes_own_taints_outlive_a_mark() -> None:
    """DIS-13: one of upstream's key with another effect is replaced, all others stay, also when the mark comes off."""
    world = World()
    world.put(a_joined_claim(), a_joined_node(taints=OTHER_TAINTS))

    await mark(world)
    marked = world.nodes["node-1"].taints
    await unmark(world)

    assert (marked, world.nodes["node-1"].taints) == ((OTHER_TAINTS[0], DISRUPTED), (OTHER_TAINTS[0],))


async def test_a_taint_is_written_only_where_it_is_missing() -> None:
    """DIS-13: a Node that has it already is not written, whoever put it there."""
    world = World()
    world.put(a_joined_claim(), a_joined_node(taints=(DISRUPTED,)))

    outcome = await mark(world)

    assert (outcome.marked, [line for line in world.ledger if line.startswith("patch node")]) == (("pool-1",), [])


async def test_a_node_that_is_being_deleted_keeps_its_taint() -> None:
    """DIS-13: although its claim is not being deleted yet."""
    world = a_marked_world()
    await mark(world)
    world.put(replace(world.nodes["node-1"], deleting_since=world.clock))

    await unmark(world)

    assert world.nodes["node-1"].taints == (DISRUPTED,)


async def create(world: World, reason: str) -> list[tuple[str, str]]:
    pool = NodePool(name="pool", uid="u", template=ClaimTemplate(node_class=a_joined_claim().node_class))
    creating = CreateNodeClaims(FakeClaims(world), OnePool(pool), FakeNotices(world), world.now, create_ties(world))
    node = node_from_template(pool)
    request = CreateRequest(plan_id="p", proposed=(node,), type_lists=((),), reason=reason)
    await ActivityEnvironment().run(creating.create_node_claims, request)
    return [(n.reason, n.message) for n in world.notices]


async def test_a_replacement_is_announced_with_the_reason_that_it_is_made_for() -> None:
    """DIS-150, DIT-114: claims for pending pods are not."""
    assert await create(World(), "drifted") == [
        ("DisruptionLaunching", "Launching NodeClaim: Drifted"),
        ("DisruptionWaitingReadiness", "Waiting on readiness to continue disruption"),
    ]
    assert await create(World(), "provisioned") == []


@pytest.mark.parametrize(
    ("changes", "age", "remembered"),
    [
        ({}, 600.0, True),
        ({}, 500.0, False),  # called off, or undone for another reason
        ({"provider_id": ""}, 600.0, False),  # a shortage
        ({"annotations": {names.PLAN: "plan/0", names.NODE_POOL_HASH: "6"}}, 600.0, False),  # of another template
        ({"conditions": (Condition(type=names.INITIALIZED_CONDITION, status="True"),)}, 600.0, False),
    ],
)
async def test_a_replacement_that_had_its_time_is_remembered_by_its_pool(
    changes: dict[str, Any], age: float, remembered: bool
) -> None:
    """Decision 226: once for its plan, although the step is tried again."""
    pools = Pools(replace(a_general_pool(), resource_version="1"))
    live = live_pauses(World(clock=NOW), pools=pools)
    memory = BreakerMemory(pools, live, lambda: NOW)
    fields = {"provider_id": "p://a", "conditions": (), "created": NOW - age, **changes}
    claim = replace(a_replacement("a"), labels={names.NODE_POOL: "default"}, **fields)
    request = GiveBackRequest(plan_id="plan", names=("a", "b"), why="not ready in time", method="drift")
    for _ in range(2):
        world = World()
        world.put(claim, replace(claim, name="b"))
        await ActivityEnvironment().run(GiveBack(FakeClaims(world), FakePods(world), memory).give_back, request)

    found = {reason: each.failures for reason, each in breakers_of(pools.pools["default"]).items()}
    assert found == ({"Drifted": (Happened(NOW, memories.mark("plan")),)} if remembered else {})
