"""Work that a cancellation does not stop.

A cancellation that arrives meanwhile has no effect: what has begun runs to its end.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, whatever is cancelled meanwhile."""
    task = asyncio.create_task(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise
            current = asyncio.current_task()
            if current is not None:
                current.uncancel()  # 3.11 and later: a task that stays "cancelling" cancels every further await
