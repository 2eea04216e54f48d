"""Publishes a notice on every NodePool for as long as this worker takes no steps.

A person whose pods stay pending looks at the NodePools first; the log, /readyz and `doctor` say the same.
"""

import asyncio

from dovetail.model.objects.watched_kinds import POOLS
from dovetail.notices.about import warnings_on_pools
from dovetail.ports.failures import Failure
from dovetail.wiring.world import World

LOOK_SECONDS = 10.0


async def keep_publishing(world: World) -> None:
    while True:
        await publish_unfitness(world)
        await asyncio.sleep(LOOK_SECONDS)


async def publish_unfitness(world: World) -> None:
    """A notice on each pool, where the worker may not act now."""
    why = world.why_unfit()
    if not why:
        return
    try:
        pools = world.view.snapshot(POOLS).pools.values()
    except Failure:
        return  # nobody knows the pools now; the next look may
    await world.notices.publish(*warnings_on_pools(pools, "WorkerStandsAside", why))
