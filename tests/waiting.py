"""Waiting until something has come about, with a bound: a test that waits in vain fails and says for what."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from temporalio.service import RPCError

from worlds.patience import CROWDED

T = TypeVar("T")

SECONDS: Final = 8.0  # on a crowded machine still less than what the product comes to by itself: an order has 25 s
LOOK_SECONDS: Final = 0.02  # in the test's own memory
ASK_SECONDS: Final = 0.2  # of a server
VERSION_SECONDS: Final = 180.0


async def until(look: Callable[[], T | None], seconds: float = SECONDS, words: str = "the test may go on") -> T:
    """The first look that is true."""

    async def ask() -> T | None:
        return look()

    return await until_answered(ask, seconds, words, LOOK_SECONDS)


async def until_answered(
    ask: Callable[[], Awaitable[T | None]],
    seconds: float = SECONDS,
    words: str = "the answer is the one awaited",
    pause: float = ASK_SECONDS,
) -> T:
    """The first answer that is true."""
    limit = CROWDED * seconds
    deadline = time.monotonic() + limit
    while not (answer := await ask()):
        assert time.monotonic() < deadline, f"within {limit:.0f} s it did not come about that {words}"
        await asyncio.sleep(pause)
    return answer


async def until_version_is_known(ask: Callable[[], Awaitable[T]]) -> T:
    """Until the server takes a call that names a version.

    It does once it has noted each queue that the version's workers poll, queue by queue; a poll whose note does not
    come about is made again after a back-off. On a crowded machine that has taken more than half a minute.
    """
    deadline = time.monotonic() + VERSION_SECONDS
    while True:
        try:
            return await ask()
        except RPCError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(ASK_SECONDS)
