"""What `dovetail fleet` answers, as facts: times are seconds since the epoch, dollars are of a month."""

from dataclasses import dataclass
from typing import Literal

from dovetail.messages.reports import ClusterReport

State = Literal["silent", "needs a person", "unknown", "fine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow:
    """One cluster. `silent_since`: when something was heard of it last, where no worker works for it any more; `note`:
    why nothing else is known."""

    name: str
    state: State
    silent_since: float | None = None
    month: float | None = None
    report: ClusterReport | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer:
    """All clusters, those in trouble first."""

    namespace: str
    now: float
    clusters: tuple[ClusterRow, ...] = ()
