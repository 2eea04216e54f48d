"""One span, before it is sent."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from dovetail.telemetry.traces.ids import SpanId

Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What was done from when to when, in seconds since the epoch."""

    name: str
    id: SpanId
    parent: SpanId | None = None  # None: the first of its trace
    began: float
    ended: float
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    links: tuple[SpanId, ...] = ()
    error: str = ""  # why it failed; empty where it did not


_plan: ContextVar[str] = ContextVar("plan", default="")


@contextmanager
def traced(plan_id: str) -> Iterator[None]:
    """What a singleton asks for meanwhile belongs to this plan's trace; without traces it changes nothing.

    In a room that workflows do not load anew, so that they and the interceptor around them mean the same variable. The
    value before is set again, not the token: a workflow that leaves the cache is closed in another context.
    """
    before = _plan.get()
    _plan.set(plan_id)
    try:
        yield
    finally:
        _plan.set(before)


def plan_traced() -> str:
    """The plan whose trace is written now; empty where there is none."""
    return _plan.get()
