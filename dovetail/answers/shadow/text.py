"""`dovetail shadow report` as text: the sums, then what differs, then what agrees."""

from collections.abc import Iterator, Sequence
from typing import Final

from dovetail.answers.shadow.comparing import (
    DepartureComparison,
    LaunchComparison,
    LaunchedNode,
    ShadowReport,
    price_of,
)
from dovetail.answers.wording import duration_text, moment_text, plural, price_text, shown, when, wrapped

MOST: Final = 10  # of each kind; -o json has all that are kept


def shadow_text(report: ShadowReport) -> str:
    return "\n".join(_lines(report))


def _lines(report: ShadowReport) -> Iterator[str]:
    sums = report.totals
    seen = f"{moment_text(report.since)}, for {duration_text(round(report.now - report.since))}"
    head = f"Dovetail beside Karpenter since {seen}: {plural(report.looks, 'decision')}, nothing written"
    yield from wrapped("", head, indent=0)
    yield f"launches     {sums.launches_alike} alike, {sums.launches_unlike} not"
    unlike = f"{sums.departures_unlike} for another reason, {sums.only_karpenter} only Karpenter"
    left = f"{sums.only_dovetail} only Dovetail so far, {sums.dropped} that came to nothing"
    yield from wrapped("departures   ", f"{sums.departures_alike} alike, {unlike}, {left}", indent=0)
    if sums.not_compared:
        yield from wrapped("", f"{plural(sums.not_compared, 'node')} left without a disruption", indent=13)
    yield from wrapped(
        "savings      ",
        f"{price_text(sums.saving_now)} by what Dovetail alone would do now, ${sums.saved:.2f} while it stood; "
        f"{price_text(sums.launches_saving)} by other launches",
        indent=0,
    )
    yield from _section("Differs", [*_launches(report, True), *_departures(report, True)])
    yield from _section("Agrees", [*_launches(report, False), *_departures(report, False)])
    for note in report.notes:
        yield from wrapped("note  ", note, indent=0)


def _section(head: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield ""
    yield f"{head}:"
    for line in lines[:MOST]:
        yield from wrapped("- ", line)
    if len(lines) > MOST:
        yield f"  ... and {len(lines) - MOST} more (-o json has all)"


def _launches(report: ShadowReport, differs: bool) -> list[str]:
    chosen = [each for each in reversed(report.launches) if bool(each.differs) is differs]
    return [_launch(each, report.now) for each in chosen]


def _launch(each: LaunchComparison, now: float) -> str:
    head = f"{when(each.at, now)}, {plural(each.pods, 'pod')} ({shown(each.examples, 2)})"
    if not each.differs:
        return f"{head}: {_nodes(each.karpenter)}"
    return f"{head}: {each.differs}: Dovetail {_nodes(each.dovetail)}, Karpenter {_nodes(each.karpenter)}"


def _nodes(nodes: Sequence[LaunchedNode]) -> str:
    price = price_of(nodes)
    types = shown(sorted(f"{node.type} of {node.pool}" for node in nodes), 3) or "nothing"
    return types if price is None else f"{types} ({price_text(price)})"


def _departures(report: ShadowReport, differs: bool) -> list[str]:
    chosen = [each for each in reversed(report.departures) if bool(each.differs) is differs]
    return [_departure(each, report.now) for each in chosen]


def _departure(each: DepartureComparison, now: float) -> str:
    name = each.node or each.claim
    parts = [f"NodePool {each.pool}", *([each.differs] if each.differs else [])]
    if each.dovetail_since is not None:
        saving = f", saves {price_text(each.saving)}" if each.saving else ""
        beside = f" with {each.with_nodes - 1} more" if each.with_nodes > 1 else ""
        made = f" after {plural(each.replacements, 'replacement')}" if each.replacements else ""
        parts.append(f"Dovetail: {each.dovetail}{beside}{made}{saving}, since {when(each.dovetail_since, now)}")
    if each.karpenter_at is not None:
        parts.append(f"Karpenter: {each.karpenter}, {when(each.karpenter_at, now)}")
    return f"{name}: {'; '.join(parts)}"
