"""How often does a waiting step look?

Soon at first, because what is awaited often comes at once, and never later than a hundredth of what has been waited
already; but once a second where a thousand wait, or where a wait is long: a look is memory only, but not for nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

FIRST_PAUSE: Final = 0.1
SHORT_PAUSE: Final = 0.2
LONG_PAUSE: Final = 1.0
MANY: Final = 1000
SHARE: Final = 0.01
GROWTH: Final = 1.3


class _Company:
    """How many wait now in this process."""

    count = 0


def longest_pause(waited: float) -> float:
    """Between two looks of one wait that has lasted so long, as many as wait now."""
    return min(LONG_PAUSE, max(SHORT_PAUSE, _Company.count / MANY, waited * SHARE))


async def looks(pause: Callable[[float], Awaitable[None]]) -> AsyncIterator[int]:
    """Count looks without end, with growing pauses between them."""
    seconds, waited, count = FIRST_PAUSE, 0.0, 0
    _Company.count += 1
    try:
        while True:
            yield count
            await pause(seconds)
            waited, count = waited + seconds, count + 1
            seconds = min(longest_pause(waited), seconds * GROWTH)
    finally:
        _Company.count -= 1
