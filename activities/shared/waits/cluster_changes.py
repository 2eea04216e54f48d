"""Sleeping until the cluster changes, or for a given time.

Changes come in bursts, so a step may ask for a moment of quiet after the first; the time limits both together.

No sleep has length zero. A step that asks to be woken at a moment that has passed, and finds nothing to do about it,
would otherwise look again and again and use a whole core. A look that leads to another at once is a bug in the step,
which should cost no more than a log line: such sleeps grow from a twentieth of a second to five seconds. A change of
the cluster ends them, as it ends any.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.activities.shared.every_step.heartbeats import asleep
from dovetail.messages.writes import Write
from dovetail.model.values.backoff import Backoff
from dovetail.ports.view import ClusterView

_log = logging.getLogger(__name__)

SHORTEST_SECONDS = 0.05
IN_VAIN = Backoff(first=SHORTEST_SECONDS, longest=5.0)
REST_FACTOR = 5.0  # times as long as a look has kept the event loop busy
LONGEST_REST_SECONDS = 2.0
WARN_AFTER = 10  # sleeps in a row that would have had no length


@dataclass(slots=True)
class ClusterSleep:
    view: ClusterView
    vain: int = 0  # how often in a row a sleep was asked for that would have had no length, and nothing had changed

    async def until_changed(self, revision: int, seconds: float, quiet: float = 0.0) -> None:
        """Until the view is beyond that revision and the quiet is over; those seconds at most."""
        shortest = self._shortest(revision, seconds)
        with asleep():
            began = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(max(seconds, shortest)):
                    await self.view.changed(revision)
                    if quiet:
                        await asyncio.sleep(quiet)
            except TimeoutError:
                return
            slept = asyncio.get_running_loop().time() - began
            if slept < SHORTEST_SECONDS:
                await asyncio.sleep(SHORTEST_SECONDS - slept)

    def _shortest(self, revision: int, seconds: float) -> float:
        if seconds >= SHORTEST_SECONDS or self.view.revision() > revision:
            self.vain = 0
            return SHORTEST_SECONDS
        self.vain += 1
        if self.vain == WARN_AFTER:
            _log.warning("a step keeps asking to be woken at a moment that has passed (%.1f s)", seconds)
        return IN_VAIN.pause(self.vain)


def quiet_after(busy: float, quiet: float) -> float:
    """The moment of quiet; longer after a look that has blocked the event loop for long, as in a large cluster: however
    often something changes, most of the loop's time is left for heartbeats, drains and evictions."""
    return max(quiet, min(busy * REST_FACTOR, LONGEST_REST_SECONDS))


async def until_seen(view: ClusterView, writes: Sequence[Write], until: float, now: float) -> None:
    """Until the view has seen these writes, or that moment has passed; without a moment there is no limit.

    A step is retried with its first input. If the cluster was restored from an older backup, its versions have gone
    back, and a write from before would be waited for in vain.
    """
    if not until or now < until:
        await view.catch_up(writes)
