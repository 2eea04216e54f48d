"""Reads of one object for several who ask at the same time.

Twenty disruptions that begin together each ask whether somebody has paused, and each must see what is true after it
asked. So those who ask while a read is under way share the next one with all who ask meanwhile: at most two reads,
however many ask.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
Found = TypeVar("Found", covariant=True)


class Reads(Protocol[Found]):
    async def read(self, name: str) -> Found:
        """The object as the API server has it now."""


class SharedReads(Generic[T]):
    def __init__(self, read: Callable[[str], Awaitable[T]]) -> None:
        self._read = read
        self._running: dict[str, asyncio.Task[T]] = {}
        self._next: dict[str, asyncio.Task[T]] = {}

    async def read(self, name: str) -> T:
        """The object by a read that begins after this call. A caller that is cancelled takes it from no other."""
        shared = self._next.get(name)
        if shared is None:
            shared = self._next[name] = asyncio.create_task(self._after(name, self._running.get(name)))
        return await asyncio.shield(shared)

    async def _after(self, name: str, before: "asyncio.Task[T] | None") -> T:
        if before is not None:
            await asyncio.wait({before})
        this = self._running[name] = self._next.pop(name)
        try:
            return await self._read(name)
        finally:
            if self._running.get(name) is this:
                del self._running[name]
