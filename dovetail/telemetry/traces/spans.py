"""One span, before it is sent."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from dovetail.telemetry.traces.ids import SpanId

Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What was done, from when to when in seconds since the epoch."""

    name: str
    id: SpanId
    parent: SpanId | None = None  # None: the first of its trace
    began: float
    ended: float
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    links: tuple[SpanId, ...] = ()
    error: str = ""  # why it failed; empty if it did not


_plan: ContextVar[str] = ContextVar("plan", default="")


@contextmanager
def traced(plan_id: str) -> Iterator[None]:
    """What a singleton asks for within the block belongs to this plan's trace; without traces it changes nothing.

    In a module that workflows do not reload, so that they and the interceptor around them use the same variable. The
    former value is restored without the token: a workflow that leaves the cache is closed in another context.
    """
    before = _plan.get()
    _plan.set(plan_id)
    try:
        yield
    finally:
        _plan.set(before)


def plan_traced() -> str:
    """The plan whose trace is written now; empty if there is none."""
    return _plan.get()
