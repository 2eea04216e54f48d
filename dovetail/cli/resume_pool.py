"""`dovetail resume --pool NAME`: launch again for a NodePool that was stopped.

What was launched before this moment does not count any more, or the same launches would stop the pool again at once.
"""

import time

from dovetail.activities.shared.pool_revisions import Annotations, revise_pool
from dovetail.cli.output import CommandFailed, say
from dovetail.model import names
from dovetail.model.pools import NodePool
from dovetail.model.time import format_time
from dovetail.model.unused_launches import stop_of
from dovetail.worker.wiring import World


async def resume_pool(world: World, name: str) -> None:
    """Take the stop off the pool."""
    pool = await world.pools.read(name)
    if pool is None:
        raise CommandFailed(f"{name}: there is no such NodePool")
    stop = stop_of(pool)

    def change_of(_: NodePool) -> Annotations:
        return {
            names.LAUNCHES_STOPPED: None,
            names.UNUSED_LAUNCHES: None,
            names.LAUNCHES_RESUMED: format_time(time.time()),
        }

    if await revise_pool(world.pools, pool, change_of) is None:
        raise CommandFailed(f"{name}: the NodePool is gone")
    was = f"; they were stopped since {stop.since}: {stop.why}" if stop is not None else "; they were not stopped"
    say(f"NodePool {name}: launches go on{was}")
