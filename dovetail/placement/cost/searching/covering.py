"""The cheapest mix of patterns that covers a demand, where a pattern may be used in part.

A pattern says how many pods of each item a node holds. This is a linear program with far more patterns than anybody can
list, so they come one by one: the program says what a pod of each item is worth to it, and a pattern that holds more
than it costs is to be added. (Revised simplex method, with the inverse of the basis kept.)
"""

import numpy as np

from dovetail.placement.cost.problem import Floats, Integers

_SMALL = 1e-7
_FRESH = 64  # pivots after which the inverse is made anew, because each adds a little error


class Cover:
    """One program, beginning with patterns that cover it: as many as there are items, and independent."""

    def __init__(self, demand: Integers, patterns: Floats, prices: Floats) -> None:
        """`patterns`: a column each."""
        self.patterns = patterns.copy()
        self.prices = prices.copy()
        self._demand: Floats = demand.astype(np.float64)
        self._pivots = 0
        self._inverse: Floats = np.linalg.inv(self.patterns).astype(np.float64)
        self.parts: Floats = np.maximum(self._inverse @ self._demand, 0.0)

    @property
    def cost(self) -> float:
        return float(self.prices @ self.parts)

    @property
    def worth(self) -> Floats:
        """Per item, what one pod less would save; not below zero."""
        for _ in range(4 * len(self.prices)):
            found: Floats = self.prices @ self._inverse
            least = int(found.argmin())
            if found[least] >= -_SMALL:
                break
            nothing = np.zeros(len(found))  # more may be covered than is asked for
            nothing[least] = -1.0
            if not self._enter(nothing, 0.0):
                break
        return np.maximum(self.prices @ self._inverse, 0.0)

    def add(self, pattern: Integers, price: float) -> bool:
        """Let a pattern into the mix if it saves something there; whether it did."""
        wanted = pattern.astype(np.float64)
        return float(self.prices @ self._inverse @ wanted) > price * (1 + _SMALL) and self._enter(wanted, price)

    def _enter(self, pattern: Floats, price: float) -> bool:
        along = self._inverse @ pattern
        leaving = along > _SMALL
        if not leaving.any():
            return False
        steps = np.where(leaving, self.parts / np.where(leaving, along, 1.0), np.inf)
        at = int(steps.argmin())
        step = float(steps[at])
        self.parts = np.maximum(self.parts - step * along, 0.0)
        self.parts[at] = step
        row = self._inverse[at] / along[at]
        self._inverse -= np.outer(along, row)
        self._inverse[at] = row
        self.patterns[:, at], self.prices[at] = pattern, price
        self._pivots += 1
        if self._pivots % _FRESH == 0:
            self._refresh()
        return True

    def _refresh(self) -> None:
        """Compute the inverse anew, without the accumulated error; where the patterns are too alike for that, keep it
        as it is."""
        try:
            self._inverse = np.linalg.inv(self.patterns).astype(np.float64)
        except np.linalg.LinAlgError:
            return
        self.parts = np.maximum(self._inverse @ self._demand, 0.0)
