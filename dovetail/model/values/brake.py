"""What goes wrong too often is held back, for longer each time. Every such brake of the product is one of these."""

from dataclasses import dataclass

from dovetail.model.values.backoff import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """Holds once `enough` of what was done within `window` seconds has failed, and that share of it or more; `rests`:
    until one more is tried."""

    enough: int
    window: float
    rests: Backoff
    share: float = 0.0

    def holds(self, failed: int, done: int = 0) -> bool:
        return failed >= self.enough and failed >= self.share * done

    def until(self, last: float, in_vain: int) -> float:
        """When one more is tried after so many tries in vain, the last of them at that moment."""
        return last + self.rests.pause(in_vain + 1)
