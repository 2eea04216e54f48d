"""Long work in parts, between which others have their turn on the event loop: heartbeats, drains, questions."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

PART: Final = 100


async def by_turns(parts: Iterable[object]) -> None:
    """Work through all parts, one after the other."""
    for _ in parts:
        await asyncio.sleep(0)


async def each_by_turns(things: Iterable[T]) -> AsyncIterator[T]:
    """The things; others have their turn after so many."""
    for number, thing in enumerate(things, start=1):
        if number % PART == 0:
            await asyncio.sleep(0)
        yield thing
