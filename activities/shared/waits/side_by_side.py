"""Works on many objects of one step concurrently, within a limit."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from dovetail.activities.shared.every_step.heartbeats import progressed

T = TypeVar("T")


async def side_by_side(works: Sequence[Coroutine[Any, Any, T]], at_once: int) -> list[T]:
    """Run all of them; answers in order. After a failure or a cancel none of them continues: the step may be retried
    elsewhere and must not meet its own remains."""
    slots = asyncio.Semaphore(at_once)

    async def one(work: Coroutine[Any, Any, T]) -> T:
        async with slots:
            answer = await work
        progressed()
        return answer

    tasks = [asyncio.create_task(one(work)) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for work in works:
            work.close()
