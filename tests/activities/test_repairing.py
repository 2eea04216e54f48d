"""A repair at its mark and at its delete (GCR-20, GCR-22): the node as it is then, and a drain that is bounded."""

from dataclasses import replace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.live_budgets import LiveBudgets
from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.orders.reboot_nodes import RebootNodes, RebootPorts
from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.evictor import Evictor
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.messages.outcomes import MarkOutcome, StepOutcome
from dovetail.messages.plans import DisruptionCommand, Seen
from dovetail.messages.requests import DeleteRequest, DeletesRequest, MarkRequest
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model import names
from dovetail.model.nodes import Condition, RepairPolicy
from dovetail.model.pools import Budget, DisruptionPolicy
from dovetail.model.snapshot import Snapshot
from tests.activities.test_departing import an_instance
from tests.activities.test_gated_orders import OnePool
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, a_web_pod, target_of
from worlds.fakes import (
    FakeClaims,
    FakeCloud,
    FakeLookups,
    FakeNodes,
    FakeNotices,
    FakePods,
    World,
    deleting,
    drain_ports,
    holds,
    live_pauses,
    unlimited,
)
from worlds.fakes import mark_ports as ports_of

SICK = Condition(type=names.READY, status="False", changed=0.0)
OWNER = "c/disrupt/1"
LABELS = {names.NODE_POOL: "pool", names.INITIALIZED: "true"}


class Policies:
    def __init__(self, reboots: bool) -> None:
        self.reboots = reboots

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return (RepairPolicy(condition="Ready", status="False", toleration=600.0, grace=300.0, reboots=self.reboots),)


def a_world(node: dict[str, Any], *others: dict[str, Any]) -> World:
    world = World()
    for number, fields in enumerate((node, *others, {}, {})):
        place = f"aws:///zone/i-{number}"
        made = {"labels": LABELS, **fields}
        world.put(
            a_joined_claim(f"pool-{number}", provider_id=place, node_name=f"node-{number}"),
            a_joined_node(f"node-{number}", provider_id=place, **made),
        )
    return world


async def mark(world: World, *, budget: str = "1", reboots: bool = False, wanted: bool = True) -> str:
    """Why it is not marked; empty if it is."""
    pool = replace(a_new_pool(), disruption=DisruptionPolicy(budgets=(Budget(nodes=budget),)))

    def fleet() -> Snapshot:
        return Snapshot(now=world.now(), claims=dict(world.claims), nodes=dict(world.nodes))

    claims, nodes, pods, notices = FakeClaims(world), FakeNodes(world), FakePods(world), FakeNotices(world)
    repairs = LiveRepairs(Policies(reboots), world.now, wanted)  # type: ignore[arg-type]
    made = RebootPorts(
        claims=claims,
        nodes=nodes,
        pods=pods,
        notices=notices,
        cloud=FakeCloud(world),
        repairs=repairs,
        pauses=FakeLookups(world),
        holds=holds(world),
        turns=OwnerTurns(0.25, world.pods.values, world.now),
    )
    evictor = Evictor(pods, notices, EvictionPace(world.now, world.pause), world.now)
    ports = ports_of(
        world,
        pauses=live_pauses(world, pools=OnePool(pool)),
        budgets=LiveBudgets(fleet, claims, nodes, world.now),
        repairs=repairs,
        reboots=RebootNodes(made, evictor, world.now, world.pause).begin,
    )
    pods_on = tuple(pod.uid for pod in world.pods.values())
    target = replace(target_of(world.claims["pool-0"], world.nodes["node-0"]), grace=300.0, pods=pods_on)
    command = DisruptionCommand(reason="Unhealthy", method="repair", targets=(target,), reboots=reboots)
    request = MarkRequest(owner=OWNER, command=command, seen=Seen(taken_at=world.now()).ready(world.now()))
    step = MarkAndUnmarkNodes(ports, world.now)
    outcome = cast(MarkOutcome, await ActivityEnvironment().run(step.mark_nodes, request))
    return outcome.refused[0][1] if outcome.refused else ""


