"""Brings together the claims of this process that ask for the same at the same time (decision 324).

The first that comes goes at once and alone. While calls for the same request are under way, and for a moment after
each, those that come wait, and go together. Before the call each of a group writes its share on its claim, and the
first of them last: its record decides. If one cannot write, the first launches alone, and the others begin anew.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from dovetail.activities.shared.every_step.heartbeats import beside
from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model.nodes import NodeClaim

MOST: Final = 100  # of one call: what is lost where a claim of them cannot write
UNDER_WAY: Final = 3  # calls for one request
APART_SECONDS: Final = 0.4  # between two of them: an ordinary account may make five a second, and is not ours alone
WRITES_SECONDS: Final = 10.0  # for the records of all

T = TypeVar("T")
Write = Callable[[GroupShare | None], Awaitable[T]]


@dataclass(slots=True)
class _Group:
    unwritten: int  # besides the first
    under_way: int
    written: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    decided: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One claim of a group; without a share it is launched alone."""

    share: GroupShare | None
    group: _Group

    async def write(self, write: Write[T]) -> tuple[T, bool]:
        """Write the claim's record. With it, whether the launch may be called; where that is not so, or not known, the
        record of the first says what holds."""
        group = self.group
        if self.share is None:
            return await write(None), True
        if self.share.number == 0:
            return await self._decide(self.share, write), True
        try:
            record = await write(self.share)
        except BaseException:
            settle(group.written, is_so=False)
            raise
        group.unwritten -= 1
        if not group.unwritten:
            settle(group.written, is_so=True)
        return record, await asyncio.shield(group.decided)

    async def _decide(self, share: GroupShare, write: Write[T]) -> T:
        called = False
        try:
            complete = await self._all_written()
            record = await write(share if complete else None)
            called = complete
            return record
        finally:
            settle(self.group.decided, is_so=called)

    async def _all_written(self) -> bool:
        try:
            async with asyncio.timeout(WRITES_SECONDS):
                return await asyncio.shield(self.group.written)
        except TimeoutError:
            return False  # who writes later finds by the record of the first that the group is none

    def leave(self) -> None:
        """It was called off just as it was given its place."""
        settle(self.group.written, is_so=False)
        if self.share is not None and self.share.number == 0:
            settle(self.group.decided, is_so=False)


@dataclass(slots=True)
class _Queue:
    waiting: "list[tuple[NodeClaim, int, asyncio.Future[Member]]]" = field(default_factory=list)
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: int = 0
    task: "asyncio.Task[None] | None" = None


class LaunchGroups:
    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def joined(self, claim: NodeClaim, generation: int, request: str) -> AsyncIterator[Member]:
        """The claim as one of a group, for as long as its launch is under way."""
        queue = self._queues.setdefault(request, _Queue())
        place: asyncio.Future[Member] = asyncio.get_running_loop().create_future()
        queue.waiting.append((claim, generation, place))
        if queue.task is None:
            queue.task = asyncio.create_task(self._form(request, queue), context=beside())
        queue.stirred.set()
        member: Member | None = None
        try:
            member = await place
            yield member
        finally:
            if member is None and place.done() and not place.cancelled():
                member = place.result()
                member.leave()
            if member is not None:
                member.group.under_way -= 1
                if not member.group.under_way:
                    queue.under_way -= 1
                    queue.stirred.set()

    async def _form(self, request: str, queue: _Queue) -> None:
        while queue.waiting or queue.under_way:
            if queue.waiting and queue.under_way < UNDER_WAY:
                self._next(queue)
                await asyncio.sleep(APART_SECONDS)
            else:
                queue.stirred.clear()
                await queue.stirred.wait()
        del self._queues[request]

    def _next(self, queue: _Queue) -> None:
        """Those that wait, as one group."""
        taken, queue.waiting = queue.waiting[:MOST], queue.waiting[MOST:]
        taken = [each for each in taken if not each[2].done()]  # not called off meanwhile
        if not taken:
            return
        group, identity = _Group(unwritten=len(taken) - 1, under_way=len(taken)), uuid.uuid4().hex
        first, generation, _ = taken[0]
        for number, (_, _, place) in enumerate(taken):
            share = GroupShare(
                group=identity,
                number=number,
                size=len(taken),
                first=first.name,
                first_uid=first.uid,
                generation=generation,
            )
            place.set_result(Member(share=share if len(taken) > 1 else None, group=group))
        queue.under_way += 1


def settle(future: "asyncio.Future[bool]", *, is_so: bool) -> None:
    if not future.done():
        future.set_result(is_so)
