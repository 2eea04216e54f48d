"""Which metrics of the whole cluster a worker publishes: only those whose loop it runs.

Every worker sees all objects, and two that publish the same gauge double every sum over it. Upkeep, planning and
disruption are loops of singletons, and Temporal gives each of their steps to one worker at a time: that worker speaks
for the cluster. Another takes over with the step, within a minute if the first was killed. Each worker counts what it
has done itself, so those sums are right.
"""

from collections.abc import Callable
from typing import Final

# Loops, as `LOOPS` of activities/shared/every_step/step_health.py names them.
UPKEEP: Final = "upkeep"  # the Caretaker's: the state of nodes, pools, pods and conditions
PROVISIONING: Final = "provisioning"  # the result of the last round of placing pods
ORDERS: Final = "orders"  # the Caretaker's other loop: what the cloud lists
DISRUPTION: Final = "disruption"  # the result of the last decision about disruption


class Duties:
    """The loops for which this worker speaks."""

    def __init__(self, runs: Callable[[str], bool], is_away: Callable[[], bool]) -> None:
        """`runs`: whether the step of a loop runs here now. While Temporal is away no other worker can have it."""
        self._runs, self._is_away = runs, is_away
        self._had: set[str] = set()

    def has(self, loop: str) -> bool:
        """Whether this worker speaks for that loop now; always for an empty name."""
        if not loop or self._runs(loop):
            self._had.add(loop)
        elif not self._is_away():
            self._had.discard(loop)
        return loop in self._had
