"""How often does a waiting step look?

Asked by every long wait on the cluster. Soon at first, because what is awaited often comes at once, then each second:
a look is memory only, but thousands of nodes wait at a time.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 1.0
GROWTH: Final = 1.3


async def looks(pause: Callable[[float], Awaitable[None]]) -> AsyncIterator[int]:
    """Count looks without end, with growing pauses between them."""
    seconds, count = FIRST_PAUSE, 0
    while True:
        yield count
        await pause(seconds)
        count += 1
        seconds = min(LONGEST_PAUSE, seconds * GROWTH)
