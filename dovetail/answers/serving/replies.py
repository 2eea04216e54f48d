"""What an HTTP endpoint of a worker replies."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Final

Answer = tuple[int, str, str | bytes]  # status, content type, body
Followed = tuple[int, str, AsyncIterator[str]]  # the same, with a body in pieces
Page = Callable[[str], Awaitable[Answer | Followed]]  # of all paths below one; given what follows it, with the query

ASKER: Final = ContextVar("asker", default="")  # whose request this is, so that nobody's questions hold up others
