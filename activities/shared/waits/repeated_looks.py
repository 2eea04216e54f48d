"""How often does a waiting step look?

Soon at first, because what is awaited often comes at once; then with pauses of up to a hundredth of the time that it
has waited, at most a second. With many waiting steps the pauses are longer, up to a second for a thousand: a look costs
no request, but some time.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dovetail.activities.shared.every_step.heartbeats import progressed

FIRST_PAUSE: Final = 0.1
SHORT_PAUSE: Final = 0.2
LONG_PAUSE: Final = 1.0
MANY: Final = 1000
SHARE: Final = 0.01
GROWTH: Final = 1.3


class _Waiting:
    """How many steps wait now in this process."""

    count = 0


def longest_pause(waited: float) -> float:
    """Between two looks of a step that has waited for that time, while as many wait as now."""
    return min(LONG_PAUSE, max(SHORT_PAUSE, _Waiting.count / MANY, waited * SHARE))


@contextmanager
def one_more_waits() -> Iterator[None]:
    """Count one more wait, for as long as a step looks again and again, by whatever pauses."""
    _Waiting.count += 1
    try:
        yield
    finally:
        _Waiting.count -= 1


async def looks(pause: Callable[[float], Awaitable[None]]) -> AsyncIterator[int]:
    """Count looks without end, with growing pauses between them."""
    seconds, waited, count = FIRST_PAUSE, 0.0, 0
    with one_more_waits():
        while True:
            progressed()
            yield count
            await pause(seconds)
            waited, count = waited + seconds, count + 1
            seconds = min(longest_pause(waited), seconds * GROWTH)
