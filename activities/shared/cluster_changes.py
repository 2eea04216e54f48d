"""Sleeping until the cluster changes, or for a given time.

Changes come in bursts, so a step may ask for a moment of quiet after the first; the time is a bound for both together.
"""

import asyncio

from dovetail.ports.view import ClusterView


async def until_changed(view: ClusterView, revision: int, seconds: float, quiet: float = 0.0) -> None:
    """Until the view is beyond that revision and the quiet is over; those seconds at most."""
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            await view.changed(revision)
            if quiet:
                await asyncio.sleep(quiet)
    except TimeoutError:
        return
