"""Consolidation on a real control plane: empty nodes one by one, half-empty ones together, many small into few."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from acceptance.bench.live.at_rest import REST_SECONDS, Figure, budget, settle
from acceptance.bench.live.growing import PATIENCE, all_run, seconds
from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, node_pool
from worlds.cluster.timeline import Timeline, moment

AIM_SECONDS: Final = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OneByOne:
    """Empty nodes under a budget of one."""

    nodes: int

    async def __call__(self, ground: Ground) -> list[Figure]:
        """From one node's last finalizer to the next one's, on average."""
        await settle(ground, self.nodes, budget(node_pool(), "1"))
        since = ground.audit.end()
        await ground.scale(0)
        await ground.until(ground.nothing_left, PATIENCE, "no node is left")
        released = sorted(Timeline(ground.audit.entries(since)).released().values())
        each = (released[-1] - released[0]) / (len(released) - 1)
        return [seconds(f"{self.nodes} empty nodes under budget 1, each", each, "25.0 s", 8)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    """Nodes at rest that fewer nodes can replace, from the change that makes it so."""

    nodes: int
    types: tuple[str, ...]
    cpu: str
    per_node: int
    left: int
    then_types: tuple[str, ...]
    upstream: str
    calls: int = 0  # the most that is allowed; 0: not judged

    async def __call__(self, ground: Ground) -> list[Figure]:
        """Fill them, let a share of the pods go or larger types in, wait until the fewer stand and all pods run."""
        await ground.apply(underused_pool(self.types, after="Never"))
        full = self.nodes * self.per_node
        await ground.apply(deployment(full, self.cpu))
        await ground.until(lambda: ground.settled(full), PATIENCE, "all pods run")
        before = len(await ground.claims())
        assert before == self.nodes, f"{before} nodes instead of {self.nodes}"
        await asyncio.sleep(REST_SECONDS)
        since = ground.audit.end()
        # The ReplicaSet takes pods from where most of them are: as many from every node.
        await ground.scale(self.nodes)
        await ground.apply(underused_pool(self.then_types, after="0s"))

        async def done() -> bool:
            return len(await ground.claims()) <= self.left and await all_run(ground, self.nodes)

        await ground.until(done, PATIENCE, f"{self.nodes} nodes become {self.left}")
        return self.figures(Timeline(ground.audit.entries(since)))

    def figures(self, line: Timeline) -> list[Figure]:
        """The time to the last node's end, and the calls."""
        start = max(moment(e) for e in line.writes if e.resource == "nodepools" and e.user != "dovetail")
        took = max(line.released().values()) - start
        calls = line.calls()
        print(f"    calls: {', '.join(f'{count} {kind}' for kind, count in calls.kinds)}", flush=True)
        figures = [seconds(f"{self.nodes} nodes become {self.left}", took, self.upstream, AIM_SECONDS)]
        if self.calls:
            met = calls.total <= self.calls
            ours = f"{calls.total}, {calls.conflicts} conflicts"
            figures.append(Figure(what="  calls", ours=ours, upstream="977–1,114", aim=str(self.calls), met=met))
        return figures


def underused_pool(types: tuple[str, ...], after: str) -> Json:
    """A pool of these types whose underused nodes leave after that time."""
    pool = node_pool(consolidate_after=after)
    pool["spec"]["disruption"]["consolidationPolicy"] = "WhenEmptyOrUnderutilized"
    for requirement in pool["spec"]["template"]["spec"]["requirements"]:
        if requirement["key"] == names.INSTANCE_TYPE:
            requirement["values"] = list(types)
    return pool


SHRINKING: Final[dict[str, Callable[[Ground], Awaitable[list[Figure]]]]] = {
    "empty_one_by_one": OneByOne(nodes=4),
    "half_empty_10": Consolidated(
        nodes=10,
        types=("m5.xlarge",),
        cpu="1500m",
        per_node=2,
        left=5,
        then_types=("m5.xlarge",),
        upstream="38–43 s",
    ),
    "small_30": Consolidated(
        nodes=30,
        types=("c5.large",),
        cpu="1200m",
        per_node=1,
        left=10,
        then_types=("c5.large", "c5.xlarge"),
        upstream="24–55 s",
        calls=700,
    ),
}
