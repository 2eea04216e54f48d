"""The commands of docs/guides/try-it-on-kind.md, read out of it, against a real control plane and the cloud kwok.

kind's containers cannot run where the tests do: the control plane is the test bed's, and the worker is a process with
the rights of the chart. Everything else is what the guide says; kwok runs with the settings of the release that it
installs.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dovetail.adapters.kwok import names as own
from dovetail.model import names
from testbed.plane import find_binaries
from testing.cluster.costs import start_worker
from testing.cluster.ground import Ground
from testing.cluster.kwok import CLOUD, end_kwok_nodes, start_kwok_worker, upstreams_kwok
from testing.cluster.objects import is_tainted, owner_of

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "try-it-on-kind.md"
PODS = 6


def step(number: int) -> list[str]:
    """The commands of one step of the guide that speak to our objects."""
    _, _, rest = GUIDE.read_text().partition(f"\n## {number}. ")
    section = rest.partition("\n## ")[0]
    lines = [line for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]
    return [line for line in lines if line.startswith("kubectl ") and "https://" not in line]


async def run(ground: Ground, command: str) -> str:
    """As the guide has it, by the test bed's kubectl."""
    program = find_binaries(lambda _line: None).path("kubectl")
    process = await asyncio.create_subprocess_exec(
        str(program),
        *command.split()[1:],
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(ground.everything.plane.kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, f"{command}: {said.decode()}"
    return said.decode()


@pytest_asyncio.fixture(loop_scope="session")
async def on_kwok(ground: Ground) -> AsyncIterator[Ground]:
    """A worker whose cloud is kwok, with the rights that the chart gives it."""
    async with upstreams_kwok(ground):
        await start_kwok_worker(ground)
        yield ground
        for body in await ground.objects("Deployment"):
            await ground.delete("Deployment", body["metadata"]["name"])
        await end_kwok_nodes(ground)
    ground.kill_workers()


async def test_the_guide_from_a_pod_to_a_cancel_an_interruption_and_a_kill(on_kwok: Ground) -> None:
    ground = on_kwok
    pool, web, look = step(3)
    await run(ground, pool)
    await run(ground, web)

    async def settled() -> bool:
        return bool(await ground.claims()) and await ground.settled(PODS)

    await ground.until(settled, 180, "the guide's pods run on nodes of kwok")
    assert "nodeclaim" in await run(ground, look)
    before = {node["metadata"]["name"] for node in await ground.nodes()}
    for node in await ground.nodes():
        assert node["spec"]["providerID"] == f"kwok://{node['metadata']['name']}"
        assert node["metadata"]["annotations"][own.PLAYED] == own.FAKE

    replace_all, cancel_all = step(4)
    await run(ground, replace_all)

    async def marked() -> bool:
        return any(owner_of(claim) for claim in await ground.claims())

    await ground.until(marked, 120, "a replacement is under way")
    await run(ground, cancel_all)

    async def called_off() -> bool:
        claims, nodes = await ground.claims(), await ground.nodes()
        return {node["metadata"]["name"] for node in nodes} == before and not any(
            [*(owner_of(claim) for claim in claims), *(is_tainted(node) for node in nodes)]
        )

    await ground.until(called_off, 180, "the change was called off and the nodes stand as before")

    interrupt, _ = step(5)  # the kill is that of a process here
    await run(ground, interrupt)

    async def leaving() -> bool:
        return any("deletionTimestamp" in claim["metadata"] for claim in await ground.claims())

    await ground.until(leaving, 120, "the announcement is answered")
    start_worker(ground, **CLOUD)  # which kills the other

    async def replaced() -> bool:
        return not before & {node["metadata"]["name"] for node in await ground.nodes()} and await settled()

    await ground.until(replaced, 240, "after the kill other nodes have the pods")
    nodes, claims = await ground.nodes(), await ground.claims()
    of_claims = {claim["metadata"]["uid"] for claim in claims}
    assert {node["metadata"]["labels"][names.CLAIM_UID_TAG] for node in nodes} == of_claims
    assert len(nodes) == len(claims)