@pytest.mark.parametrize(
    ("node", "budget", "why"),
    [
        ({"conditions": (SICK,)}, "1", ""),
        ({"conditions": (SICK,), "annotations": {names.DO_NOT_DISRUPT: "true"}}, "1", ""),
        ({"conditions": (SICK,), "annotations": {names.DO_NOT_REPAIR: "true"}}, "1", "the Node is not to be repaired"),
        ({}, "1", "the Node is not to be repaired"),
        ({"conditions": (replace(SICK, changed=900.0),)}, "1", "the Node is not to be repaired"),
        ({"conditions": (SICK,)}, "0", "spec.disruption.budgets of NodePool pool lets no node go for Unhealthy"),
        ({"conditions": (SICK,), "labels": {names.NODE_POOL: "pool"}}, "0", ""),
    ],
)
@pytest.mark.parametrize("reboots", [False, True])
async def test_only_a_node_that_is_sick_now_is_marked_or_rebooted(
    node: dict[str, Any], budget: str, why: str, reboots: bool
) -> None:
    world = a_world(node, {"conditions": (SICK,)})

    said = await mark(world, budget=budget, reboots=reboots)

    begun = world.claims["pool-0"].is_rebooting if reboots else bool(world.nodes["node-0"].taints)
    assert (bool(said), begun) == (bool(why), not why)
    if not reboots or "budgets" in why:
        assert said == why
    assert reboots <= (not world.nodes["node-0"].taints)


async def test_a_reboot_in_progress_uses_up_the_budget_at_the_mark() -> None:
    world = a_world({"conditions": (SICK,)}, {"conditions": (SICK,)})
    world.put(replace(world.claims["pool-1"], annotations={names.REBOOT_GRACE: "300s"}))

    assert "and 1 are leaving or not ready" in await mark(world)
    assert await mark(world, budget="2") == ""


async def test_where_repair_is_not_a_disruption_nothing_is_marked_for_it() -> None:
    world = a_world({"conditions": (SICK,)})

    assert await mark(world, wanted=False) == "the Node is not to be repaired"
    assert not world.nodes["node-0"].taints


async def test_pods_that_hold_the_node_are_left_to_the_bound_of_its_drain_which_begins_with_the_delete() -> None:
    world = a_world({"conditions": (SICK,)})
    world.put(a_web_pod("held", node_name="node-0", do_not_disrupt="true"))

    assert await mark(world) == ""
    world.clock += 120.0  # its replacement starts meanwhile
    claim = world.claims["pool-0"]
    target = replace(target_of(claim, world.nodes["node-0"]), grace=300.0, condition="Ready")
    request = DeleteRequest(name=claim.name, uid=claim.uid, pool="pool", target=target, reason="Unhealthy")
    world.put(replace(claim, annotations={**claim.annotations, names.OWNER: "c/disrupt/1"}))
    outcome = cast(StepOutcome, await deleted(world, request))

    assert outcome.message == "deleting"
    left = world.claims["pool-0"]
    assert (left.deleting_since, left.annotations[names.TERMINATION_DEADLINE]) == (1120.0, "1970-01-01T00:23:40Z")


