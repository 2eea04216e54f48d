"""Sleeping until the cluster changes, or for a given time.

Changes come in bursts, so a step may ask for a moment of quiet after the first; the time is a bound for both together.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from dovetail.activities.shared.heartbeats import progressed
from dovetail.messages.writes import Write
from dovetail.ports.view import ClusterView

SLEEPING_SECONDS: Final = 60.0


async def until_changed(view: ClusterView, revision: int, seconds: float, quiet: float = 0.0) -> None:
    """Until the view is beyond that revision and the quiet is over; those seconds at most."""
    progressed()
    asleep = asyncio.create_task(_say_that_it_sleeps()) if seconds > SLEEPING_SECONDS else None
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            await view.changed(revision)
            if quiet:
                await asyncio.sleep(quiet)
    except TimeoutError:
        return
    finally:
        if asleep is not None:
            asleep.cancel()


async def _say_that_it_sleeps() -> None:
    """A wait without an end in sight is no step that hangs."""
    while True:
        await asyncio.sleep(SLEEPING_SECONDS)
        progressed()


async def until_seen(view: ClusterView, writes: Sequence[Write], until: float, now: float) -> None:
    """Until the view has seen these writes, or that moment has passed; without one there is no end to the wait.

    A step is retried with what it was first asked. Where the cluster was restored from an older backup, its versions
    have gone back, and a write from before would be waited for in vain.
    """
    if not until or now < until:
        await view.catch_up(writes)
