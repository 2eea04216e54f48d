"""`dovetail history` of what Temporal has forgotten: from the kept record, with the beginning and the end of each."""

import time

from temporalio.client import Client

from dovetail.answers.failures import CommandFailed
from dovetail.answers.history.history import HistoryAnswer, Story, stories_of
from dovetail.answers.record.entries import Entry
from dovetail.answers.record.kept import Archive, kept_about, kept_objects
from dovetail.answers.record.steps import Line
from dovetail.answers.wording import plural, price_text, shown
from dovetail.connection.temporal import connect
from dovetail.model.snapshot import Snapshot
from dovetail.settings.settings import Settings

NOTE = "Temporal has forgotten it: this is from the kept record, which has no single steps"


async def history(settings: Settings, name: str) -> HistoryAnswer:
    """The stories of a node, a claim or a workflow."""
    return await stories_or_kept(await connect(settings), settings, name, None)


async def stories_or_kept(client: Client, settings: Settings, name: str, snapshot: Snapshot | None) -> HistoryAnswer:
    """Temporal's, or what was kept where it has none."""
    try:
        return await stories_of(client, settings, name, snapshot)
    except CommandFailed:
        async with kept_objects(settings) as kept:
            found = await kept_about(Archive(kept, settings.cluster), name, time.time()) if kept is not None else ()
        if not found:
            raise
        return HistoryAnswer(name=name, stories=tuple(_story(entry) for entry in found), notes=(NOTE,))


def _story(entry: Entry) -> Story:
    lines = [Line(at=entry.began, text=_begun(entry))]
    if entry.ended is not None:
        said = f": {entry.message}" if entry.message else ""
        lines.append(Line(at=entry.ended, text=f"{entry.outcome}{said}", seconds=entry.ended - entry.began))
    return Story(
        workflow=entry.workflow,
        type=entry.kind,
        status=entry.outcome,
        started=entry.began,
        ended=entry.ended,
        lines=tuple(lines),
    )


def _price(entry: Entry) -> str:
    if entry.price_before is not None and entry.price_after is not None:
        return f"{price_text(entry.price_before)} → {price_text(entry.price_after)}"
    return f"saves {price_text(entry.saved)}" if entry.saved else ""


def _begun(entry: Entry) -> str:
    parts = [f"{entry.kind} of {shown(entry.nodes or entry.claims)}"]
    parts += [f"for {entry.reason}"] if entry.reason else []
    parts += [" ".join(filter(None, (entry.instance_type, entry.capacity_type, entry.zone)))]
    parts += [f"after {plural(len(entry.replacements), 'replacement')}"] if entry.replacements else []
    parts += [plural(entry.pods, "pod")] if entry.pods else []
    parts += [_price(entry)]
    return ", ".join(filter(None, parts))
