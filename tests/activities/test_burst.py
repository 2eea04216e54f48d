"""Sixty claims at once become nodes side by side, with few requests and hardly a conflict (issue 6).

Upstream on a real control plane: median 11 to 15 s, 23 to 29 requests a node, 18 to 21 % of them conflicts.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from adapters.embedded.adapter import EmbeddedAdapter
from adapters.embedded.settings import WorldSettings
from adapters.embedded.world import EmbeddedWorld
from tests.activities.lives import Fate, Life, Worker
from tests.adapters.embedded.manifests import a_node_class

CLAIMS = 60


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[tuple[EmbeddedWorld, EmbeddedAdapter]]:
    made = EmbeddedWorld.create(tmp_path / "world.sqlite", WorldSettings(boot=1.0, node_ready=0.2))
    made.apply(a_node_class())
    adapter = EmbeddedAdapter.open(tmp_path / "world.sqlite", "dovetail/test")
    try:
        with made.playing():
            yield made, adapter
    finally:
        adapter.close()
        made.close()


async def test_sixty_claims_at_once_meet_the_figures(world: tuple[EmbeddedWorld, EmbeddedAdapter]) -> None:
    outside, adapter = world
    fate = Fate()
    worker = Worker(adapter, fate)

    async def one(number: int) -> float:
        life = Life(adapter, f"claim-{number}", fate, worker)
        started = time.monotonic()
        await life.create()
        assert await life.launch() == "initialised"
        return time.monotonic() - started

    seconds = sorted(await asyncio.gather(*[one(number) for number in range(CLAIMS)]))

    requests = Counter(name for name in fate.calls if name in ("read", "patch", "patch_status"))
    requests["create"] = CLAIMS
    count = requests.total()
    conflicts = sum(entry.outcome.startswith("409") for entry in outside.ledger() if entry.actor == "dovetail/test")
    said = (
        f"median {seconds[CLAIMS // 2]:.1f} s, last {seconds[-1]:.1f} s, {count / CLAIMS:.1f} requests a node, "
        f"{conflicts} conflicts of {count}; {dict(requests)}"
    )
    print(said)
    assert seconds[CLAIMS // 2] < 8.0, said
    assert count <= 15 * CLAIMS, said
    assert conflicts <= 0.01 * count, said
