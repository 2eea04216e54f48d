"""A worker beside a Karpenter answers what it would do, and leaves nothing behind."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.meters import called
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.cli.demo.temporal_server import free_ports
from dovetail.ports.failures import Forbidden
from dovetail.settings.flags import flags_of
from dovetail.settings.settings import SettingsError, read_settings
from dovetail.worker import run
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_deployment
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world
from tests.waiting import until_answered


def asked_for(world: SimulatedWorld, port: int) -> dict[str, str]:
    """As `dovetail worker --beside-karpenter` reads it."""
    return {
        "CLUSTER_NAME": CLUSTER,
        "DOVETAIL_WORLD": str(world.file),
        "METRICS_PORT": str(port),
        "HEALTH_PROBE_PORT": str(port),
        "TEMPORAL_ADDRESS": "127.0.0.1:1",  # nobody is asked
        **flags_of(["--beside-karpenter"]),
    }


async def answer(port: int, path: str) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        is_json = response.content_type == "application/json"
        return response.status, await (response.json() if is_json else response.text())


async def test_it_answers_what_it_would_do_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = a_world(tmp_path, a_ready_pool(), a_deployment(1, cpu="1"))
    [port] = free_ports(1)
    mark, stop = max(entry.id for entry in world.ledger()), asyncio.Event()
    serving = asyncio.create_task(run.serve(read_settings(asked_for(world, port)), stop))

    async def serves() -> bool:
        assert not serving.done() or serving.exception() is None
        return "writes nothing" in capsys.readouterr().out

    await until_answered(serves, 30, "it serves")
    ready, alive = await answer(port, "/readyz"), await answer(port, "/healthz")
    status, plan = await answer(port, "/api/v1/plan")
    stop.set()
    await serving

    assert (ready[0], alive[0], status) == (200, 200, 200)
    assert [each["pool"] for each in plan["newNodes"]] == ["default"], plan
    assert world.ledger(mark) == []


@pytest.mark.parametrize("missing", [{"METRICS_PORT": ""}, {"DOVETAIL_API": "false"}])
async def test_one_that_could_answer_nobody_says_so(tmp_path: Path, missing: dict[str, str]) -> None:
    settings = read_settings({**asked_for(a_world(tmp_path), 1), **missing})
    with pytest.raises(SettingsError, match="DOVETAIL_BESIDE_KARPENTER: with METRICS_PORT=0 or DOVETAIL_API=false"):
        await run.serve(settings, asyncio.Event())


@pytest.mark.parametrize("operation", ["CreateFleet", "TerminateInstances", "CreateTags", "RunInstances"])
async def test_the_cloud_s_calls_that_change_something_are_not_made(operation: str) -> None:
    """Not as a dry run either: whatever asks for one is about to act."""
    calls = Calls(AwsSettings(cluster="c", region="eu-west-1"), read_only=True, agent="dovetail", observe=called)
    try:
        with pytest.raises(Forbidden, match=f"ec2:{operation}: not called: this process only looks"):
            await calls.dry_run(operation)
    finally:
        await calls.close()
