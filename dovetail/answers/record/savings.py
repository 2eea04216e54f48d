"""`dovetail savings`: what disruption has saved, by NodePool or namespace, and what all nodes have cost.

Predicted is what each decision promised per hour, at its own prices. Saved is what the ledger (ledger.py) counts: the
difference from what the same time would have cost without these moves. `log`, `top`, the page and the metrics get their
dollars from here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dovetail.answers.record.bill import Bill, bill_of, by_day
from dovetail.answers.record.entries import Entries, Entry, Period
from dovetail.answers.record.ledger import Ledger, ledger_of
from dovetail.answers.record.lives import distinct
from dovetail.answers.record.whose import COLUMNS as NAMESPACE_COLUMNS
from dovetail.answers.record.whose import UNKNOWN_NOTE, NamespaceSavings, by_namespace, dollars_text, namespace_rows
from dovetail.answers.shown.screen import Screen
from dovetail.answers.shown.tables import Column, table
from dovetail.answers.wording import plural
from dovetail.background.garbage import uncollected
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time

NAMESPACE: Final = "namespace"  # the other way to add savings up, besides "pool"

MOST_OFF: Final = 0.1  # share of what later launches are set against: at most 0.084 in the weeks of decision 259

COLUMNS: Final = (
    Column(head="POOL", cut=True),
    Column(head="MOVES", right=True),
    Column(head="UNDONE", rank=2, right=True),
    Column(head="CAME BACK", rank=1, right=True),
    Column(head="PREDICTED $/H", right=True),
    Column(head="SAVED $", right=True),
    Column(head="BILL $", right=True),
    Column(head="$ PER MOVE", rank=4, right=True),
    Column(head="PODS MOVED", rank=3, right=True),
    Column(head="$ PER POD", rank=5, right=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSavings:
    """One NodePool. `back`: nodes launched for pods within a day after consolidation took one away, each once."""

    pool: str
    moves: int  # nodes that disruptions took away
    undone: int  # nodes whose disruption was called off, failed or refused
    back: int
    predicted: float  # dollars an hour
    saved: float  # dollars
    pods: int
    bill: float | None = None  # dollars that its nodes cost in that period; None: not known

    @property
    def per_move(self) -> float | None:
        """Dollars for each node that left."""
        return self.saved / self.moves if self.moves else None

    @property
    def per_pod(self) -> float | None:
        """Dollars for each pod that had to move."""
        return self.saved / self.pods if self.pods else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySavings:
    """One day in UTC. `bill`: what all nodes have cost; `saved`: what they would have cost more without the moves of
    the period that is asked for."""

    day: str
    bill: float | None
    saved: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingsAnswer:
    """Every pool's savings, and their sum. `partial`: some of that period could not be read."""

    cluster: str
    since: str
    until: str
    pools: tuple[PoolSavings, ...]
    total: PoolSavings
    partial: bool = False
    notes: tuple[str, ...] = ()
    days: tuple[DaySavings, ...] = ()
    namespaces: tuple[NamespaceSavings, ...] = ()  # the same dollars, divided among those whose pods were moved

    @property
    def head(self) -> tuple[str, ...]:
        """The line that names the period, what it is compared with, and whether it is complete."""
        head = f"{self.since} to {self.until}, against a time without moves"
        least = f"at least ${self.total.saved:.2f} saved: not every workflow of that time was read"
        return (head, least) if self.partial else (head,)


def savings_from(
    cluster: str, period: Period, found: Entries, now: float, fleet: Snapshot | None = None
) -> SavingsAnswer:
    """The savings from entries that have been read. `fleet`: today's nodes with their prices; None if not known."""
    until = min(period.until or now, now)
    with uncollected():
        entries = distinct((*found.entries, *found.ends))
        bill = None if fleet is None else bill_of(entries, fleet, period.since, until)
        ledger = ledger_of(entries, fleet, until)
    dollars = [(credit.part, credit.dollars(period.since, until)) for credit in ledger.credits]
    pools = _Time(found.entries, period.since, until, ledger, bill).pools()
    spans = [span for credit in ledger.credits for span in credit.spans()]
    saved = by_day(spans, period.since, until)
    costs = {} if bill is None else by_day(bill.all_spans(), period.since, until)
    return SavingsAnswer(
        cluster=cluster,
        since=format_time(period.since),
        until=format_time(until),
        pools=pools,
        total=_total(pools),
        partial=found.cut or found.missing_hours > 0,
        notes=(*_notes(found, bill), *_how_sure(sum(c.set_against(period.since, until) for c in ledger.credits))),
        days=tuple(
            DaySavings(day=day, bill=None if bill is None else costs.get(day, 0.0), saved=saved.get(day, 0.0))
            for day in sorted({*saved, *costs})
        ),
        namespaces=by_namespace(dollars),
    )


def _notes(found: Entries, bill: Bill | None) -> Iterator[str]:
    yield from found.notes
    if found.forgotten:
        yield f"{plural(found.forgotten, 'workflow')} of that time cannot be read and is not counted"
    if bill is None:
        yield "prices of now are not known: there is no bill, and one node that was launched again counts as another"
    elif bill.unpriced:
        yield f"the bill lacks {plural(bill.unpriced, 'node')} whose type, price or end is not known"


