"""How long nodes of each NodePool recently took to come and to leave, from the record; forecasts use it."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.answers.record.entries import Entry, read_matching
from dovetail.connection.configuration import TemporalUnusable
from dovetail.connection.temporal import connect
from dovetail.disruption.outlook.paces import EVERY, Known, Paces
from dovetail.messages.workflow_types import DISRUPT_NODES, LAUNCH_NODE, TERMINATE_NODE
from dovetail.settings.settings import Settings

MOST_READ: Final = 60  # histories of each kind, the newest
MOST_COUNTED: Final = 20  # of a pool and kind: what was slow last week says little of today
READ_SECONDS: Final = 10.0
KEPT_SECONDS: Final = 600.0  # for how long a worker reuses what it has read


async def read_paces(client: Client, cluster: str) -> Paces:
    """How long disruptions recently took, from the newest finished moves, launches and terminations."""
    entries: list[Entry] = []
    for workflow in (DISRUPT_NODES, LAUNCH_NODE, TERMINATE_NODE):
        ended = f"WorkflowType = '{workflow}' AND ExecutionStatus = 'Completed'"
        entries += (await read_matching(client, cluster, ended, MOST_READ)).entries
    return paces_of(entries)


async def paces_or_none(settings: Settings) -> Paces:
    """The paces, read from here; empty if no Temporal server answers."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            return await read_paces(await connect(settings), settings.cluster)
    except (TemporalUnusable, RPCError, TimeoutError):
        return Paces()


def paces_of(entries: Iterable[Entry]) -> Paces:
    """The paces of each NodePool, the newest first."""
    newest = sorted(entries, key=lambda entry: entry.began, reverse=True)
    return Paces(
        moves=_seconds(e for e in newest if e.kind == "disruption" and e.outcome == "done" and e.replacements),
        departures=_seconds(e for e in newest if e.kind == "disruption" and e.outcome == "done" and not e.replacements),
        launches=_seconds(e for e in newest if e.kind == "launch" and e.outcome == "initialised"),
        ends=_seconds(e for e in newest if e.kind == "termination" and e.outcome == "terminated"),
        endings=_seconds(
            replace(e, began=e.drained)
            for e in newest
            if e.kind == "termination" and e.outcome == "terminated" and e.drained is not None
        ),
    )


def _seconds(entries: Iterable[Entry]) -> Known:
    found: dict[str, list[float]] = {}
    for entry in entries:
        for pool in _names(entry):
            of_pool = found.setdefault(pool, [])
            if entry.ended is not None and len(of_pool) < MOST_COUNTED:
                of_pool.append(entry.ended - entry.began)
    return {pool: tuple(seconds) for pool, seconds in found.items()}


def _names(entry: Entry) -> Iterator[str]:
    yield EVERY
    yield from filter(None, entry.all_pools)
