"""`dovetail forecast`: what will happen through time alone, in order.

Nothing else is assumed to change: no pod is created or deleted, nothing is applied. Consolidation is not forecast,
because it follows from pods.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from dovetail.answers.change.basis import Basis
from dovetail.answers.change.supposition import standing
from dovetail.answers.failures import CommandFailed
from dovetail.answers.wording import plural, shown, wrapped
from dovetail.disruption.outlook.forecast import Coming, foretell
from dovetail.model.values.time import format_time
from dovetail.settings.deciding import disruption_settings

MOST: Final = 60  # lines; JSON has all


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingAnswer:
    """One thing that is due; `at` in RFC 3339."""

    at: str
    what: str
    pool: str
    text: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StayingAnswer:
    """A drifted node that nothing in this period lets leave."""

    node: str
    pool: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastAnswer:
    cluster: str = ""
    source: str
    at: str
    until: str
    coming: tuple[ComingAnswer, ...]
    staying: tuple[StayingAnswer, ...] = ()
    notes: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    cut: bool = False  # there was no time to look ahead at all drifted nodes


async def forecast_on(basis: Basis, ahead: float, pool: str = "") -> ForecastAnswer:
    """The next days of the cluster, or of one pool."""
    look, snapshot = basis.look, await standing(basis)
    if pool and pool not in snapshot.pools:
        raise CommandFailed(f"NodePool {pool}: there is no such NodePool")
    until = snapshot.now + ahead
    limit = look.searching()
    found = await asyncio.to_thread(foretell, snapshot, disruption_settings(look.settings), until, basis.paces, limit)
    cut = found.drift.cut and limit()
    return ForecastAnswer(
        cluster=look.settings.cluster,
        source=look.source,
        at=format_time(snapshot.now),
        until=format_time(until),
        coming=tuple(_coming(each) for each in found.coming if not pool or each.pool in ("", pool)),
        staying=tuple(
            StayingAnswer(node=stay.node, pool=stay.pool, reason=str(stay.why), message=stay.message)
            for stay in found.drift.stays
            if not pool or stay.pool == pool
        ),
        notes=(*look.notes, *([limit.note("the look ahead at drifted nodes ended there")] * cut)),
        pauses=look.pauses,
        cut=cut,
    )


def _coming(each: Coming) -> ComingAnswer:
    return ComingAnswer(at=format_time(each.at), what=each.what, pool=each.pool, text=each.text, nodes=each.nodes)


def forecast_in(answer: ForecastAnswer, form: str) -> str:
    return forecast_markdown(answer) if form == "markdown" else forecast_text(answer)


def forecast_text(answer: ForecastAnswer) -> str:
    """The forecast for a terminal, day by day."""
    return "\n".join(_lines(answer))


def _lines(answer: ForecastAnswer) -> Iterator[str]:
    yield f"Forecast until {answer.until}  ({answer.source})"
    for line in answer.pauses:
        yield from wrapped("", line)
    if not answer.coming:
        yield f"  n{_none(answer)}"
    for day, of_day in groupby(answer.coming[:MOST], key=lambda each: each.at[:10]):
        yield day
        for each in of_day:
            yield from wrapped(f"{each.at[11:16]}Z  {each.what:7}  {each.pool or 'all pools'}  ", each.text)
    if len(answer.coming) > MOST:
        yield f"  and {len(answer.coming) - MOST} more (-o json has all)"
    if answer.staying:
        yield f"Drifted, and nothing lets them go until then: {plural(len(answer.staying), 'node')}"
        for reason, stays in groupby(sorted(answer.staying, key=lambda s: (s.reason, s.node)), key=lambda s: s.reason):
            yield from wrapped(f"{reason}: ", shown(stay.node for stay in stays))
    for note in answer.notes:
        yield from wrapped("note      ", note)


def _none(answer: ForecastAnswer) -> str:
    """The words after a small or a large n."""
    return "othing is due by itself" + (", as far as there was time to look" if answer.cut else "")


def forecast_markdown(answer: ForecastAnswer) -> str:
    rows = [f"| {each.at} | {each.what} | {each.pool or 'all'} | {each.text} |" for each in answer.coming]
    head = [f"### Dovetail forecast until {answer.until}", "", f"{answer.source}", ""]
    table = ["| when | what | NodePool | |", "|---|---|---|---|", *rows] if rows else [f"N{_none(answer)}."]
    stays = [f"- `{stay.node}` stays drifted: {stay.message}" for stay in answer.staying]
    return "\n".join([*head, *table, *(["", *stays] if stays else [])])
