"""`dovetail log`: what happened, filtered and printed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dovetail.answers.record.entries import Entries, Entry, Period
from dovetail.answers.record.savings import with_dollars
from dovetail.answers.shown.screen import Screen
from dovetail.answers.shown.tables import Column, table
from dovetail.answers.wording import duration_text, plural, shown
from dovetail.model import names
from dovetail.model.objects.pod_rules import is_reschedulable
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time

SHOWN_NODES: Final = 2
COLUMNS: Final = (
    Column(head="BEGAN (UTC)"),
    Column(head="TOOK", rank=3),
    Column(head="WHAT"),
    Column(head="REASON", rank=1),
    Column(head="POOL", rank=4),
    Column(head="NODES", cut=True, least=16),
    Column(head="PODS", rank=5, right=True),
    Column(head="$/H", rank=2, right=True),
    Column(head="OUTCOME", cut=True),
)
MORE: Final = (Column(head="SAVED $", right=True), Column(head="MESSAGE"), Column(head="WORKFLOW"))  # of the wide form


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The entries that are asked for; an empty text means all."""

    period: Period
    pool: str = ""
    reason: str = ""
    pod: str = ""  # namespace/name, or the name alone
    kinds: tuple[str, ...] = ()

    def takes(self, entry: Entry) -> bool:
        if self.kinds and entry.kind not in self.kinds:
            return False
        if self.reason and entry.reason.lower() != self.reason.lower():
            return False
        if self.pool and self.pool not in entry.all_pools:
            return False
        pods = {part for name in entry.pod_names for part in (name, name.partition("/")[2])}
        return not self.pod or self.pod in pods


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAnswer:
    cluster: str
    since: str
    until: str | None
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()


def log_from(cluster: str, wanted: Wanted, found: Entries, now: float, fleet: Snapshot | None = None) -> LogAnswer:
    """The log from entries that have been read. `fleet`: gives the prices of what was launched."""
    notes = [*found.notes]
    if found.forgotten:
        notes.append(f"{plural(found.forgotten, 'workflow')} ended so long ago that Temporal has no history of it")
    period = wanted.period
    dollars = with_dollars(found.entries, min(period.until or now, now), fleet)
    entries = tuple(entry for entry in dollars if wanted.takes(entry))
    moves = [entry for entry in entries if entry.kind == "disruption" and entry.outcome == "done"]
    moved = sum(part.pods for entry in moves for part in entry.by_pool() if wanted.pool in ("", part.pool))
    if moved and not wanted.pod:
        notes.append(
            _moves(moved, wanted.pool, fleet, partial=found.cut or bool(found.forgotten or found.missing_hours))
        )
    return LogAnswer(
        cluster=cluster,
        since=format_time(period.since),
        until=None if period.until is None else format_time(period.until),
        entries=entries,
        notes=tuple(notes),
    )


def _moves(moved: int, pool: str, fleet: Snapshot | None, *, partial: bool) -> str:
    """How often pods were moved, compared with the pods that run now in that pool or in all pools."""
    if partial:
        return f"disruptions moved at least {plural(moved, 'pod')}"
    words = f"disruptions moved {plural(moved, 'pod')}"
    if fleet is None:
        return words
    labels = {name: node.labels.get(names.NODE_POOL) for name, node in fleet.nodes.items()}
    ours = {name for name, label in labels.items() if label and pool in ("", label)}
    run = sum(pod.node_name in ours and is_reschedulable(pod) for pod in fleet.pods.values())
    return f"{words}, {moved / run:.2f} for each of the {run} that run now" if run else words


def log_in(answer: LogAnswer, form: str, width: int | None = None) -> str:
    """The log as text of that width, wide, or as Markdown."""
    return log_markdown(answer) if form == "markdown" else log_text(answer, width, wide=form == "wide")


def log_text(answer: LogAnswer, width: int | None = None, *, wide: bool = False) -> str:
    """One line each. `wide`: every column, including the message and the workflow."""
    if not answer.entries:
        return "\n".join([f"nothing since {answer.since}", *answer.notes])
    rows = [tuple(_row(entry)) for entry in answer.entries]
    if not wide:
        return "\n".join([*table(COLUMNS, rows, Screen(width=width)), *answer.notes])
    rows = [(*row, *_more(entry)) for row, entry in zip(rows, answer.entries, strict=True)]
    return "\n".join([*table((*COLUMNS, *MORE), rows, Screen()), *answer.notes])


def _row(entry: Entry) -> Iterator[str]:
    yield format_time(entry.began).replace("T", " ").removesuffix("Z")
    yield "" if entry.ended is None else duration_text(round(entry.ended - entry.began))
    yield entry.kind
    yield f"{entry.reason} by {entry.asked_by}" if entry.asked_by else entry.reason
    yield ", ".join(entry.all_pools)
    yield _nodes(entry)
    yield str(entry.pods) if entry.kind == "disruption" else ""
    yield "" if not entry.saved else f"{'−' if entry.saved > 0 else '+'}{abs(entry.saved):.4f}"
    yield f"{entry.outcome} by {entry.by}" if entry.by else entry.outcome


def _more(entry: Entry) -> Iterator[str]:
    yield "" if entry.saved_dollars is None else f"{entry.saved_dollars:.4f}"
    yield entry.message
    yield entry.workflow


def _nodes(entry: Entry) -> str:
    if entry.kind == "launch":
        size = " ".join(filter(None, (entry.instance_type, entry.capacity_type, entry.zone)))
        return f"{entry.claims[0]} ({size})" if size else entry.claims[0]
    found = shown(entry.nodes or entry.claims, SHOWN_NODES)
    return f"{found} → {len(entry.replacements)} new" if entry.replacements else found


def log_markdown(answer: LogAnswer) -> str:
    heads = ("began (UTC)", "took", "what", "reason", "pool", "nodes", "pods", "$/h", "outcome")
    rows = [f"| {' | '.join(_row(entry))} |" for entry in answer.entries]
    return "\n".join([f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *rows, *answer.notes])
