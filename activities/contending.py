"""Trying a step again when somebody else wrote the same object meanwhile.

Asked by every step that reads an object live and patches it at that version. The kubelet and the node controller write
Nodes all the time, so a conflict is no failure: read again, decide again, write again. After a few rounds it is left to
the step's retry policy.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ports.failures import Conflict

T = TypeVar("T")

ROUNDS = 5
PAUSE_SECONDS = 0.05


async def settled(attempt: Callable[[], Awaitable[T]]) -> T:
    """The attempt's answer, once nobody writes between its read and its write."""
    for turn in range(1, ROUNDS):
        try:
            return await attempt()
        except Conflict:
            await asyncio.sleep(PAUSE_SECONDS * turn)
    return await attempt()
