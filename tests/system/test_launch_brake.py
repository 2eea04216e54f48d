"""Nodes with less memory than their type says, a worker, and a person who resumes what was stopped."""

import asyncio
import time
from contextlib import suppress

import pytest

from dovetail.model import names
from dovetail.rules.brake.unused_launches import stop_text
from tests.system.beside import beside
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal


class Liars:
    """Kubelets that report a mebibyte of memory, before their nodes are ready."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.done = stage, set[str]()

    async def lie(self) -> None:
        while True:
            for node in self.stage.managed_nodes():
                name = node["metadata"]["name"]
                if name not in self.done:
                    small = {**node["status"]["allocatable"], "memory": "1Mi"}
                    self.stage.world.patch("Node", name, {"status": {"allocatable": small}}, "status")
                    self.done.add(name)
            await asyncio.sleep(0.1)


def made(stage: Stage) -> int:
    return len(stage.claims()) + len(stage.departed("NodeClaim"))


def stop_of(stage: Stage) -> str:
    pool = stage.world.get("NodePool", "pool")
    return (pool["metadata"].get("annotations") or {}).get(names.LAUNCHES_STOPPED, "") if pool else ""


def said(stage: Stage, reason: str) -> list[str]:
    """The messages of the Events of that reason."""
    return [str(e.get("message") or e.get("note")) for e in stage.world.objects("Event") if e.get("reason") == reason]


@beside
async def test_useless_nodes_of_one_owner_stop_nobody_else_and_a_person_resumes_a_stopped_pool(stage: Stage) -> None:
    """PLQ-32, PLQ-33: two nodes for one pod and no third one, a stranger's pod that runs; and a stop that outlasts the
    worker, until it is taken off."""
    stage.world.set(node_ready=2.0)  # time to lie in
    stage.apply_pool(consolidateAfter="Never")
    worker = stage.start_worker(DOVETAIL_BRAKE_LAUNCHES="1")
    lying = asyncio.create_task(Liars(stage).lie())
    stage.deploy(1)

    await stage.until(lambda: made(stage) == 2 and stage.initialised(2), 120, "its two nodes are up")
    stage.deploy(2)
    held = "nothing is launched for the pods of default/ReplicaSet web"
    await stage.until(
        lambda: any(held in message for message in said(stage, "FailedScheduling")),
        60,
        "the owner's next pod is told whose launches were of no use",
    )
    lying.cancel()
    with suppress(asyncio.CancelledError):
        await lying
    stage.deploy(1, "stranger")
    await stage.until(lambda: stage.running_pods() == 1, 60, "a stranger's pod runs")
    assert made(stage) == 3
    assert stop_of(stage) == ""

    stage.kill(worker)
    stopped = {"metadata": {"annotations": {names.LAUNCHES_STOPPED: stop_text(time.time(), "9 of 9 nodes")}}}
    stage.world.patch("NodePool", "pool", stopped)
    stage.start_worker()
    stage.deploy(5, "late")
    late = "launches are stopped: 9 of 9 nodes; one more node is tried at"
    await stage.until(
        lambda: any(late in message for message in said(stage, "FailedScheduling")),
        60,
        "the next pod is told that launches are stopped",
    )
    assert made(stage) == 3
    _, status, _ = await stage.dovetail("status")
    _, found, _ = await stage.dovetail("doctor")
    assert "NodePool pool  launches are stopped since" in status
    assert "dovetail resume --pool pool" in found

    code, out, err = await stage.dovetail("resume", "--pool", "pool")

    assert (code, err) == (0, "")
    assert "NodePool pool: launches go on; they were stopped since" in out
    await stage.until(lambda: stage.running_pods() == 8, 90, "all pods run")
    assert stop_of(stage) == ""


@beside
async def test_a_pool_that_does_not_exist_is_not_resumed(stage: Stage) -> None:
    assert await stage.dovetail("resume", "--pool", "nowhere") == (
        1,
        "",
        "dovetail: nowhere: there is no such NodePool",
    )
