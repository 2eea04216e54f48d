"""How often does a waiting step look?

Asked by every long wait on the cluster. Soon at first, because what is awaited often comes at once, then five times a
second while few wait, and once a second where a thousand do: a look is memory only, but not for nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

FIRST_PAUSE: Final = 0.1
SHORT_PAUSE: Final = 0.2
LONG_PAUSE: Final = 1.0
MANY: Final = 1000
GROWTH: Final = 1.3


class _Company:
    """How many wait now in this process."""

    count = 0


def longest_pause() -> float:
    """Between two looks of one wait, as many as wait now."""
    return min(LONG_PAUSE, max(SHORT_PAUSE, _Company.count / MANY))


async def looks(pause: Callable[[float], Awaitable[None]]) -> AsyncIterator[int]:
    """Count looks without end, with growing pauses between them."""
    seconds, count = FIRST_PAUSE, 0
    _Company.count += 1
    try:
        while True:
            yield count
            await pause(seconds)
            count += 1
            seconds = min(longest_pause(), seconds * GROWTH)
    finally:
        _Company.count -= 1
