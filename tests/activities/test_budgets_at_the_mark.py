"""DIS-141: before a mark the nodes of the NodePool are counted against its budgets once more."""

import asyncio
import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.live_budgets import LiveBudgets
from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.messages.outcomes import MarkOutcome
from dovetail.messages.plans import DisruptionCommand, Seen
from dovetail.messages.requests import MarkRequest
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.pools import Budget, DisruptionPolicy
from dovetail.model.snapshot import Snapshot
from tests.activities.test_creating_claims import NODE
from tests.activities.test_gated_orders import OnePool
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, a_web_pod, target_of
from worlds.fakes import FakeClaims, FakeLookups, FakeNodes, World, live_pauses, mark_ports

SILENT = (Condition(type=names.READY, status="Unknown"),)
OTHER = {names.OWNER: "c/disrupt/other"}


def a_world(nodes: int = 4) -> World:
    world = World()
    for number in range(nodes):
        place = f"aws:///zone/i-{number}"
        world.put(
            a_joined_claim(f"pool-{number}", provider_id=place, node_name=f"node-{number}"),
            a_joined_node(f"node-{number}", provider_id=place),
        )
    return world


def shown(world: World) -> Snapshot:
    return Snapshot(now=world.now(), claims=dict(world.claims), nodes=dict(world.nodes))


def marking(world: World, budget: str, fleet: Callable[[], Snapshot] | None = None) -> MarkAndUnmarkNodes:
    pool = replace(a_new_pool(), disruption=DisruptionPolicy(budgets=(Budget(nodes=budget),)))
    live = live_pauses(world, pools=OnePool(pool))
    budgets = LiveBudgets(fleet or (lambda: shown(world)), FakeClaims(world), FakeNodes(world), world.now)
    return MarkAndUnmarkNodes(mark_ports(world, pauses=live, budgets=budgets), world.now)


async def mark(
    step: MarkAndUnmarkNodes, world: World, *which: int, owner: str = "c/disrupt/1", **of: Any
) -> MarkOutcome:
    targets = tuple(target_of(world.claims[f"pool-{n}"], world.nodes[f"node-{n}"]) for n in which)
    command = DisruptionCommand(**{"reason": "Empty", "method": "emptiness", "targets": targets, **of})
    request = MarkRequest(owner=owner, command=command, seen=Seen(taken_at=world.now()).ready(world.now()))
    return cast(MarkOutcome, await ActivityEnvironment().run(step.mark_nodes, request))


def marked(world: World) -> list[str]:
    return sorted(node.name for node in world.nodes.values() if node.taints)


@pytest.mark.parametrize(
    ("claim", "node", "goes"),
    [
        ({"annotations": OTHER}, {}, False),
        ({"deleting_since": 990.0}, {}, False),
        ({}, {"conditions": SILENT}, False),
        ({}, {}, True),
        ({"deleting_since": 990.0}, {"labels": {names.NODE_POOL: "pool"}}, True),  # never initialised: no node of it
        ({"deleting_since": 990.0, "labels": {names.NODE_POOL: "other"}}, {}, True),
    ],
)
async def test_no_more_nodes_are_marked_than_the_budgets_let_go_beside_those_that_leave(
    claim: dict[str, Any], node: dict[str, Any], goes: bool
) -> None:
    """Whoever asks for it: a stranger's steps know of no other disruption."""
    world = a_world()
    world.put(replace(world.claims["pool-3"], **claim), replace(world.nodes["node-3"], **node))

    outcome = await mark(marking(world, "1"), world, 0)

    words = "lets 1 of 4 nodes go at once for Empty, and 1 are leaving or not ready"
    assert outcome.refused == (() if goes else (("pool-0", f"spec.disruption.budgets of NodePool pool {words}"),))
    assert marked(world) == (["node-0"] if goes else [])


async def test_of_nodes_that_are_only_deleted_as_many_are_marked_as_may_go_and_of_others_all_or_none() -> None:
    world, replaced = a_world(), a_world()

    some = await mark(marking(world, "50%"), world, 0, 1, 2)
    none = await mark(marking(replaced, "50%"), replaced, 0, 1, 2, reason="Drifted", replacements=(NODE,))

    assert (some.marked, [claim for claim, _ in some.refused]) == (("pool-0", "pool-1"), ["pool-2"])
    assert (none.marked, marked(replaced)) == ((), [])


async def test_what_is_asked_for_side_by_side_or_just_before_is_counted_though_no_cache_shows_it() -> None:
    world = a_world()
    before = shown(world)
    step = marking(world, "2", lambda: before)

    await asyncio.gather(*[mark(step, world, n, owner=f"c/disrupt/{n}") for n in range(3)])
    later = await mark(step, world, 3, owner="c/disrupt/3")

    assert (len(marked(world)), later.marked) == (2, ())


