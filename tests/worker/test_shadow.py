"""The shadow decides on a cluster that somebody else looks after, and compares what both would do."""

import asyncio
import copy
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from dovetail.answers.shadow.comparing import ShadowReport
from dovetail.answers.shadow.shadow import Shadow
from dovetail.answers.shadow.text import shadow_text
from dovetail.model import names
from dovetail.settings.settings import Settings
from dovetail.wiring.world import open_world
from testbed.simulated_world import SimulatedWorld
from tests.cli.test_explain_node import OPEN, a_managed_node
from tests.cli.worlds import a_ready_pool, a_world, settings_of
from tests.waiting import until
from worlds.manifests import pod_manifest

Watched = tuple[SimulatedWorld, Shadow]


@pytest_asyncio.fixture(loop_scope="session")
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    """An empty node that nobody but Dovetail would take, and the shadow over it."""
    node = a_managed_node()
    node[0]["metadata"]["finalizers"] = [names.TERMINATION_FINALIZER]
    simulated = a_world(tmp_path, a_ready_pool(disruption=OPEN), *node)
    settings: Settings = settings_of(simulated).model_copy(update={"batch_idle": 0.1})
    world = await open_world(settings)
    shadow = Shadow(settings, world)
    shadow.listen()
    tasks = [asyncio.create_task(work()) for work in (shadow.watch_nodes, shadow.watch_pods)]
    yield simulated, shadow
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    shadow.close()
    await world.close()


async def reported(shadow: Shadow, words: str, seconds: float = 20.0) -> ShadowReport:
    def found() -> ShadowReport | None:
        text = shadow_text(report := shadow.report())
        return report if words in text else None

    return await until(found, seconds, f"the report says {words!r}")


async def test_a_node_that_karpenter_takes_too_agrees_with_the_plan_and_nothing_is_written(watched: Watched) -> None:
    simulated, shadow = watched
    mark = max(entry.id for entry in simulated.ledger())
    await until(lambda: shadow.comparing.looks or None)
    moment = "2026-01-01T00:00:00Z"
    claim = simulated.get("NodeClaim", "claim-n1")
    assert claim is not None
    reason = {"type": names.DISRUPTION_REASON, "status": "True", "reason": "Empty", "lastTransitionTime": moment}
    conditions = [*claim["status"]["conditions"], {**reason, "message": ""}]

    simulated.patch("NodeClaim", "claim-n1", {"status": {"conditions": conditions}}, "status")
    simulated.delete("NodeClaim", "claim-n1")

    report = await reported(shadow, "departures   1 alike")
    [departure] = report.departures
    assert (departure.way, departure.dovetail, departure.karpenter) == ("both", "Empty", "Empty")
    assert {entry.actor for entry in simulated.ledger(mark)} <= {"kubectl"}


async def test_a_node_that_a_person_deletes_is_not_compared(watched: Watched) -> None:
    simulated, shadow = watched
    simulated.delete("NodeClaim", "claim-n1")
    report = await reported(shadow, "1 node left without a disruption")
    assert report.totals.departures_alike == report.totals.only_karpenter == 0


async def test_what_karpenter_launched_for_a_pod_is_compared_with_what_dovetail_would_have(watched: Watched) -> None:
    """Also where its claim came before the shadow had decided: that claim is not taken for room."""
    simulated, shadow = watched
    pod = pod_manifest("lone", cpu="7")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "7"}}
    simulated.apply(pod)
    simulated.player().settle(0.0)
    await until(lambda: shadow._batches or None, words="a batch is open")
    [batch] = shadow._batches
    assert [node.pool for node in batch.nodes] == ["default"]

    claim, node = copy.deepcopy(a_managed_node("n2"))
    simulated.apply(claim)
    simulated.apply(node)
    simulated.patch("Pod", "default/lone", {"spec": {"nodeName": "n2"}})

    report = await reported(shadow, "1 pod (default/lone)")
    [launch] = report.launches
    assert [made.type for made in launch.karpenter] == ["c-4x-amd64-linux"]
    assert launch.karpenter[0].price and launch.saving is not None
