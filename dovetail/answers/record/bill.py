"""What all nodes have cost: existing ones by their claims, those that have ended by the record."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dovetail.answers.record.entries import Entry
from dovetail.answers.record.prices import PricedSize, Prices
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.snapshot import Snapshot

HOUR: Final = 3600.0
DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class CostSpan:
    """What is paid per hour from one moment to another."""

    begins: float
    ends: float
    rate: float

    def dollars(self, since: float, until: float) -> float:
        """What the span costs within these moments."""
        return self.rate * max(0.0, min(self.ends, until) - max(self.begins, since)) / HOUR


@dataclass(frozen=True, slots=True)
class Bill:
    """What nodes have cost, by NodePool. `unpriced`: the number of nodes of unknown type or price."""

    spans: Mapping[str, tuple[CostSpan, ...]]
    unpriced: int

    def all_spans(self) -> Iterator[CostSpan]:
        return (span for found in self.spans.values() for span in found)


def bill_of(entries: Sequence[Entry], snapshot: Snapshot, until: float) -> Bill:
    """The bill of every node that exists or has ended within the time of these entries. `entries`: told apart
    (lives.py), so that a name stands for one node."""
    prices = Prices.of(snapshot.catalogues)
    began = {claim: entry.began for entry in entries if entry.kind == "launch" for claim in entry.claims}
    types = {claim: prices.of_entry(entry) for entry in entries if entry.kind == "launch" for claim in entry.claims}
    spans: dict[str, list[CostSpan]] = {}
    unpriced = 0
    for pool, claim, size, lived in (*_ended(entries, prices, until), *_standing(entries, snapshot, prices, until)):
        size = size or types.get(claim)
        begins = lived[0] if lived[0] is not None else began.get(claim)
        if size is None or size.dollars is None or begins is None:
            unpriced += 1
        else:
            spans.setdefault(pool, []).append(CostSpan(begins, lived[1], size.dollars))
    return Bill({pool: tuple(found) for pool, found in spans.items()}, unpriced)


_WITHOUT_INSTANCE: Final = ("no_capacity", "class_not_ready")  # outcomes of launches

_Lived = tuple[str, str, PricedSize | None, tuple[float | None, float]]  # pool, claim, size, from when to when


def _ended(entries: Sequence[Entry], prices: Prices, until: float) -> Iterator[_Lived]:
    """A claim that never got an instance has cost nothing."""
    last = {claim: entry for entry in entries if entry.kind == "termination" for claim in entry.claims}
    launches = {claim: entry.outcome for entry in entries if entry.kind == "launch" for claim in entry.claims}
    for claim, entry in last.items():
        if entry.launched is None and launches.get(claim) in _WITHOUT_INSTANCE:
            continue
        if entry.instance_gone is not None or entry.ended is None:
            ended = entry.instance_gone if entry.instance_gone is not None else until
            yield entry.pool, claim, prices.of_entry(entry), (entry.launched, ended)


def _standing(entries: Iterable[Entry], snapshot: Snapshot, prices: Prices, until: float) -> Iterator[_Lived]:
    leaving = {claim: entry for entry in entries if entry.kind == "termination" for claim in entry.claims}
    for claim in snapshot.claims.values():
        launched = claim.condition(names.LAUNCHED)
        if launched is not None and launched.status == "True" and not _ends(leaving.get(claim.name), claim):
            pool = claim.labels.get(names.NODE_POOL, "")
            yield pool, claim.name, prices.of_claim(claim), (launched.changed or claim.created, until)


def _ends(termination: Entry | None, claim: NodeClaim) -> bool:
    """Whether it is the end of this claim, and not of one that had its name before."""
    if termination is None or not termination.uid:
        return termination is not None and claim.created <= termination.began
    return termination.uid == claim.uid


def by_day(spans: Iterable[CostSpan], since: float, until: float) -> dict[str, float]:
    """Dollars of each day, by its date in UTC."""
    parts: dict[int, float] = {}  # of days that a span covers partly
    rises: dict[int, float] = {}  # by how much all later days cost more, for spans that cover whole days
    for span in spans:
        at, end = max(span.begins, since), min(span.ends, until)
        if at >= end:
            continue
        first, last = int(at // DAY), -int(-end // DAY) - 1
        for day in {first, last}:
            inside = span.dollars(max(at, day * DAY), min(end, (day + 1) * DAY))
            parts[day] = parts.get(day, 0.0) + inside
        if last > first + 1:
            rises[first + 1] = rises.get(first + 1, 0.0) + span.rate
            rises[last] = rises.get(last, 0.0) - span.rate
    return {f"{datetime.fromtimestamp(day * DAY, UTC):%Y-%m-%d}": dollars for day, dollars in _summed(parts, rises)}


def _summed(parts: Mapping[int, float], rises: Mapping[int, float]) -> Iterator[tuple[int, float]]:
    days, rate = {*parts, *rises}, 0.0
    for day in range(min(days, default=0), max(days, default=-1) + 1):
        rate += rises.get(day, 0.0)
        yield day, parts.get(day, 0.0) + rate * DAY / HOUR
