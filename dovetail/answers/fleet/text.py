"""`dovetail fleet` for people."""

from collections.abc import Iterator
from typing import Final

from dovetail.answers.fleet.answer import ClusterRow, FleetAnswer
from dovetail.answers.shown.screen import NEEDS_PERSON, WAITS, Screen
from dovetail.answers.shown.tables import Column, table
from dovetail.answers.wording import age_text, dollars_text, plural
from dovetail.messages.reports import ClusterReport

MOST_LINES: Final = 3  # of what one cluster needs

CLUSTERS: Final = (
    Column(head="CLUSTER", cut=True, least=20),
    Column(head="REGION", rank=5),
    Column(head="VERSION", rank=6),
    Column(head="KUBERNETES", rank=7),
    Column(head="WORKERS", rank=4, right=True),
    Column(head="AGE", rank=8, right=True),  # of the youngest worker
    Column(head="NODES", right=True),
    Column(head="$/MO", right=True),
    Column(head="PENDING", rank=1, right=True),
    Column(head="MOVES", rank=2, cut=True),
    Column(head="STATE"),
    Column(head="AS OF", rank=3, right=True),
)
_COLOURS: Final = {"silent": NEEDS_PERSON, "needs a person": NEEDS_PERSON, "unknown": WAITS}


def fleet_text(found: FleetAnswer, screen: Screen, wide: bool = False) -> str:
    if not found.clusters:
        return f"no cluster runs in the namespace {found.namespace}"
    rows = [_row(row, found.now) for row in found.clusters]
    colours = [_COLOURS.get(row.state, "") for row in found.clusters]
    lines = [line for row in found.clusters for line in _lines(row, wide)]
    blocks = [[_head(found)], table(CLUSTERS, rows, screen, colours), lines]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(found: FleetAnswer) -> str:
    reports = [row.report for row in found.clusters if row.report is not None]
    count = {state: sum(row.state == state for row in found.clusters) for state in ("silent", "needs a person")}
    pending = sum(report.pending_pods for report in reports)
    parts = [
        f"namespace {found.namespace}",
        plural(len(found.clusters), "cluster"),
        plural(sum(report.nodes for report in reports), "node"),
        f"{dollars_text(sum(row.month or 0.0 for row in found.clusters))}/mo",
        f"{plural(pending, 'pod')} pending" if pending else "",
        f"{count['silent']} silent" if count["silent"] else "",
        f"{plural(count['needs a person'], 'cluster needs', 'clusters need')} a person"
        if count["needs a person"]
        else "",
    ]
    return " · ".join(filter(None, parts))


def _row(row: ClusterRow, now: float) -> tuple[str, ...]:
    report = row.report
    state: str = "paused" if row.state == "fine" and report is not None and report.pauses else row.state
    if row.silent_since is not None:
        state = f"silent for {age_text(now - row.silent_since)}"
    if report is None:
        return (row.name, *("" for _ in CLUSTERS[2:-1]), state, "")
    made = [worker.since for worker in report.workers if worker.since is not None]
    return (
        row.name,
        report.region,
        report.version,
        report.kubernetes,
        str(len(report.workers)),
        age_text(now - max(made)) if made else "",
        str(report.nodes),
        dollars_text(row.month or 0.0),
        str(report.pending_pods) if report.pending_pods else "–",
        _moves(report),
        state,
        f"{age_text(now - report.at)} ago",
    )


def _moves(report: ClusterReport) -> str:
    counts = (
        (report.launches, "come"),
        (report.terminations, "leave"),
        (report.disruptions, "to leave"),
        (report.drifted, "drifted"),
    )
    return ", ".join(f"{count} {word}" for count, word in counts if count) or "–"


def _lines(row: ClusterRow, wide: bool) -> Iterator[str]:
    """What it needs, below the table: this is what the screen is for."""
    if row.note:
        yield f"?  {row.name}  {row.note}"
    if row.report is None:
        return
    for text in row.report.troubles:
        yield f"!  {row.name}  {text}"
    shown = row.report.needs if wide else row.report.needs[:MOST_LINES]
    for need in shown:
        yield f"!  {row.name}  {need.about}  {need.what}  {need.command}".rstrip()
    if row.report.needing > len(shown):
        yield f"!  {row.name}  ... and {row.report.needing - len(shown)} more"
    for text in row.report.pauses:
        yield f"   {row.name}  {text}"
