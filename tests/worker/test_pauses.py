"""The steps as the worker wires them, over a simulated world: a pause reaches each, and a cancel is answered."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.messages.orders import DeleteClaim, Orders, OrdersRequest
from dovetail.messages.plans import DisruptionCommand, Seen, Target
from dovetail.messages.requests import MarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.wiring.world import World, open_world
from dovetail.worker.steps import Wiring
from testbed.simulated_world import SimulatedWorld
from tests.cli.test_explain_node import a_managed_node
from tests.cli.worlds import a_ready_pool, a_world, settings_of
from tests.waiting import until
from worlds.fakes import on_duty

Step = Callable[..., Awaitable[Any]]


def step_of(settings: Any, world: World, name: str) -> Step:
    """One step, as the worker has made it."""
    queues = Wiring(settings=settings, world=world, times=PodTimes(duties=on_duty())).activities(("control", "plan"))
    return next(step for steps in queues.values() for step in steps if step.__name__ == name)


def an_expired_world(folder: Path, **pool: Any) -> SimulatedWorld:
    """A node whose time is over the moment it is made."""
    node, claim = a_managed_node()
    if node["kind"] == "NodeClaim":
        node, claim = claim, node
    claim["spec"]["expireAfter"] = "1s"
    return a_world(folder, a_ready_pool(**pool), claim, node)


def pause(world: SimulatedWorld, text: str | None) -> None:
    world.patch("Namespace", "kube-system", {"metadata": {"annotations": {names.PAUSED: text}}})


def events(world: SimulatedWorld) -> dict[str, str]:
    found = world.objects("Event")
    return {str(event.get("reason")): str(event.get("message") or event.get("note")) for event in found}


async def test_what_has_expired_is_ordered_only_after_the_pause(tmp_path: Path) -> None:
    """The look is under way when the pause ends, and is woken by it."""
    simulated = an_expired_world(tmp_path)
    pause(simulated, "expiry")
    world = await open_world(settings_of(simulated))
    try:
        look = step_of(settings_of(simulated), world, "await_orders")
        found: asyncio.Future[Orders] = asyncio.ensure_future(ActivityEnvironment().run(look, OrdersRequest()))
        done, _ = await asyncio.wait([found], timeout=3.0)
        assert not done
        pause(simulated, None)
        orders = await asyncio.wait_for(found, 60.0)
    finally:
        await world.close()

    assert [(o.reason, o.claim.name) for o in orders.orders if isinstance(o, DeleteClaim)] == [
        ("expired", simulated.objects("NodeClaim")[0]["metadata"]["name"])
    ]


@pytest.mark.parametrize(("text", "done"), [("disruption", False), ("launches", True), (None, True)])
@pytest.mark.parametrize("step", ["mark_nodes", "delete_claim_for"])
async def test_the_mark_and_the_order_ask_the_objects(tmp_path: Path, text: str | None, done: bool, step: str) -> None:
    simulated = an_expired_world(tmp_path, replicas=0)  # of a static pool no node is wanted
    claim, node = simulated.objects("NodeClaim")[0], simulated.objects("Node")[0]
    if text is not None:
        pause(simulated, text)
    settings = settings_of(simulated)
    settings = settings.model_copy(update={"gates": {**settings.gates, "StaticCapacity": True}})
    world = await open_world(settings)
    target = Target(
        claim=claim["metadata"]["name"],
        claim_uid=claim["metadata"]["uid"],
        node=node["metadata"]["name"],
        node_uid=node["metadata"]["uid"],
        provider_id=node["spec"]["providerID"],
        pool="default",
    )
    command = DisruptionCommand(reason="Empty", method="emptiness", targets=(target,), summary="", savings=0.0)
    asked = {
        "mark_nodes": MarkRequest(
            owner="demo/disrupt/1", command=command, seen=Seen(taken_at=0.0, versions=()).ready(time.time())
        ),
        "delete_claim_for": DeleteClaim(
            claim=ClaimRef(name=target.claim, uid=target.claim_uid, pool="default"), reason="static_scale_down"
        ),
    }
    try:
        await ActivityEnvironment().run(step_of(settings, world, step), asked[step])
    finally:
        await world.close()

    left = simulated.get("NodeClaim", target.claim)
    marked = left is not None and names.OWNER in left["metadata"].get("annotations", {})
    deleted = left is None or "deletionTimestamp" in left["metadata"]
    assert (marked, deleted) == (done and step == "mark_nodes", done and step == "delete_claim_for")


async def test_upkeep_says_what_is_paused_and_answers_a_cancel(tmp_path: Path) -> None:
    simulated = an_expired_world(tmp_path)
    [claim] = simulated.objects("NodeClaim")
    name = claim["metadata"]["name"]
    pause(simulated, "everythng")
    simulated.patch("NodeClaim", name, {"metadata": {"annotations": {names.CANCEL: "not now"}}})
    world = await open_world(settings_of(simulated))
    keeping: asyncio.Future[None] = asyncio.ensure_future(
        ActivityEnvironment().run(step_of(settings_of(simulated), world, "keep_up"))
    )
    try:
        wanted = {"Paused", "PauseNotUnderstood", "DisruptionCancelled"}
        await until(lambda: wanted <= set(events(simulated)), 60, "the Events are published")
        pause(simulated, None)
        await until(lambda: "Resumed" in events(simulated), 60, "the end is published")
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await world.close()

    annotations = simulated.objects("NodeClaim")[0]["metadata"]["annotations"]
    assert names.CANCEL not in annotations and names.REST in annotations
    assert "not now (by annotation)" in events(simulated)["DisruptionCancelled"]
