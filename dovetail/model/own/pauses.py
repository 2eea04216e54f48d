"""What a pause holds, and one pause: of one NodePool or of all."""

from dataclasses import dataclass
from enum import StrEnum

from dovetail.model.values.time import format_time


class Activity(StrEnum):
    DISRUPTION = "disruption"  # planned disruption, and the scaling down of static pools
    EXPIRY = "expiry"  # claims that have lived for their expireAfter
    LAUNCHES = "launches"  # new nodes, replacements included
    DRAINS = "drains"  # evictions from nodes that a disruption of ours takes away


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """One object's pause. `until`: None if only a person ends it; `pool`: empty if it is for all pools."""

    pool: str
    what: frozenset[Activity]
    until: float | None = None
    by: str = ""
    reason: str = ""
    faults: tuple[str, ...] = ()  # what is wrong with the annotations, and how it is taken
    freeze: str = ""  # the Freeze that it is; empty for annotations

    @property
    def where(self) -> str:
        """The object that carries it, for people."""
        return f"NodePool {self.pool}" if self.pool else "all NodePools"

    @property
    def says(self) -> str:
        """Until when, by whom and why, for people."""
        end = f"until {format_time(self.until)}" if self.until is not None else "until it is resumed"
        return f"{end}, by {self.by or 'somebody who left no name'}: {self.reason or 'no reason given'}"

    def announces(self, activity: Activity) -> str:
        """The text for people that says that it holds the activity."""
        return f"{activity} paused for {self.where} {self.says}"

    @property
    def words(self) -> str:
        return " and ".join(sorted(self.what))
