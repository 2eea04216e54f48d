"""The result of one look over the whole cluster."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

Write = Callable[[], Awaitable[object]]  # something that upkeep writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Look(Generic[T]):
    """What is due now, and when to look again even if nothing has changed; None: only after a change."""

    due: Sequence[T] = ()
    again: float | None = None


def earliest(*moments: float | None) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)


def all_due(looks: Iterable[Look[T]]) -> list[T]:
    """What is due by all of these looks, in their order."""
    return [one for look in looks for one in look.due]
