"""Pauses that grow while something fails again and again. Every such pause of the product is one of these."""

from dataclasses import dataclass
from typing import Final

_ENOUGH: Final = 100  # times that a pause grows; by then it is as long as any, and no float overflows


@dataclass(frozen=True, slots=True)
class Backoff:
    """`first` seconds after the first failure, `growth` times as long after each further one, `longest` at most."""

    first: float
    longest: float
    growth: float = 2.0

    def pause(self, failures: int) -> float:
        """After so many failures in a row; less than one counts as the first."""
        return min(self.first * self.growth ** min(max(failures - 1, 0), _ENOUGH), self.longest)

    def after(self, pause: float) -> float:
        return min(pause * self.growth, self.longest)
