"""Shared by the live figures: a line of the table, what each part of the product used, a cluster at rest."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from dovetail.model.json import Json
from tests.cluster.system.ground import Ground, deployment

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
