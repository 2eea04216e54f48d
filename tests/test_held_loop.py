"""The watch over the event loops of tests: what it calls the product's fault, and that it finds one."""

import asyncio
import threading
import time

import pytest

from tests.held_loop import HELD, LET_BE, MOST_SECONDS, HeldLoops, Seen, is_product


def seen(file: str, *, waits: bool = False, name: str = "f") -> Seen:
    return Seen(file, name, 1, waits)


STEP = seen("activities/step.py", waits=True)
PURE = seen("dovetail/placement/place_pods.py")
TEST = seen("tests/test_a.py", waits=True)
FAKE = seen("tests/fakes.py")
OTHERS = seen("")


@pytest.mark.parametrize(
    ("stack", "fault"),
    [
        ((OTHERS, PURE, STEP, TEST), True),  # a step that a test awaits
        ((PURE, STEP), True),  # a task of the product's own
        ((OTHERS, PURE), True),  # a callback
        ((PURE, TEST), False),  # the test plans by itself
        ((FAKE, STEP, TEST), False),  # what the test stands in for takes long
        ((OTHERS, TEST), False),
        ((OTHERS,), False),
        *[((PURE, seen(file, name=name), STEP), False) for file, name in LET_BE],
    ],
)
def test_a_hold_is_the_products_where_its_own_code_waits_for_it(stack: tuple[Seen, ...], fault: bool) -> None:
    assert is_product(stack) is fault


def test_every_function_that_is_let_be_is_there() -> None:
    for file, name in LET_BE:
        with open(file, encoding="utf-8") as source:  # noqa: PTH123 - from the root, where tests run
            assert f"def {name}(" in source.read(), f"{file}: {name}"


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_work_on_the_loop_is_measured_and_work_beside_it_is_not() -> None:
    before, HELD.longest = HELD.longest, 0.0
    await asyncio.to_thread(burn, MOST_SECONDS)
    beside = HELD.longest
    burn(MOST_SECONDS)
    await asyncio.sleep(0)
    on_it, HELD.longest = HELD.longest, max(before, HELD.longest)

    assert beside < MOST_SECONDS <= on_it
    assert HELD.taken() == [], "it was the test's own work"


def test_a_product_that_holds_the_loop_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = HeldLoops()
    monkeypatch.setattr("tests.held_loop._PRODUCT", ("tests/test_held_loop.py",))
    monkeypatch.setattr("tests.held_loop._TESTS", ("nowhere/",))

    async def holds() -> None:
        burn(3 * MOST_SECONDS)

    with loops.watched():
        thread = threading.Thread(target=lambda: asyncio.run(holds()))
        thread.start()
        thread.join()

    (hold,) = loops.taken()
    assert hold.seconds >= MOST_SECONDS and "burn (tests/test_held_loop.py:" in str(hold) and "holds" in str(hold)
    HELD.taken()  # the watch over all tests has seen it too
