"""What a worker says that the API server refuses: one clear line that names what it may not do, and no traceback.

Rights are the commonest mistake of an installation. The refusals are the API server's own RBAC.
"""

import asyncio
import os
import signal

import pytest
import yaml

from dovetail.model.values.json import Json
from testbed.up import RIGHTS, give_rights
from tests.cluster.system.scenes import gone, settle
from worlds.cluster.ground import Ground
from worlds.cluster.objects import claim_id

pytestmark = pytest.mark.cluster


ENDS_SECONDS = 120.0


async def test_a_worker_without_any_rights_ends_with_a_line_that_names_what_it_may_not_do(ground: Ground) -> None:
    process = await asyncio.create_subprocess_exec(
        *ground.everything.worker_command(),
        env={**os.environ, **ground.environment_of("nobody")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), ENDS_SECONDS)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)

    lines = said.decode().splitlines()
    assert process.returncode not in {0, None}
    assert not [line for line in lines if "Traceback" in line]
    [last] = [line for line in lines if line.startswith("dovetail:")]
    assert '"nobody" cannot get resource "namespaces"' in last and '"kube-system"' in last  # the first thing it reads
    assert last == lines[-1] and len(last) < 600


async def test_a_right_that_is_missing_is_named_and_once_it_is_granted_the_drain_goes_on(ground: Ground) -> None:
    [claim] = await settle(ground, 1)
    ground.kill_workers()
    await give_rights(ground.api, "hindered", [_without_evictions(body) for body in _rights()])
    ground.ensure_workers(identity="hindered")

    await ground.delete("NodeClaim", claim["metadata"]["name"])

    async def named() -> bool:
        described = await ground.client.get_workflow_handle(claim_id(claim)).describe()
        pending = described.raw_description.pending_activities
        reported = [payload.data.decode() for step in pending for payload in step.heartbeat_details.payloads]
        return any('\\"hindered\\" cannot create resource \\"pods/eviction\\"' in text for text in reported)

    await ground.until(named, 60, "the workflow's pending step names the right")
    assert not await gone(ground, claim)
    await give_rights(ground.api, "hindered", _rights())
    await ground.until(lambda: gone(ground, claim), 90, "the claim is gone")
    await ground.until(lambda: ground.settled(1), 60, "its pod runs elsewhere")
    ground.kill_workers()  # the tests that follow judge what the worker's own user asks


def _rights() -> list[Json]:
    return list(yaml.safe_load_all(RIGHTS.read_text()))


def _without_evictions(role: Json) -> Json:
    if "rules" not in role:
        return role  # a policy
    rules = [rule for rule in role["rules"] if "pods/eviction" not in rule["resources"]]
    return {**role, "metadata": {**role["metadata"], "name": "dovetail-without-evictions"}, "rules": rules}
