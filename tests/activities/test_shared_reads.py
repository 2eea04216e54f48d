"""Who asks at the same time shares a read, and nobody is given what was read before it asked."""

import asyncio

import pytest

from dovetail.activities.shared.looks.shared_reads import SharedReads
from dovetail.ports.failures import Unreachable


class Slow:
    """Reads that take as long as the test lets them; each says what was true when it began."""

    def __init__(self) -> None:
        self.value = 0
        self.began: list[int] = []
        self.go_on = asyncio.Event()

    async def read(self, name: str) -> int:
        self.began.append(self.value)
        seen = self.value
        await self.go_on.wait()
        if seen < 0:
            raise Unreachable(name, "it is away")
        return seen


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_twenty_that_ask_together_cost_one_read() -> None:
    slow = Slow()
    reads = SharedReads(slow.read)
    asking = [asyncio.create_task(reads.read("pool")) for _ in range(20)]
    await turn()
    slow.go_on.set()

    assert await asyncio.gather(*asking) == [0] * 20
    assert slow.began == [0]


async def test_who_asks_while_a_read_is_under_way_sees_what_is_true_afterwards() -> None:
    slow = Slow()
    reads = SharedReads(slow.read)
    first = asyncio.create_task(reads.read("pool"))
    await turn()
    slow.value = 1
    late = [asyncio.create_task(reads.read("pool")) for _ in range(20)]
    await turn()
    slow.go_on.set()

    assert (await first, await asyncio.gather(*late)) == (0, [1] * 20)
    assert slow.began == [0, 1]
    assert await reads.read("pool") == 1 and len(slow.began) == 3  # nothing is kept


async def test_objects_are_read_apart() -> None:
    slow = Slow()
    slow.go_on.set()
    reads = SharedReads(slow.read)

    await asyncio.gather(reads.read("a"), reads.read("b"))

    assert len(slow.began) == 2


async def test_a_failure_is_everybodys_and_the_next_read_is_made_all_the_same() -> None:
    slow = Slow()
    slow.value = -1
    reads = SharedReads(slow.read)
    first = [asyncio.create_task(reads.read("pool")) for _ in range(2)]
    await turn()
    slow.value = 2
    late = asyncio.create_task(reads.read("pool"))
    await turn()
    slow.go_on.set()

    failures = await asyncio.gather(*first, return_exceptions=True)
    assert [type(failure) for failure in failures] == [Unreachable, Unreachable]
    assert await late == 2


async def test_one_that_is_cancelled_takes_the_read_from_no_other() -> None:
    slow = Slow()
    reads = SharedReads(slow.read)
    gone, stays = (asyncio.create_task(reads.read("pool")) for _ in range(2))
    await turn()
    gone.cancel()
    await turn()
    slow.go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await gone
    assert await stays == 0
