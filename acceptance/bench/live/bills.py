"""What pods cost an hour under both policies once all of them run, by the instances of the cloud.

The kube-scheduler binds, so a cheap plan is worth what becomes of it. The same pods are played under the default policy
and under the policy cost, each from an empty cluster; the pools differ in the annotation alone.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from acceptance.bench.live.at_rest import Figure
from acceptance.bench.live.growing import apart, spread_over
from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.costs import (
    Outcome,
    Sizes,
    cost_pool,
    many_types,
    may_nominate,
    outcome,
    pending,
    start_worker,
    unlike,
)
from worlds.cluster.fleets import workload
from worlds.cluster.ground import Ground

POOL: Final = "bill"
PATIENCE: Final = 900.0
THREE_SIZES: Final[Sizes] = {"compute": ("1", "500Mi"), "memory": ("250m", "3500Mi"), "small": ("100m", "200Mi")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """One set of pods under both policies."""

    what: str
    pods: int
    bodies: Callable[[], list[Json]]
    aim: float  # of what the default policy comes to

    async def __call__(self, ground: Ground) -> list[Figure]:
        """The default policy first. The cloud offers what it did before when all is over."""
        before = many_types(ground)
        await may_nominate(ground)
        try:
            plain, cost = [await self._played(ground, policy) for policy in ("default", "cost")]
        finally:
            ground.world(before)
            start_worker(ground)  # the catalogue of the one that runs has the types of these plays
        ratio = cost.dollars / plain.dollars
        ours = f"${cost.dollars:.2f} of ${plain.dollars:.2f} an hour: {ratio:.2f}; {cost.nodes} nodes for {plain.nodes}"
        return [Figure(what=self.what, ours=ours, upstream="–", aim=f"{self.aim:g}", met=ratio <= self.aim)]

    async def _played(self, ground: Ground, policy: str) -> Outcome:
        start_worker(ground)
        for body in self.bodies():
            await ground.apply(body)
        await ground.until(partial(pending, ground, self.pods), PATIENCE, f"{self.pods} pods wait")
        await ground.apply(cost_pool(POOL, policy))
        await ground.until(partial(ground.settled, self.pods), PATIENCE, f"{self.pods} pods run")
        found = await outcome(ground)
        print(f"    {found.line(policy)}", flush=True)
        await ground.clear(PATIENCE)
        return found


def _over_sixty() -> list[Json]:
    """Sixty pods that keep apart by node, and 240 that are spread over the zones."""
    lonely = apart(workload("lonely", POOL, 60, "250m"))
    return [lonely, spread_over(workload("zonal", POOL, 240, "250m"), names.ZONE)]


BILLS: Final[dict[str, Callable[[Ground], Awaitable[list[Figure]]]]] = {
    "bill_three_sizes": Bill(
        what="500 pods of three sizes, cost of default",
        pods=500,
        bodies=lambda: unlike(POOL, 500, THREE_SIZES),
        aim=0.75,
    ),
    "bill_spread_60": Bill(what="300 pods on sixty nodes, cost of default", pods=300, bodies=_over_sixty, aim=1.0),
}