@pytest.mark.parametrize(
    ("own", "well", "asked", "forced_by"),
    [
        (None, False, 1420.0, 1420.0),
        (86_400.0, False, 1420.0, 1420.0),
        (60.0, False, 1180.0, 1180.0),
        (None, False, 1121.0, 1300.0),  # no request shortens it
        (None, True, 1420.0, None),
        (1200.0, True, 1420.0, 2200.0),
    ],
)
async def test_a_drain_of_a_repair_before_the_delete_lasts_no_longer_than_its_bound(
    own: float | None, well: bool, asked: float, forced_by: float | None
) -> None:
    """From the beginning of that drain on; if the node is well again, only its own grace period ends it."""
    world = a_world({"conditions": (SICK,)})
    held = a_web_pod("held", node_name="node-0", do_not_disrupt="true")
    world.put(replace(world.claims["pool-0"], termination_grace=own), held)
    world.instances = {"aws:///zone/i-0": an_instance("aws:///zone/i-0")}
    assert await mark(world) == ""
    world.clock += 120.0  # its replacement starts meanwhile
    if well:
        world.put(replace(world.nodes["node-0"], conditions=(replace(SICK, status="True"),)))
    world.at(3000.0, lambda: world.kill(held))
    claim = world.claims["pool-0"]
    departure = Departure(
        claim=ClaimRef(name=claim.name, uid=claim.uid, pool="pool"),
        provider_id=claim.provider_id,
        nodes=("node-0",),
        node_uids=(world.nodes["node-0"].uid,),
        deadline=asked,
        reason="Unhealthy",
    )
    repairs = LiveRepairs(Policies(False), world.now, True)  # type: ignore[arg-type]
    pace = unlimited(EvictionPace(world.now, world.pause))
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id=OWNER)

    await environment.run(
        DrainNode(drain_ports(world, repairs=repairs), pace, world.now, world.pause).drain_node, departure
    )

    forced = [line for line in world.ledger if line.startswith("force")]
    assert (bool(forced), world.clock <= (forced_by or 3000.0) + 60.0) == (forced_by is not None, True)
    assert forced_by is None or world.clock > forced_by - 60.0


@pytest.mark.parametrize(
    ("changed", "asked", "until"),
    [
        ({}, {}, "1970-01-01T00:23:40Z"),
        ({"termination_grace": 60.0}, {}, "1970-01-01T00:19:40Z"),
        ({}, {"grace": 0.0}, "1970-01-01T00:23:40Z"),
        ({}, {"well": True}, None),
        ({"annotations": {names.OWNER: "c/disrupt/2"}}, {}, None),
        ({"annotations": {}}, {}, None),
        ({"conditions": ()}, {}, None),
        ({}, {"claim_uid": "another"}, None),
    ],
)
@pytest.mark.parametrize("several", [False, True])
async def test_a_drain_is_bounded_by_the_node_as_it_is_at_the_delete_and_for_its_own_disruption_alone(
    changed: dict[str, Any], asked: dict[str, Any], until: str | None, several: bool
) -> None:
    """Whatever the request says, and also of a claim that a person deletes meanwhile."""
    world = a_world({"conditions": (SICK,)})
    assert await mark(world) == ""
    world.clock += 120.0  # its replacement starts meanwhile
    asked = dict(asked)
    if asked.pop("well", False):
        world.put(replace(world.nodes["node-0"], conditions=(replace(SICK, status="True"),)))
    world.put(replace(world.claims["pool-0"], deleting_since=world.clock, finalizers=("kept",), **changed))
    claim = world.claims["pool-0"]
    target = replace(target_of(claim, world.nodes["node-0"]), **{"grace": 300.0, **asked})

    await deleted(
        world,
        DeletesRequest(targets=(target,), reason="Unhealthy")
        if several
        else DeleteRequest(name=claim.name, uid=target.claim_uid, pool="pool", target=target, reason="Unhealthy"),
    )

    assert world.claims["pool-0"].annotations.get(names.TERMINATION_DEADLINE) == until


@pytest.mark.parametrize("reason", ["Drifted", "Empty"])
async def test_no_other_disruption_bounds_a_drain(reason: str) -> None:
    world = a_world({})
    claim = world.claims["pool-0"]
    world.put(replace(claim, annotations={names.OWNER: OWNER}))
    target = replace(target_of(claim, world.nodes["node-0"]), grace=300.0)

    await deleted(world, DeleteRequest(name=claim.name, uid=claim.uid, pool="pool", target=target, reason=reason))

    assert names.TERMINATION_DEADLINE not in world.claims["pool-0"].annotations


async def deleted(world: World, request: DeleteRequest | DeletesRequest) -> object:
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id=OWNER)
    repairs = LiveRepairs(Policies(False), world.now, True)  # type: ignore[arg-type]
    steps = deleting(world, repairs=repairs)
    if isinstance(request, DeleteRequest):
        return await environment.run(steps.delete_claim, request)
    return await environment.run(steps.delete_claims, request)
