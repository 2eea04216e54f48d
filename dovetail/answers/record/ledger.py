"""What moves have saved, and what all nodes have cost: dollars over time that a bill can be held against.

A saving is counted against "had no move been made". A move opens a credit: what its nodes cost less what replaced them,
at what was really launched, and the room that is missing since. The next nodes that a NodePool launches for pods that
had to wait would have found that room: their price is taken off the credit for as long as it runs, the youngest credit
first, and to the share of them for which the room would have been enough. So a node that leaves each evening and comes
each morning saves its nights. A credit ends when its replacement leaves by anything but another move, and when the old
node would have expired.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from dovetail.answers.record.entries import Entry
from dovetail.disruption.nodes.costs import node_price
from dovetail.model import names
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import Catalogue, InstanceType
from dovetail.model.resources import CPU, MEMORY
from dovetail.model.snapshot import Snapshot

HOUR: Final = 3600.0
DAY: Final = 86400.0
_CONSOLIDATED: Final = frozenset({DisruptionReason.EMPTY.value, DisruptionReason.UNDERUTILIZED.value})
_LEAST: Final = 1e-9  # of a share, below which nothing is left of it


@dataclass(frozen=True, slots=True)
class CostSpan:
    """So many dollars an hour for that time."""

    begins: float
    ends: float
    rate: float

    def dollars(self, since: float, until: float) -> float:
        """Of the part that lies within these moments."""
        return self.rate * max(0.0, min(self.ends, until) - max(self.begins, since)) / HOUR


@dataclass(frozen=True, slots=True)
class PricedSize:
    """What an instance costs an hour, and what it has. `dollars`: None where its price is not known."""

    dollars: float | None
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Prices:
    """Of the instance types of each NodePool, as the catalogues have them now."""

    types: Mapping[str, Mapping[str, InstanceType]]

    @classmethod
    def of(cls, catalogues: Mapping[str, Catalogue]) -> "Prices":
        return cls({pool: {each.name: each for each in found.types} for pool, found in catalogues.items()})

    def size(self, pool: str, instance_type: str, zone: str, capacity_type: str) -> PricedSize | None:
        """None where the pool has no such type any more."""
        known = self.types.get(pool, {}).get(instance_type)
        if known is None:
            return None
        price = node_price(known, zone, capacity_type) or None
        return PricedSize(price, float(known.capacity.get(CPU, 0)), float(known.capacity.get(MEMORY, 0)))

    def of_entry(self, entry: Entry) -> PricedSize | None:
        """Of the instance that a launch or a termination is about."""
        return self.size(entry.pool, entry.instance_type, entry.zone, entry.capacity_type)

    def of_claim(self, claim: NodeClaim) -> PricedSize | None:
        kept = [claim.labels.get(key, "") for key in (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE)]
        return self.size(claim.labels.get(names.NODE_POOL, ""), *kept)


NO_PRICES: Final = Prices({})


@dataclass(slots=True, kw_only=True)
class Credit:
    """What one move saves an hour from when the last of its instances had ended. `room`: cpu and memory that are
    missing since; None where that is not known. `cuts`: what was launched into it; `left`: its share that is still
    free."""

    move: Entry
    begins: float
    ends: float
    rate: float
    room: tuple[float, float] | None
    cuts: list[CostSpan] = field(default_factory=list)
    left: float = 1.0

    def spans(self) -> tuple[CostSpan, ...]:
        """They add up to what it has saved."""
        return (CostSpan(self.begins, self.ends, self.rate), *self.cuts)

    def dollars(self, since: float, until: float) -> float:
        """What it has saved between these moments."""
        return sum(span.dollars(since, until) for span in self.spans())

    def is_open(self, at: float) -> bool:
        """Whether a node that is launched then would have found room in what it took away."""
        has_room = self.rate > 0 if self.room is None else min(self.room) > 0
        return has_room and at < self.ends and self.left > _LEAST

    def take(self, at: float, size: PricedSize | None, wanted: float) -> float:
        """Use its room for that share of a node; the share that there was room for."""
        whole = self._nodes(size)
        share = min(wanted, whole * self.left)
        self.left -= share / whole
        price = self.rate / whole if size is None or size.dollars is None else size.dollars
        self.cuts.append(CostSpan(min(max(at, self.begins), self.ends), self.ends, -price * share))
        return share

    def _nodes(self, size: PricedSize | None) -> float:
        """How many nodes of that size its room holds. Where sizes are not known, price stands for size; and where that
        is not known either, one node for another."""
        if size is not None and self.room is not None and size.cpu and size.memory:
            return min(self.room[0] / size.cpu, self.room[1] / size.memory)
        if size is not None and size.dollars and self.rate > 0:
            return self.rate / size.dollars
        return float(max(1, len(self.move.claims) - len(self.move.replacements)))


@dataclass(frozen=True, slots=True)
class Ledger:
    """The credits of all moves in order, and how many nodes each pool launched that had just been taken away."""

    credits: tuple[Credit, ...]
    back: Mapping[str, int]


def ledger_of(entries: Sequence[Entry], prices: Prices, until: float) -> Ledger:
    """Of everything that began within a time, seen from its end."""
    known = _Known.of(entries, prices)
    credits = [_credit(entry, known, until) for entry in _moves(entries)]
    open_in: dict[str, list[Credit]] = {}
    back: dict[str, int] = {}
    events: list[tuple[float, int, Credit | Entry]] = [(credit.move.began, 0, credit) for credit in credits]
    events += [(entry.began, 1, entry) for entry in entries if _is_for_pods(entry)]
    for at, _, event in sorted(events, key=lambda each: each[:2]):
        pool = open_in.setdefault(event.move.pool if isinstance(event, Credit) else event.pool, [])
        if isinstance(event, Credit):
            pool.append(event)
        else:
            back[event.pool] = back.get(event.pool, 0) + _launched(at, prices.of_entry(event), pool)
    return Ledger(tuple(credits), back)


def _launched(at: float, size: PricedSize | None, pool: list[Credit]) -> bool:
    """Set a node against the open credits of its pool; whether it stands for one that consolidation took within the
    day before."""
    wanted, back, kept = 1.0, False, []
    while pool and wanted > _LEAST:
        credit = pool.pop()
        if not credit.is_open(at):
            continue
        wanted -= credit.take(at, size, wanted)
        back = back or (credit.move.reason in _CONSOLIDATED and at - credit.move.began <= DAY)
        kept.append(credit)
    pool.extend(credit for credit in reversed(kept) if credit.is_open(at))
    return back


def _moves(entries: Iterable[Entry]) -> Iterator[Entry]:
    return (entry for entry in entries if entry.kind == "disruption" and entry.outcome == "done")


def _is_for_pods(entry: Entry) -> bool:
    """Whether a node was launched for pods that had to wait."""
    return (
        entry.kind == "launch" and not entry.disruption and bool(entry.instance_type or entry.outcome == "initialised")
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """What the record has of each claim: its size, when it began to leave, when its instance had ended, when it would
    have expired, and whether a move took it."""

    sizes: Mapping[str, PricedSize | None]
    left: Mapping[str, float]
    gone: Mapping[str, float]
    expires: Mapping[str, float]
    moved: frozenset[str]

    @classmethod
    def of(cls, entries: Sequence[Entry], prices: Prices) -> "_Known":
        sizes: dict[str, PricedSize | None] = {}
        left: dict[str, float] = {}
        gone: dict[str, float] = {}
        expires: dict[str, float] = {}
        for entry in entries:
            for claim in entry.claims if entry.kind != "disruption" else ():
                sizes[claim] = prices.of_entry(entry) or sizes.get(claim)
                if entry.kind == "termination":
                    left[claim] = min(entry.began, left.get(claim, entry.began))
                    gone |= {claim: entry.instance_gone} if entry.instance_gone is not None else {}
                    expires |= {claim: entry.expires} if entry.expires is not None else {}
        return cls(sizes, left, gone, expires, frozenset(claim for entry in _moves(entries) for claim in entry.claims))

    def sizes_of(self, claims: Iterable[str]) -> tuple[PricedSize, ...] | None:
        """None where one is not known."""
        found = [self.sizes.get(claim) for claim in claims]
        return None if None in found else tuple(size for size in found if size is not None)


def _credit(entry: Entry, known: _Known, until: float) -> Credit:
    """Where the record does not say when an instance ended, the end of the disruption counts, a moment later."""
    begins = entry.ended if entry.ended is not None else until
    if entry.claims and all(claim in known.gone for claim in entry.claims):
        begins = max(known.gone[claim] for claim in entry.claims)
    ends = [known.left[claim] for claim in entry.replacements if claim in known.left and claim not in known.moved]
    ends += [known.expires[claim] for claim in entry.claims if claim in known.expires]
    before, after = known.sizes_of(entry.claims), known.sizes_of(entry.replacements)
    room = None
    if before is not None and after is not None:
        room = (_more(before, after, "cpu"), _more(before, after, "memory"))
    ends_at = max(begins, min([until, *ends]))
    return Credit(move=entry, begins=begins, ends=ends_at, rate=_rate(entry, after), room=room)


def _more(before: Iterable[PricedSize], after: Iterable[PricedSize], what: str) -> float:
    return float(sum(getattr(size, what) for size in before) - sum(getattr(size, what) for size in after))


def _rate(entry: Entry, after: tuple[PricedSize, ...] | None) -> float:
    """Dollars an hour on the bill: at what was launched, where that is known, and without what fewer nodes save
    beside instances."""
    promised = entry.saved or 0.0
    if entry.price_before is None:
        return promised
    if not entry.replacements:  # nothing is promised where its pods find their nodes as they leave
        return min(promised, entry.price_before) or entry.price_before
    prices = [size.dollars for size in after or ()]
    if not prices or None in prices:
        return promised
    return entry.price_before - sum(price for price in prices if price is not None)


@dataclass(frozen=True, slots=True)
class Bill:
    """What nodes have cost, by NodePool. `unpriced`: of how many the type or its price is not known."""

    spans: Mapping[str, tuple[CostSpan, ...]]
    unpriced: int

    def all_spans(self) -> Iterator[CostSpan]:
        """Of all pools."""
        return (span for found in self.spans.values() for span in found)


def bill_of(entries: Sequence[Entry], snapshot: Snapshot, until: float) -> Bill:
    """Of all nodes that stand or have ended within the time of these entries, each once."""
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


_Lived = tuple[str, str, PricedSize | None, tuple[float | None, float]]  # pool, claim, size, from when to when


def _ended(entries: Iterable[Entry], prices: Prices, until: float) -> Iterator[_Lived]:
    """A claim whose instance never came has cost nothing."""
    last = {claim: entry for entry in entries if entry.kind == "termination" for claim in entry.claims}
    for claim, entry in last.items():
        if entry.instance_gone is not None or entry.ended is None:
            ended = entry.instance_gone if entry.instance_gone is not None else until
            yield entry.pool, claim, prices.of_entry(entry), (entry.launched, ended)


def _standing(entries: Iterable[Entry], snapshot: Snapshot, prices: Prices, until: float) -> Iterator[_Lived]:
    leaving = {claim for entry in entries if entry.kind == "termination" for claim in entry.claims}
    for claim in snapshot.claims.values():
        launched = claim.condition(names.LAUNCHED)
        if launched is not None and launched.status == "True" and claim.name not in leaving:
            pool = claim.labels.get(names.NODE_POOL, "")
            yield pool, claim.name, prices.of_claim(claim), (launched.changed or claim.created, until)


def by_day(spans: Iterable[CostSpan], since: float, until: float) -> dict[str, float]:
    """Dollars of each day, by its date in UTC."""
    parts: dict[int, float] = {}  # of days that a span covers in part
    rises: dict[int, float] = {}  # by how much more all later days cost, which a span covers whole
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
