"""How soon all is well again on a real control plane: a worker killed in a launch, a node deleted, a PDB taken away."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from acceptance.bench.live.at_rest import Figure, settle
from acceptance.bench.live.growing import PATIENCE, all_run, seconds
from worlds.cluster.fleets import workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import no_eviction, node_pool
from worlds.cluster.timeline import Timeline, moment

BLOCKED_SECONDS: Final = 12.0  # a drain that has been refused for a while asks rarely


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledInLaunch:
    """The worker is killed as soon as the claims stand, and started again at once."""

    nodes: int

    async def __call__(self, ground: Ground) -> list[Figure]:
        """From the kill until all pods run, and the instances that were launched."""
        await ground.apply(node_pool(consolidate_after="Never"))
        await ground.until(ground.class_is_ready, 60, "the NodeClass is ready")
        launched_before = len(await ground.instances())
        await ground.apply(workload("web", "", self.nodes, "3"))

        async def created() -> bool:
            return len(await ground.claims()) == self.nodes

        await ground.until(created, 60, "the claims stand")
        killed = asyncio.get_running_loop().time()
        ground.kill_workers()
        ground.ensure_workers()
        await ground.until(lambda: all_run(ground, self.nodes), PATIENCE, "all pods run")
        took = asyncio.get_running_loop().time() - killed
        bought = len(await ground.instances()) - launched_before
        return [
            seconds(f"killed in launch of {self.nodes}, all running", took, "4–6 s", 8),
            Figure(
                what="  instances launched for it",
                ours=str(bought),
                upstream="5–7",
                aim=str(self.nodes),
                met=bought == self.nodes,
            ),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedNode:
    """`kubectl delete node`."""

    async def __call__(self, ground: Ground) -> list[Figure]:
        """From the delete to the last finalizer of its claim."""
        claims = await settle(ground, 2, node_pool(consolidate_after="Never"))
        since = ground.audit.end()
        await ground.delete("Node", claims[0]["status"]["nodeName"])
        return [seconds("kubectl delete node to gone", await _released(ground, since, "nodes"), "5.2 s", 5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnblockedDrain:
    """A drain that a PDB has held back for a while."""

    async def __call__(self, ground: Ground) -> list[Figure]:
        """From the end of the PDB to the last finalizer of the claim."""
        claims = await settle(ground, 2, node_pool(consolidate_after="Never"))
        await ground.apply(no_eviction())
        await ground.delete("NodeClaim", claims[0]["metadata"]["name"])
        await asyncio.sleep(BLOCKED_SECONDS)
        since = ground.audit.end()
        await ground.delete("PodDisruptionBudget", "web")
        return [seconds("PDB removed to gone", await _released(ground, since, "poddisruptionbudgets"), "3.1 s", 3)]


async def _released(ground: Ground, since: int, resource: str) -> float:
    """From the delete of an object of that kind to the first claim's last finalizer."""

    async def released() -> bool:
        return bool(Timeline(ground.audit.entries(since)).released())

    await ground.until(released, PATIENCE, "the claim's finalizer is off")
    line = Timeline(ground.audit.entries(since))
    deleted = min(moment(e) for e in line.writes if e.resource == resource and e.verb == "delete")
    return min(line.released().values()) - deleted


RECOVERING: Final[dict[str, Callable[[Ground], Awaitable[list[Figure]]]]] = {
    "killed_in_launch": KilledInLaunch(nodes=4),
    "deleted_node": DeletedNode(),
    "unblocked_drain": UnblockedDrain(),
}