async def test_a_cache_that_is_behind_refuses_nothing_and_a_node_that_may_go_costs_no_request() -> None:
    world = a_world()
    free, counting = a_world(), a_world()
    world.put(replace(world.claims["pool-2"], annotations=OTHER), replace(world.nodes["node-3"], conditions=SILENT))
    behind = shown(world)
    del world.claims["pool-2"], world.nodes["node-2"]
    world.put(a_joined_node("node-3", provider_id="aws:///zone/i-3"))

    assert (await mark(marking(world, "1", lambda: behind), world, 0)).marked == ("pool-0",)
    await mark(marking(counting, "1"), counting, 0)
    await mark(MarkAndUnmarkNodes(mark_ports(free), free.now), free, 0)
    assert counting.ledger == free.ledger


async def test_a_mark_that_was_refused_takes_nobody_s_place() -> None:
    world = a_world()
    step = marking(world, "1")
    world.put(replace(world.nodes["node-0"], annotations={names.DO_NOT_DISRUPT: "true"}))

    assert (await mark(step, world, 0)).marked == ()
    assert (await mark(step, world, 1)).marked == ("pool-1",)


async def test_a_retry_is_not_refused_for_what_it_has_marked_itself() -> None:
    world = a_world()
    step = marking(world, "2")

    await mark(step, world, 0, 1)

    assert (await mark(step, world, 0, 1)).marked == ("pool-0", "pool-1")


@pytest.mark.parametrize("budget", ["0", "1"])
@pytest.mark.parametrize("at_once", [True, False])
async def test_what_a_person_asks_for_at_once_waits_for_no_budget(budget: str, at_once: bool) -> None:
    """As `dovetail replace --now` promises."""
    world = a_world()
    asked = {names.REPLACE: "worn out", **({names.REPLACE_NOW: "true"} if at_once else {})}
    world.put(replace(world.claims["pool-0"], annotations=asked), replace(world.claims["pool-3"], annotations=OTHER))

    outcome = await mark(marking(world, budget), world, 0, reason="Requested", drain_first=True)

    assert outcome.marked == (("pool-0",) if at_once else ())


@pytest.mark.parametrize("budget", ["0", "1"])
async def test_one_node_that_is_asked_for_at_once_opens_no_budget_for_those_that_a_stranger_names_beside_it(
    budget: str,
) -> None:
    world = a_world()
    urgent = {names.REPLACE: "worn out", names.REPLACE_NOW: "true"}
    waits = {names.REPLACE: "worn out"}
    world.put(*[replace(world.claims[f"pool-{n}"], annotations=urgent if n == 0 else waits) for n in range(4)])

    outcome = await mark(marking(world, budget), world, 0, 1, 2, 3, reason="Requested", drain_first=True)

    assert (len(outcome.marked), len(marked(world))) == (int(budget), int(budget))


async def test_a_node_for_which_nobody_asks_is_not_marked_as_asked_for() -> None:
    """Nor one whose request is taken back after the cache was read."""
    world = a_world()
    asked = {names.REPLACE: "worn out", names.REPLACE_NOW: "true"}
    world.put(*[replace(world.claims[f"pool-{n}"], annotations=asked) for n in (0, 1)])
    behind = FakeLookups(copy.deepcopy(world))
    world.put(replace(world.claims["pool-0"], annotations={}))
    step = marking(world, "100%")
    step.lookups = behind

    outcome = await mark(step, world, 0, 1, 2, reason="Requested", drain_first=True)

    assert outcome.marked == ("pool-1",)
    assert dict(outcome.refused) == dict.fromkeys(["pool-0", "pool-2"], "the NodeClaim carries no dovetail.sh/replace")
    assert marked(world) == ["node-1"]


@pytest.mark.parametrize(("reason", "goes"), [("Drifted", True), ("Expired", True), ("Requested", False)])
async def test_a_pod_that_is_protected_since_the_decision_is_passed_only_by_what_a_grace_period_lets_pass(
    reason: str, goes: bool
) -> None:
    world = a_world()
    asked = {names.REPLACE: "worn out"} if reason == "Requested" else {}
    world.put(replace(world.claims["pool-0"], termination_grace=60.0, annotations=asked))
    pod = a_web_pod(node_name="node-0", do_not_disrupt="true")
    world.put(pod)
    targets = (replace(target_of(world.claims["pool-0"], world.nodes["node-0"]), pods=(pod.uid,)),)

    outcome = await mark(marking(world, "100%"), world, reason=reason, targets=targets)

    assert outcome.marked == (("pool-0",) if goes else ())
    assert [why.split(" carries ")[0] for _, why in outcome.refused] == ([] if goes else ["pod apps/web-1"])
