"""docs/guides/try-it-on-kind.md is played from its own page, on a node that is real.

The page's commands are typed as they stand there: the workers run from our own image, as containers, with the chart's
rights, probes and limits, on kwok as it is released. What is not typed says in the page's source why.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dovetail.adapters.kwok import names as own
from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.plane.building import SOURCES
from tests.real_nodes import real_ground
from worlds.cluster.guides import blocks_of, played
from worlds.cluster.objects import is_tainted, owner_of
from worlds.cluster.real_nodes import RealGround, ready, restarts

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "try-it-on-kind.md"
RELEASES = "https://github.com/kubernetes-sigs/kwok/releases/download/"
PODS = 6
LOCKED_DOWN = {"Uid": "65532", "CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}
_TELL = "import pathlib; print(pathlib.Path('/proc/1/status').read_text())"


@pytest_asyncio.fixture(loop_scope="session")
async def ground(request: pytest.FixtureRequest) -> AsyncIterator[RealGround]:
    async for started in real_ground(request, "guide"):
        yield started


def test_each_block_of_the_guide_is_played_or_says_why_not() -> None:
    blocks = blocks_of(GUIDE)

    assert len(blocks) == GUIDE.read_text().count("```sh\n")
    assert {block.step[:2] for block in blocks if not block.not_played} == {f"{step}." for step in range(1, 7)}
    assert all(len(block.not_played.split()) > 3 for block in blocks if block.not_played)


def test_the_guide_installs_the_kwok_that_the_test_bed_builds() -> None:
    version = re.search(r"sigs.k8s.io/kwok (v[\d.]+)", (SOURCES / "kwok" / "go.mod").read_text())
    assert version is not None
    assert set(re.findall(rf"{RELEASES}(v[\d.]+)/", GUIDE.read_text())) == {version[1]}


class Guide:
    """The steps, each with what must be true before the next is typed."""

    def __init__(self, ground: RealGround) -> None:
        self.ground = ground

    async def kwoks(self) -> list[Json]:
        return await self.ground.nodes("karpenter.sh%2Fnodepool%3Dweb")

    async def names(self) -> set[str]:
        return {node["metadata"]["name"] for node in await self.kwoks()}

    async def settled(self) -> bool:
        claims, pods = await self.ground.claims(), await self.ground.pods("app%3Dweb")
        still = not any(owner_of(claim) or "deletionTimestamp" in claim["metadata"] for claim in claims)
        return bool(claims) and still and len(pods) == PODS and all(map(ready, pods))

    async def install(self) -> None:
        """Steps 1 and 2: the workers are ready as they were first started, with no right that they need not have."""
        for command in [*played(GUIDE, "1. "), *played(GUIDE, "2. ")]:
            await self.ground.typed(re.sub(rf"{RELEASES}v[\d.]+/", f"{self.ground.cluster.kwok}/", command))
        workers = await self.ground.workers()
        assert len(workers) == 2 and all(map(ready, workers)) and [restarts(pod) for pod in workers] == [0, 0]
        inside = "kubectl --namespace dovetail exec deploy/dovetail --"
        status = await self.ground.typed(f'{inside} python3.11 -c "{_TELL}"')
        shown = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        assert {key: shown[key].split()[0] for key in LOCKED_DOWN} == LOCKED_DOWN
        await self.ground.typed(f"{inside} dovetail doctor")

    async def nodes_appear(self) -> None:
        """Step 3."""
        pool, web, look = played(GUIDE, "3. ")
        await self.ground.typed(pool)
        await self.ground.typed(web)
        await self.ground.until(self.settled, 180, "the guide's pods run on nodes of kwok")
        assert "nodeclaim" in await self.ground.typed(look)
        for node in await self.kwoks():
            assert node["spec"]["providerID"] == f"kwok://{node['metadata']['name']}"
            assert node["metadata"]["annotations"][own.PLAYED] == own.FAKE and ready(node)

    async def called_off(self) -> None:
        """Step 4."""
        before = await self.names()
        replace_all, cancel_all = played(GUIDE, "4. ")
        await self.ground.typed(replace_all)

        async def marked() -> bool:
            return any(owner_of(claim) for claim in await self.ground.claims())

        await self.ground.until(marked, 120, "a replacement is under way")
        await self.ground.typed(cancel_all)

        async def as_before() -> bool:
            claims, nodes = await self.ground.claims(), await self.kwoks()
            marks = [*(owner_of(claim) for claim in claims), *(is_tainted(node) for node in nodes)]
            return {node["metadata"]["name"] for node in nodes} == before and not any(marks)

        await self.ground.until(as_before, 180, "the change was called off and the nodes stand as before")

    async def interrupted_and_killed(self) -> None:
        """Step 5."""
        before, killed = await self.names(), {pod["metadata"]["uid"] for pod in await self.ground.workers()}
        for command in played(GUIDE, "5. "):
            await self.ground.typed(command)

        async def replaced() -> bool:
            return not before & await self.names() and await self.settled()

        await self.ground.until(replaced, 240, "after the kill other nodes have the pods")
        nodes, claims = await self.kwoks(), await self.ground.claims()
        of_claims = {claim["metadata"]["uid"] for claim in claims}
        assert {node["metadata"]["labels"][names.CLAIM_UID_TAG] for node in nodes} == of_claims
        assert len(nodes) == len(claims)

        async def others_ready() -> bool:
            workers = await self.ground.workers()
            others = not killed & {pod["metadata"]["uid"] for pod in workers}
            return others and len(workers) == 2 and all(map(ready, workers))

        await self.ground.until(others_ready, 120, "the workers that came next are ready")

    async def looked_at(self) -> None:
        """Step 6."""
        [claim, *_] = await self.ground.claims()
        node, name = claim["status"]["nodeName"], claim["metadata"]["name"]
        explained, told = [
            await self.ground.typed(re.sub(r"\bNODE\b", node, command)) for command in played(GUIDE, "6. ")
        ]
        assert node in explained
        assert f"claim/{name}  LaunchNode, completed" in told


@pytest.mark.cluster
async def test_the_guide_from_the_installation_to_a_cancel_an_interruption_and_a_kill(ground: RealGround) -> None:
    guide = Guide(ground)

    await guide.install()
    await guide.nodes_appear()
    await guide.called_off()
    await guide.interrupted_and_killed()
    await guide.looked_at()
