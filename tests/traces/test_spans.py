"""Which plan's trace is being written, also where a workflow is closed in the middle of it."""

from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any

from dovetail.telemetry.traces.spans import plan_traced, traced


class Pause:
    """Awaited, it waits until it is sent something."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def inside() -> None:
    with traced("plan-1"):
        await Pause()


def test_the_plan_is_known_inside_and_not_afterwards() -> None:
    with traced("outer"):
        with traced("plan-1"):
            assert plan_traced() == "plan-1"
        assert plan_traced() == "outer"


def test_a_coroutine_that_is_closed_in_another_context_ends_without_an_error() -> None:
    """As a workflow is that leaves the cache: an error there is printed by the interpreter and by nobody else."""
    running: Coroutine[Any, Any, None] = inside()
    copy_context().run(running.send, None)
    copy_context().run(running.close)
