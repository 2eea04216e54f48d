"""What a worker publishes of the whole cluster: only that of which it has the loop.

Every worker sees all objects, and two that print the same gauge double every sum over it. Upkeep, planning and
disruption are loops of singletons, and Temporal hands each of their steps to one worker at a time: that worker speaks
for the cluster. Another takes over with the step, within a minute where the first was killed. What a worker has done
itself is counted by each, and sums are right.
"""

from collections.abc import Callable
from typing import Final

# Loops, as `LOOPS` of activities/shared/every_step/step_health.py names them.
UPKEEP: Final = "upkeep"  # the Caretaker's: what is true of nodes, pools, pods and conditions
PROVISIONING: Final = "provisioning"  # what the last round of placing pods came to
ORDERS: Final = "orders"  # the Caretaker's other loop: what the cloud lists
DISRUPTION: Final = "disruption"  # what the last decision about disruption came to


def everything(loop: str) -> bool:
    """Of a process that is alone."""
    return True


def never() -> bool:
    """Temporal is never away."""
    return False


class Duties:
    """The loops that are this worker's to speak for."""

    def __init__(self, runs: Callable[[str], bool] = everything, is_away: Callable[[], bool] = never) -> None:
        """`runs`: whether the step of a loop runs here now. While Temporal is away nobody else can have it."""
        self._runs, self._is_away = runs, is_away
        self._had: set[str] = set()

    def has(self, loop: str) -> bool:
        """Whether this worker speaks for that loop now; an empty name is everybody's."""
        if not loop or self._runs(loop):
            self._had.add(loop)
        elif not self._is_away():
            self._had.discard(loop)
        return loop in self._had
