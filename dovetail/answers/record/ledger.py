"""What moves have saved: dollars over time that can be compared with a bill.

A saving is counted against "had no move been made", node by node. Without a move its nodes would still exist, from when
each instance ended until it would have expired; what was launched for the move would not, from its launch on. The room
of the former less that of the latter is missing from then on. The next nodes that the NodePool launches for waiting
pods would have found that room: to the extent that it is enough, they would not exist either, and they count against
the youngest move. An on-demand node finds room only on such nodes, since its pods may not run on spot. So a node that
leaves each evening and comes each morning saves its nights. When the cloud takes back any of these nodes, their room is
missing again; when a person removes one, the saving ends, since the node before it would have left as well.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Final

from dovetail.answers.record.bill import CostSpan, costs_of, on_demand_since, standing_of
from dovetail.answers.record.entries import Entry
from dovetail.answers.record.prices import NOTHING, PricedSize, Prices, Room
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.reasons.endings import Ending
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.durations import DAY

_CONSOLIDATED: Final = frozenset({DisruptionReason.EMPTY.value, DisruptionReason.UNDERUTILIZED.value})
_ONE: Final = PricedSize(None, 1.0, 1.0)
_LEAST: Final = 1e-9  # of a node, below which nothing is left of it
# If a node ends this way, the nodes that a move took away would still exist.
_LOST: Final = frozenset(
    ending.value
    for ending in Ending
    if ending not in (Ending.SCALED_DOWN, Ending.NODE_DELETED, Ending.POOL_DELETED, Ending.BY_OTHERS)
)


@dataclass(slots=True)
class _Charge:
    """A node that exists only because of a move, or that share of one. It is paid for until it has ended."""

    spans: tuple[CostSpan, ...]
    room: Room


@dataclass(slots=True, kw_only=True)
class Credit:
    """What one move saves in one NodePool. `part`: what of the move is about that pool's nodes. `gains`: these nodes,
    from when each instance ended. `charges`: by claim, what replaced them, and what was launched into the room that is
    missing since. `room`: what is left of that room; it is missing in `room_of`, the pool in which the pods run since.
    `price`: of one of its nodes. From `ends` on, the move makes no difference."""

    move: Entry
    part: Entry
    number: int
    ends: float
    room_of: str = ""
    gains: dict[str, CostSpan] = field(default_factory=dict)
    charges: dict[str, _Charge] = field(default_factory=dict)
    room: Room = NOTHING
    price: float = 0.0

    @property
    def pool(self) -> str:
        return self.part.pool

    def spans(self) -> tuple[CostSpan, ...]:
        """What it gained and what it paid, by spans of time; their sum is what it has saved."""
        found = (*self.gains.values(), *(span for charge in self.charges.values() for span in charge.spans))
        return tuple(span if span.ends <= self.ends else replace(span, ends=self.ends) for span in found)

    def dollars(self, since: float, until: float) -> float:
        """What it has saved between these moments."""
        return sum(span.dollars(since, until) for span in self.spans())

    def set_against(self, since: float, until: float) -> float:
        """Dollars of nodes launched later into its room; that they would have found it is an estimate."""
        made, ends = self.move.replacements, self.ends
        later = [span for claim, charge in self.charges.items() if claim not in made for span in charge.spans]
        return -sum(replace(span, ends=min(span.ends, ends)).dollars(since, until) for span in later)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The credits of all moves in order, and how many nodes each pool launched again just after they were taken
    away."""

    credits: tuple[Credit, ...]
    back: Mapping[str, int]


def ledger_of(entries: Sequence[Entry], fleet: Snapshot | None, until: float) -> Ledger:
    """The ledger of everything that began within a time, seen from the end of that time. `entries`: distinct
    (lives.py), so that a name stands for one node. `fleet`: today's prices and nodes, if they are known."""
    missing = _Missing(_Known.of(entries, fleet or Snapshot(now=until), until))
    for at, kind, event in sorted(_events(entries, missing.known), key=lambda each: each[:2]):
        if kind == _LEAVES:
            missing.leave(at, event)
        elif kind == _LAUNCHED:
            missing.launch(at, event)
        else:
            missing.move(event)
    return Ledger(tuple(missing.credits), {name: pool.back for name, pool in missing.pools.items()})


_LEAVES, _LAUNCHED, _MOVED = range(3)  # the order of events at the same moment


def _events(entries: Iterable[Entry], known: "_Known") -> Iterator[tuple[float, int, Entry]]:
    for entry in entries:
        if entry.kind == "disruption":
            yield entry.began, _MOVED, entry
        elif entry.kind == "termination":
            if not known.moved.intersection(entry.claims):
                yield entry.began, _LEAVES, entry
        elif not entry.disruption and entry.had_instance:
            yield entry.began, _LAUNCHED, entry


@dataclass(slots=True)
class _Pool:
    """The net room that is missing from one NodePool. `waiting`: by number, moves with room left, youngest last."""

    room: Room = NOTHING
    waiting: dict[int, Credit] = field(default_factory=dict)
    youngest: int = 0  # the number of its last move
    back: int = 0