def _how_sure(later: float) -> Iterator[str]:
    """Which of the dollars are estimated rather than prices paid. The bounds come from weeks that were played with and
    without moves (decision 259)."""
    if later >= 0.005:
        off = later * MOST_OFF
        yield (
            f"±${off:.2f}: ${later:.2f} of nodes launched later is set against what was saved, as far as they would "
            f"have found room; in weeks played with moves and without this was wrong by less than {MOST_OFF:.0%}"
        )


@dataclass(frozen=True, slots=True)
class _Time:
    """What happened within a period, and what follows from it."""

    entries: Sequence[Entry]
    since: float
    until: float
    ledger: Ledger
    bill: Bill | None

    def pools(self) -> tuple[PoolSavings, ...]:
        """Each pool that entries name or that has had nodes, by name."""
        moves: dict[str, list[Entry]] = {pool: [] for entry in self.entries for pool in entry.all_pools if pool}
        moves |= {pool: [] for pool in (self.bill.spans if self.bill is not None else ())}
        for entry in self.entries:
            for part in entry.by_pool() if entry.kind == "disruption" and entry.pool else ():
                moves[part.pool].append(part)
        saved: dict[str, float] = {}
        for credit in self.ledger.credits:
            saved[credit.pool] = saved.get(credit.pool, 0.0) + credit.dollars(self.since, self.until)
        return tuple(self._pool(pool, moves[pool], saved.get(pool, 0.0)) for pool in sorted(moves))

    def _pool(self, pool: str, disruptions: Sequence[Entry], saved: float) -> PoolSavings:
        done = [entry for entry in disruptions if entry.outcome == "done"]
        undone = [entry for entry in disruptions if entry.outcome not in ("done", "rebooted", "running")]
        spans = None if self.bill is None else self.bill.spans.get(pool, ())
        return PoolSavings(
            pool=pool,
            moves=sum(len(entry.claims) for entry in done),
            undone=sum(len(entry.claims) for entry in undone),
            back=self.ledger.back.get(pool, 0),
            predicted=sum(entry.saved or 0.0 for entry in done),
            saved=saved,
            pods=sum(entry.pods for entry in done),
            bill=None if spans is None else sum(span.dollars(self.since, self.until) for span in spans),
        )


def with_dollars(entries: Sequence[Entry], until: float, fleet: Snapshot | None = None) -> tuple[Entry, ...]:
    """The same entries; each finished disruption with what it has saved, or cost, until then."""
    apart = distinct(entries)
    credits = ledger_of(apart, fleet, until).credits
    dollars: dict[int, float] = {}
    for credit in credits:
        if credit.spans():
            dollars[id(credit.move)] = dollars.get(id(credit.move), 0.0) + credit.dollars(0.0, until)
    return tuple(
        replace(entry, saved_dollars=dollars[id(own)]) if id(own) in dollars and entry.saved is not None else entry
        for entry, own in zip(entries, apart, strict=True)
    )


def _total(pools: Sequence[PoolSavings]) -> PoolSavings:
    bills = [each.bill for each in pools if each.bill is not None]
    return PoolSavings(
        pool="",
        moves=sum(each.moves for each in pools),
        undone=sum(each.undone for each in pools),
        back=sum(each.back for each in pools),
        predicted=sum(each.predicted for each in pools),
        saved=sum(each.saved for each in pools),
        pods=sum(each.pods for each in pools),
        bill=sum(bills) if bills else None,
    )


def savings_in(answer: SavingsAnswer, form: str, width: int | None = None, by: str = "") -> str:
    """The savings as text of that width or as Markdown; by NodePool, or `by` namespace."""
    return savings_markdown(answer, by) if form == "markdown" else savings_text(answer, width, by)


def savings_text(answer: SavingsAnswer, width: int | None = None, by: str = "") -> str:
    columns, rows, notes = _table(answer, by)
    return "\n".join([*answer.head, *table(columns, rows, Screen(width=width)), *notes])


def savings_markdown(answer: SavingsAnswer, by: str = "") -> str:
    columns, rows, notes = _table(answer, by)
    head = [*answer.head[1:], ""] if answer.partial else []
    lines = [f"| {' | '.join(row)} |" for row in (tuple(column.head.lower() for column in columns), *rows)]
    return "\n".join([*head, lines[0], "|" + "---|" * len(columns), *lines[1:], *notes])


_Table = tuple[Sequence[Column], Sequence[tuple[str, ...]], Sequence[str]]  # with what follows it


def _table(answer: SavingsAnswer, by: str) -> _Table:
    if by != NAMESPACE:
        return COLUMNS, [tuple(_row(each)) for each in (*answer.pools, answer.total)], answer.notes
    found, total = answer.namespaces, answer.total
    older = (UNKNOWN_NOTE,) if any(each.whose == "unknown" for each in found) else ()
    return NAMESPACE_COLUMNS, namespace_rows(found, total.predicted, total.saved), (*answer.notes, *older)


def _row(each: PoolSavings) -> Iterator[str]:
    yield each.pool or "all"
    yield from (str(each.moves), str(each.undone), str(each.back))
    yield f"{each.predicted:.4f}"
    yield dollars_text(each.saved)
    yield "–" if each.bill is None else f"{each.bill:.2f}"
    yield _each(each.per_move)
    yield str(each.pods)
    yield _each(each.per_pod)


def _each(dollars: float | None) -> str:
    return "–" if dollars is None else f"{dollars:.4f}"
