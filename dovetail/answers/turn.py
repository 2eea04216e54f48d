"""The one turn in which a worker computes answers, for a question that has waited for others.

Such a question waits beside the rest, and holds the turn while it unpacks and decides: what that takes of processor and
memory is taken once at a time. A command without a worker has nobody to wait for.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from typing import Final

TURN: Final[ContextVar[Callable[[], AbstractAsyncContextManager[None]]]] = ContextVar("turn", default=nullcontext)


def computing() -> AbstractAsyncContextManager[None]:
    """Held while a question computes; nothing if it holds the turn from its beginning."""
    return TURN.get()()
