"""What all nodes have cost: existing ones by their claims, those that have ended by the record."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dovetail.answers.record.entries import Entry
from dovetail.answers.record.prices import PricedSize, Prices
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.durations import DAY

HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class CostSpan:
    """What is paid per hour from one moment to another."""

    begins: float
    ends: float
    rate: float

    def dollars(self, since: float, until: float) -> float:
        return self.rate * max(0.0, min(self.ends, until) - max(self.begins, since)) / HOUR


@dataclass(frozen=True, slots=True)
class Bill:
    """What nodes have cost, by NodePool. `unpriced`: the number of nodes of unknown type or price."""

    spans: Mapping[str, tuple[CostSpan, ...]]
    unpriced: int

    def all_spans(self) -> Iterator[CostSpan]:
        return (span for found in self.spans.values() for span in found)


def bill_of(entries: Sequence[Entry], snapshot: Snapshot, since: float, until: float) -> Bill:
    """The bill of every node that lived between these moments. `entries`: distinct (lives.py), so a name stands for
    one node, with the ends of all these nodes."""
    prices = Prices.of(snapshot.catalogues)
    launches = {claim: entry for entry in entries if entry.kind == "launch" for claim in entry.claims}
    ends = {claim: entry for entry in entries if entry.kind == "termination" for claim in entry.claims}
    standing = standing_of(entries, snapshot)
    spans: dict[str, list[CostSpan]] = {}
    others = {*launches, *ends} - standing.keys()
    unpriced = sum(_is_lost(launches.get(claim), ends.get(claim)) for claim in others)
    for pool, claim, size, (launched, paid, ended) in (
        *_ended(ends, launches, prices, until),
        *_standing(standing, prices, until),
    ):
        launch = launches.get(claim)
        if launch is not None:
            size, launched = size or prices.of_entry(launch), launch.began if launched is None else launched
        if ended < since or (launched is not None and launched > until):
            continue
        if size is None or size.dollars is None or launched is None:
            unpriced += 1
        else:
            spans.setdefault(pool, []).extend(costs_of(launched, paid, ended, size.dollars))
    return Bill({pool: tuple(found) for pool, found in spans.items()}, unpriced)


def standing_of(entries: Iterable[Entry], snapshot: Snapshot) -> dict[str, NodeClaim]:
    """The claims of now whose end is not in these entries."""
    ends = {claim: entry for entry in entries if entry.kind == "termination" for claim in entry.claims}
    return {name: claim for name, claim in snapshot.claims.items() if not _ends(ends.get(name), claim)}


def on_demand_since(claim: NodeClaim) -> float | None:
    """When its reservation ceased to cover the instance (AWS-147); None if that has not happened."""
    return memory_of(claim.annotations).on_demand_since


def costs_of(begins: float, paid: float | None, ends: float, rate: float) -> tuple[CostSpan, ...]:
    """What a node costs in a time. Until `paid`, if its reservation ceased to cover it then, that is nothing, as
    catalogues count what is reserved."""
    if paid is None or paid <= begins:
        return (CostSpan(begins, ends, rate),)
    return CostSpan(begins, min(paid, ends), 0.0), CostSpan(min(paid, ends), ends, rate)


_WITHOUT_INSTANCE: Final = ("no_capacity", "class_not_ready", "timed_out")  # outcomes of launches

# Pool, claim, size, and when it was launched, ceased to be covered by a reservation, and ended.
_Lived = tuple[str, str, PricedSize | None, tuple[float | None, float | None, float]]


def _ended(ends: Mapping[str, Entry], launches: Mapping[str, Entry], prices: Prices, until: float) -> Iterator[_Lived]:
    """A claim that never got an instance has cost nothing."""
    for claim, entry in ends.items():
        launch = launches.get(claim)
        if entry.launched is None and launch is not None and launch.outcome in _WITHOUT_INSTANCE:
            continue
        if not _is_unknown(entry):
            ended = until if entry.instance_gone is None else min(entry.instance_gone, until)
            yield entry.pool, claim, prices.of_entry(entry), (entry.launched, entry.on_demand_since, ended)


def _standing(claims: Mapping[str, NodeClaim], prices: Prices, until: float) -> Iterator[_Lived]:
    for name, claim in claims.items():
        launched = claim.condition(names.LAUNCHED)
        if launched is not None and launched.status == "True":
            pool = claim.labels.get(names.NODE_POOL, "")
            spent = launched.changed or claim.created, on_demand_since(claim), until
            yield pool, name, prices.of_claim(claim), spent


def _is_lost(launch: Entry | None, end: Entry | None) -> bool:
    """Whether there was an instance and nobody has seen its end: a person has taken the finalizer off, or others have
    ended it."""
    came = launch is not None and launch.ended is not None and launch.had_instance
    left = end is not None and end.launched is not None
    return (came or left) and (end is None or _is_unknown(end))


def _is_unknown(end: Entry) -> bool:
    """Whether a termination is over and does not say when the instance ended."""
    return end.ended is not None and end.instance_gone is None


def _ends(end: Entry | None, claim: NodeClaim) -> bool:
    """Whether it is the end of this claim, and not of one that had its name before, nor one that came to nothing."""
    if end is None or _is_unknown(end):
        return False
    return end.uid == claim.uid if end.uid else claim.created < end.began


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