@dataclass(slots=True)
class _Missing:
    """What moves have taken away: nodes launched for waiting pods fill a pool's room again, and nodes that the cloud
    takes back empty it."""

    known: "_Known"
    credits: list[Credit] = field(default_factory=list)
    pools: defaultdict[str, _Pool] = field(default_factory=lambda: defaultdict(_Pool))
    _charged: dict[str, list[Credit]] = field(default_factory=dict)
    _would: dict[tuple[str, str], list[tuple[Credit, str]]] = field(default_factory=dict)  # stand, of spot nodes
    _closing: list[tuple[float, int]] = field(default_factory=list)  # when which credit ends

    def move(self, entry: Entry) -> None:
        for part in entry.by_pool():
            credit = self.known.credit(entry, part, len(self.credits))
            room, credit.room = credit.room, NOTHING
            for claim in credit.gains:
                if claim in self.known.spot and claim not in self._charged:
                    self._would.setdefault(self.known.spot[claim], []).append((credit, claim))
            for claim in credit.charges:
                self._charged.setdefault(claim, []).append(credit)
            self.credits.append(credit)
            heappush(self._closing, (credit.ends, credit.number))
            self.pools[credit.room_of].youngest = credit.number
            self._add(credit, room)

    def _close(self, credit: Credit, at: float) -> None:
        self._add(credit, NOTHING.plus(credit.room, -1.0))
        credit.ends = min(credit.ends, at)

    def leave(self, at: float, entry: Entry) -> None:
        """A node that a move launched, or that filled a move's room, is lost: the nodes that were taken would still
        exist. If a person or the pool's end removes it, they would have left as well."""
        for claim in entry.claims:
            if entry.reason == Ending.SPOT and claim in self._charged:
                self._take_back(at, claim)
            for credit in self._charged.pop(claim, ()):
                charge = credit.charges[claim]
                if entry.reason not in _LOST and credit.move.outcome == "done" and claim in credit.move.replacements:
                    self._close(credit, at)
                elif at < credit.ends:
                    self._add(credit, charge.room)

    def _take_back(self, at: float, claim: str) -> None:
        """The cloud would have taken back a node of that type and zone that would still exist, if there is one."""
        would = self._would.get(self.known.spot.get(claim, ("", "")))
        if would:
            credit, other = would.pop()
            credit.gains[other] = replace(credit.gains[other], ends=max(credit.gains[other].begins, at))
            if at < credit.ends:
                self._add(credit, NOTHING.plus(self.known.sizes[other].room, -1.0))

    def _add(self, credit: Credit, room: Room) -> None:
        pool = self.pools[credit.room_of]
        pool.room, credit.room = pool.room.plus(room), credit.room.plus(room)
        if min(credit.room.cpu, credit.room.memory) > _LEAST:
            pool.waiting.setdefault(credit.number, credit)
        else:
            pool.waiting.pop(credit.number, None)

    def launch(self, at: float, entry: Entry) -> None:
        """Set a node against the missing room, youngest move first, for the share that would have found room."""
        while self._closing and self._closing[0][0] <= at:
            ends, number = heappop(self._closing)
            self._close(self.credits[number], ends)
        size, pool = self.known.size(entry), self.pools[entry.pool]
        shares = _shares(pool, size)
        for number, share in shares.items():
            self._charge(self.credits[number], entry, size, share)
        moves = [self.credits[number].move for number in shares]
        pool.back += any(move.reason in _CONSOLIDATED and at - move.began <= DAY for move in moves)

    def _charge(self, credit: Credit, entry: Entry, size: PricedSize, share: float) -> None:
        [claim] = entry.claims
        price = credit.price if size.dollars is None else size.dollars
        spans = self.known.costs(claim, entry.began, -price * share)
        credit.charges[claim] = _Charge(spans, NOTHING.plus(size.room, share))
        self._charged.setdefault(claim, []).append(credit)
        self._add(credit, NOTHING.plus(size.room, -share))


