"""`dovetail savings`: what disruption has saved, by NodePool.

Predicted is what each decision promised an hour, at the prices of its moment. Saved is that promise over the time for
which it held: from when the last of the old instances had ended until its replacement left again, or until now. Where
nothing replaced the node the time is open-ended, and a node that comes back for the same pods is counted as such, so
that the figure is not taken for more than it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dovetail.answers.record.entries import Entries, Entry, Period
from dovetail.answers.shown.screen import Screen
from dovetail.answers.shown.tables import Column, table
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.time import format_time

BACK_SECONDS: Final = 86400.0
HOUR: Final = 3600.0
COLUMNS: Final = (
    Column(head="POOL", cut=True),
    Column(head="MOVES", right=True),
    Column(head="UNDONE", rank=2, right=True),
    Column(head="CAME BACK", rank=1, right=True),
    Column(head="PREDICTED $/H", right=True),
    Column(head="SAVED $", right=True),
    Column(head="$ PER MOVE", rank=4, right=True),
    Column(head="PODS MOVED", rank=3, right=True),
    Column(head="$ PER POD", rank=5, right=True),
)
_CONSOLIDATED: Final = frozenset({DisruptionReason.EMPTY.value, DisruptionReason.UNDERUTILIZED.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSavings:
    """One NodePool. `back`: nodes launched for pods within a day after consolidation took one away, each once."""

    pool: str
    moves: int  # nodes that disruptions took away
    undone: int  # nodes whose disruption was called off, failed or was refused
    back: int
    predicted: float  # dollars an hour
    saved: float  # dollars
    pods: int

    @property
    def per_move(self) -> float | None:
        """Dollars for each node that went."""
        return self.saved / self.moves if self.moves else None

    @property
    def per_pod(self) -> float | None:
        """Dollars for each pod that had to move."""
        return self.saved / self.pods if self.pods else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingsAnswer:
    """All pools, and their sum. `partial`: not everything of that time could be read."""

    cluster: str
    since: str
    until: str
    pools: tuple[PoolSavings, ...]
    total: PoolSavings
    partial: bool = False
    notes: tuple[str, ...] = ()

    @property
    def head(self) -> tuple[str, ...]:
        """Of which time, at which prices, and whether it is the whole of it."""
        head = f"{self.since} to {self.until}, at the prices of each decision"
        least = f"at least ${self.total.saved:.2f} saved: the oldest workflows of that time were not read"
        return (head, least) if self.partial else (head,)


def savings_from(cluster: str, period: Period, found: Entries, now: float) -> SavingsAnswer:
    """From entries that have been read."""
    until = min(period.until or now, now)
    pools = pool_savings(found.entries, until)
    notes = ("there is more: ask for a shorter time",) if found.cut else ()
    return SavingsAnswer(
        cluster=cluster,
        since=format_time(period.since),
        until=format_time(until),
        pools=pools,
        total=_total(pools),
        partial=found.cut,
        notes=notes,
    )


def pool_savings(entries: Sequence[Entry], until: float) -> tuple[PoolSavings, ...]:
    """Each pool that entries name, by name."""
    ends = _ends(entries)
    return tuple(_of_pool(pool, entries, ends, until) for pool in sorted({e.pool for e in entries if e.pool}))


@dataclass(frozen=True, slots=True)
class _Ends:
    """When each claim began to leave, and when its instance had ended."""

    left: dict[str, float]
    gone: dict[str, float]


def _of_pool(pool: str, entries: Sequence[Entry], ends: _Ends, until: float) -> PoolSavings:
    disruptions = [entry for entry in entries if entry.kind == "disruption" and entry.pool == pool]
    done = [entry for entry in disruptions if entry.outcome == "done"]
    undone = [entry for entry in disruptions if entry.outcome not in ("done", "running")]
    return PoolSavings(
        pool=pool,
        moves=sum(len(entry.claims) for entry in done),
        undone=sum(len(entry.claims) for entry in undone),
        back=_back(pool, entries),
        predicted=sum(entry.saved or 0.0 for entry in done),
        saved=sum(_dollars(entry, ends, until) for entry in done),
        pods=sum(entry.pods for entry in done),
    )


def _ends(entries: Sequence[Entry]) -> _Ends:
    left: dict[str, float] = {}
    gone: dict[str, float] = {}
    for entry in entries:
        for claim in entry.claims if entry.kind == "termination" else ():
            left[claim] = min(entry.began, left.get(claim, entry.began))
            if entry.instance_gone is not None:
                gone[claim] = entry.instance_gone
    return _Ends(left, gone)


def _held(entry: Entry, ends: _Ends, until: float) -> float:
    """For how many seconds the promise held. Where the record does not say when an instance ended, the end of the
    disruption counts, which is a moment later."""
    begins = entry.ended if entry.ended is not None else until
    if all(claim in ends.gone for claim in entry.claims):
        begins = max((ends.gone[claim] for claim in entry.claims), default=begins)
    over = min((ends.left[claim] for claim in entry.replacements if claim in ends.left), default=until)
    return max(0.0, min(over, until) - begins)


def _dollars(entry: Entry, ends: _Ends, until: float) -> float:
    return (entry.saved or 0.0) * _held(entry, ends, until) / HOUR


def with_dollars(entries: Sequence[Entry], until: float) -> tuple[Entry, ...]:
    """The same entries; each disruption that is done says what it has saved until then."""
    ends = _ends(entries)
    return tuple(
        replace(entry, saved_dollars=_dollars(entry, ends, until))
        if entry.kind == "disruption" and entry.outcome == "done" and entry.saved is not None
        else entry
        for entry in entries
    )


def _back(pool: str, entries: Sequence[Entry]) -> int:
    """Each launch for pods is set against one node that was consolidated within the day before it."""
    gone = sorted(
        moment
        for entry in entries
        if entry.kind == "disruption" and entry.pool == pool and entry.outcome == "done"
        if entry.reason in _CONSOLIDATED and entry.ended is not None
        for moment in [entry.ended] * max(0, len(entry.claims) - len(entry.replacements))
    )
    launches = sorted(
        entry.began for entry in entries if entry.kind == "launch" and entry.pool == pool and not entry.disruption
    )
    count = 0
    for launch in launches:
        match = next((moment for moment in gone if 0 <= launch - moment <= BACK_SECONDS), None)
        if match is not None:
            gone.remove(match)
            count += 1
    return count


def _total(pools: Sequence[PoolSavings]) -> PoolSavings:
    return PoolSavings(
        pool="",
        moves=sum(each.moves for each in pools),
        undone=sum(each.undone for each in pools),
        back=sum(each.back for each in pools),
        predicted=sum(each.predicted for each in pools),
        saved=sum(each.saved for each in pools),
        pods=sum(each.pods for each in pools),
    )


def savings_in(answer: SavingsAnswer, form: str, width: int | None = None) -> str:
    """As text that fits that width, or as Markdown."""
    return savings_markdown(answer) if form == "markdown" else savings_text(answer, width)


def savings_text(answer: SavingsAnswer, width: int | None = None) -> str:
    rows = [tuple(_row(each)) for each in (*answer.pools, answer.total)]
    return "\n".join([*answer.head, *table(COLUMNS, rows, Screen(width=width)), *answer.notes])


def _row(each: PoolSavings) -> Iterator[str]:
    yield each.pool or "all"
    yield from (str(each.moves), str(each.undone), str(each.back))
    yield f"{each.predicted:.4f}"
    yield f"{each.saved:.2f}"
    yield _each(each.per_move)
    yield str(each.pods)
    yield _each(each.per_pod)


def _each(dollars: float | None) -> str:
    return "–" if dollars is None else f"{dollars:.4f}"


def savings_markdown(answer: SavingsAnswer) -> str:
    heads = tuple(column.head.lower() for column in COLUMNS)
    rows = [f"| {' | '.join(_row(each))} |" for each in (*answer.pools, answer.total)]
    head = [*answer.head[1:], ""] if answer.partial else []
    return "\n".join([*head, f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *rows, *answer.notes])
