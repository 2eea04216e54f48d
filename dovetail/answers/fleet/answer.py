"""What `dovetail fleet` answers, as facts: times are seconds since the epoch, dollars are per month."""

from dataclasses import dataclass
from typing import Literal

from dovetail.messages.reports import ClusterReport

State = Literal["silent", "needs a person", "unknown", "fine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow:
    """One cluster. `silent_since`: when it was last heard of, if no worker works for it any more; `note`: why nothing
    else is known."""

    name: str
    state: State
    silent_since: float | None = None
    month: float | None = None
    report: ClusterReport | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer:
    """All clusters, troubled ones first."""

    namespace: str
    now: float
    clusters: tuple[ClusterRow, ...] = ()