def _shares(pool: _Pool, size: PricedSize) -> dict[int, float]:
    """The share of a node that each move's room would have held, by number of the move."""
    wanted, found = min(1.0, max(0.0, size.nodes_in(pool.room))), dict[int, float]()
    for number, credit in reversed(pool.waiting.items()):
        if wanted <= _LEAST:
            break
        share = min(wanted, max(0.0, size.nodes_in(credit.room)))
        if share > _LEAST:
            wanted -= share
            found[number] = share
    if wanted > _LEAST:  # together they have the room, and none of them has room of every kind
        found[pool.youngest] = found.get(pool.youngest, 0.0) + wanted
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the record holds of each claim: its size, when it was launched, when its instance ended, when it would have
    expired, and whether a move took it."""

    until: float
    usual: Mapping[str, PricedSize]  # by pool, for types that are no longer known
    sizes: Mapping[str, PricedSize]
    spot: Mapping[str, tuple[str, str]]  # instance type and zone of spot nodes
    launched: Mapping[str, float]
    gone: Mapping[str, float]
    expires: Mapping[str, float]
    on_demand: Mapping[str, float]  # since when nodes that a reservation had covered are paid for
    pools: Mapping[str, str]
    moved: frozenset[str]

    @classmethod
    def of(cls, entries: Sequence[Entry], fleet: Snapshot, until: float) -> "_Known":
        prices = Prices.of(fleet.catalogues)
        sizes: dict[str, PricedSize] = {}
        usual: dict[str, PricedSize] = {}
        spot: dict[str, tuple[str, str]] = {}
        launched: dict[str, float] = {}
        gone: dict[str, float] = {}
        expires: dict[str, float] = {}
        on_demand: dict[str, float] = {}
        pools: dict[str, str] = {}
        for entry in entries:
            for claim in entry.claims if entry.kind != "disruption" else ():
                pools[claim] = entry.pool
                size = prices.of_entry(entry)
                if size is not None:
                    sizes[claim] = size
                    usual.setdefault(entry.pool, replace(size, dollars=None))
                    if size.spot:
                        spot[claim] = entry.instance_type, entry.zone
                if entry.kind == "launch":
                    launched[claim] = entry.began
                else:
                    gone[claim] = _gone(entry, until)
                    expires |= {claim: entry.expires} if entry.expires is not None else {}
                    on_demand |= {claim: entry.on_demand_since} if entry.on_demand_since is not None else {}
        for claim, standing in standing_of(entries, fleet).items():
            since, size = on_demand_since(standing), prices.of_claim(standing)
            if since is not None and size is not None:  # it was launched at another price
                on_demand[claim], sizes[claim] = since, size
        done = (entry for entry in entries if entry.kind == "disruption" and entry.outcome == "done")
        return cls(
            until=until,
            usual=usual,
            sizes=sizes,
            spot=spot,
            launched=launched,
            gone=gone,
            expires=expires,
            on_demand=on_demand,
            pools=pools,
            moved=frozenset(claim for entry in done for claim in entry.claims),
        )

    def size(self, entry: Entry) -> PricedSize:
        return self.sizes.get(entry.claims[0]) or self._usual(entry.pool)

    def _usual(self, pool: str) -> PricedSize:
        """The usual size of a node of the pool; if nothing is known, all nodes count the same."""
        return self.usual.get(pool, _ONE)

    def costs(self, claim: str, since: float, rate: float) -> tuple[CostSpan, ...]:
        """What is paid for the node because of a move. A node that a later move took counts until it would have
        expired, because the later move's saving is counted too."""
        ends = self.expires if claim in self.moved else self.gone
        return costs_of(since, self.on_demand.get(claim), min(self.until, ends.get(claim, self.until)), rate)

    def credit(self, move: Entry, part: Entry, number: int) -> Credit:
        """The credit of a move when it begins, in the pool of that part of it. A move that was called off, or is under
        way, is charged with what was launched for it."""
        taken, made = part.claims if move.outcome == "done" else (), part.replacements
        usual, (before, after) = self._usual(part.pool), _promised(part)
        price, share = before / max(1, len(part.claims)), len(part.claims) / max(1, len(move.claims)) or 1.0
        room_of = next((self.pools[claim] for claim in made if claim in self.pools), part.pool)
        credit = Credit(move=move, part=part, number=number, ends=self.until, room_of=room_of, price=price)
        ended = move.ended if move.ended is not None else self.until
        for claim in taken:
            size = self.sizes.get(claim, usual)
            price = credit.price if size.dollars is None else size.dollars
            begins = self.gone.get(claim, ended)
            credit.gains[claim] = CostSpan(begins, min(self.until, self.expires.get(claim, self.until)), price)
            credit.room = credit.room.plus(size.room)
        if taken:
            credit.ends = max(span.ends for span in credit.gains.values())
        for claim in made if taken else self.launched.keys() & made:
            size = self.sizes.get(claim, usual)
            price = after / len(made) if size.dollars is None else size.dollars * share
            spans = self.costs(claim, self.launched.get(claim, ended), -price)
            credit.charges[claim] = _Charge(spans, NOTHING.plus(size.room, share))
            credit.room = credit.room.plus(size.room, -share)
        return credit


def _promised(entry: Entry) -> tuple[float, float]:
    """What its nodes and their replacements cost an hour by the decision, for types of unknown price."""
    saved, before = entry.saved or 0.0, entry.price_before
    if before is None:
        return saved, 0.0
    if not entry.replacements:  # nothing is promised if its pods find nodes only as they leave
        return min(saved, before) or before, 0.0
    return before, before - saved


def _gone(entry: Entry, until: float) -> float:
    """When its instance ended. Records of older versions do not say so; for those the end of the removal counts."""
    if entry.instance_gone is not None:
        return entry.instance_gone
    return entry.ended if entry.ended is not None else until
