"""Shared by the live figures: a line of the table, what each part of the product used, a cluster at rest."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dovetail.model.values.json import Json
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment

REST_SECONDS = 21.0  # longer than a nomination lasts: what was just placed would hold the node back
PODS_PER_NODE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table."""

    what: str
    ours: str
    upstream: str
    aim: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Processor seconds and resident memory of each part, by name."""

    cpu: dict[str, float]
    megabytes: dict[str, float]

    @classmethod
    def of(cls, ground: Ground) -> "Resources":
        """As they are now."""
        everything = ground.everything
        pids = {name: p.pid for name, p in (*everything.processes.items(), *everything.plane.processes)}
        pids |= {"worker": ground.workers[-1].pid, **everything.cloud.pids}
        cpu, megabytes = {}, {}
        for name, pid in pids.items():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            cpu[name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            megabytes[name] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        return cls(cpu=cpu, megabytes=megabytes)

    def since(self, before: "Resources") -> str:
        """What each part has used meanwhile, in words."""
        used = sorted(((after - before.cpu.get(name, 0.0), name) for name, after in self.cpu.items()), reverse=True)
        return "cpu: " + ", ".join(f"{name} {cpu:.1f} s ({self.megabytes[name]:.0f} MB)" for cpu, name in used)


UNREADY_AIM: Final = 30.0  # pod-seconds
READY_SHARE: Final = 0.75
LOOK_SECONDS: Final = 0.2


@dataclass(slots=True, kw_only=True)
class Readiness:
    """How many of the wanted pods were ready, look after look."""

    wanted: int
    fewest: int = field(init=False)
    unready_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.fewest = self.wanted

    @contextlib.asynccontextmanager
    async def watched(self, ground: Ground) -> AsyncIterator[None]:
        """Look all the while."""
        looking = asyncio.create_task(self._look(ground))
        try:
            yield
        finally:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking

    async def _look(self, ground: Ground) -> None:
        last = time.monotonic()
        while True:
            ready = await ground.running_pods()
            now = time.monotonic()
            self.fewest = min(self.fewest, ready)
            self.unready_seconds += max(self.wanted - ready, 0) * (now - last)
            last = now
            await asyncio.sleep(LOOK_SECONDS)

    def words(self) -> str:
        """In a line."""
        return f"pods: {self.unready_seconds:.0f} pod-seconds unready, fewest ready {self.fewest} of {self.wanted}"

    def figures(self) -> list[Figure]:
        """Two lines of the table, beside what Karpenter needs one node after another for."""
        least = round(self.wanted * READY_SHARE)
        return [
            Figure(
                what="  unready pod-seconds",
                ours=f"{self.unready_seconds:.0f}",
                upstream="6",
                aim=f"{UNREADY_AIM:g}",
                met=self.unready_seconds <= UNREADY_AIM,
            ),
            Figure(
                what=f"  fewest ready of {self.wanted}",
                ours=str(self.fewest),
                upstream="57",
                aim=str(least),
                met=self.fewest >= least,
            ),
        ]


async def settle(ground: Ground, nodes: int, pool: Json) -> list[Json]:
    """That number of nodes, full of pods, at rest."""
    await ground.apply(pool)
    await ground.apply(deployment(nodes * PODS_PER_NODE, "1"))
    await ground.until(lambda: ground.settled(nodes * PODS_PER_NODE), 180, "all pods run")
    claims = await ground.claims()
    assert len(claims) == nodes, f"{len(claims)} nodes instead of {nodes}"
    await asyncio.sleep(REST_SECONDS)
    return claims


def budget(pool: Json, nodes: str) -> Json:
    """The pool with that budget."""
    pool["spec"]["disruption"]["budgets"] = [{"nodes": nodes}]
    return pool
