"""What upkeep maintains besides the classes themselves: tags, partitions, reservations, shifted zones.

A task with nothing to do makes no call and returns when it wants to run again. A claim that cannot be written does not
hold up the others of the same task.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol

from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Conflict, Failure
from dovetail.telemetry.metrics.ours.background import task_failed

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 10  # claims


class UpkeepTask(Protocol):
    async def keep(self, claims: Sequence[NodeClaim]) -> float:
        """Look; returns when to look again even if nothing has changed."""


def log_failure(subject: str, error: Exception) -> None:
    """Log the failure of one object's upkeep. An unforeseen one is logged with its trace, and counted."""
    if isinstance(error, Failure):
        _log.warning("%s: %s", subject, error)
        return
    _log.error("%s", subject, exc_info=error)
    task_failed("upkeep of NodeClasses")


async def each(claims: Iterable[NodeClaim], act: Callable[[NodeClaim], Awaitable[None]], *, doing: str) -> bool:
    """Act on every claim; whether all succeeded. Failures are logged and retried at the next look."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(claim: NodeClaim) -> bool:
        async with slots:
            try:
                await act(claim)
            except Conflict:
                return False  # it has just changed: the next look sees how
            except Exception as error:
                log_failure(f"NodeClaim {claim.name}: {doing}", error)
                return False
        return True

    return all(await asyncio.gather(*[one(claim) for claim in claims]))
