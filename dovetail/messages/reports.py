"""What a cluster says of itself to those who look at all clusters of a namespace (`dovetail fleet`).

It stands in the memo of its Caretaker, where one list of workflows reads it without a worker. Additive changes only: a
worker and a command may be of two versions.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

REPORT: Final = "dovetail-report"  # in the memo
MOST_NAMED: Final = 10  # of each list: a list of clusters holds hundreds of reports
PRICE_SHARE: Final = 0.01  # by which the price moves before that alone is reported: spot prices change all day

_DIGITS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedWorker:
    """One that asks for work. `since`: when its pod was made; None where it is not known."""

    pod: str
    version: str
    since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedNeed:
    """Something that stands still until a person acts."""

    about: str
    what: str
    since: float | None = None
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """One cluster at one moment. `needing`: how many needs there are, named or not."""

    at: float
    version: str = ""  # of the worker that says it
    kubernetes: str = ""
    region: str = ""  # that of most nodes
    workers: tuple[ReportedWorker, ...] = ()
    nodes: int = 0
    price: float = 0.0  # dollars an hour, of all claims
    unpriced: int = 0
    pending_pods: int = 0
    drifted: int = 0  # nodes that a roll-out has still to replace
    launches: int = 0
    disruptions: int = 0
    terminations: int = 0
    pauses: tuple[str, ...] = ()
    needs: tuple[ReportedNeed, ...] = ()
    needing: int = 0
    troubles: tuple[str, ...] = ()  # of Dovetail itself


def differs(before: ClusterReport, after: ClusterReport) -> bool:
    """Whether it says something new: not that time has gone by, nor that a price has moved a little."""
    moved = abs(after.price - before.price)
    return _lasting(before) != _lasting(after) or moved > PRICE_SHARE * max(before.price, after.price)


def _lasting(report: ClusterReport) -> ClusterReport:
    """The report without moments and ages: words such as "pending for 6m" change with each look."""
    needs = tuple(
        replace(need, what="" if need.since is not None else _DIGITS.sub("", need.what)) for need in report.needs
    )
    troubles = tuple(_DIGITS.sub("", text) for text in report.troubles)
    return replace(report, at=0.0, price=0.0, needs=needs, troubles=troubles)
