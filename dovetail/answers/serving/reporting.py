"""A worker's report of its cluster, for those who look at all clusters.

The worker that runs upkeep speaks for the cluster. It looks every five minutes, and signals the Caretaker only if
something has changed, and once an hour to show that it still looks: 48 actions in a quiet day. The last report is in
the Caretaker's memo, so a worker that takes over does not repeat it.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Final

from temporalio.client import Client, WorkflowExecutionDescription

from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.answers.status.answer import Need, StatusAnswer
from dovetail.answers.status.status import status_of
from dovetail.connection.identity import place_of
from dovetail.connection.owner import described_or_none
from dovetail.connection.pollers import TYPE_ACTIVITY, pollers_of
from dovetail.messages.reports import MOST_NAMED, REPORT, ClusterReport, ReportedNeed, ReportedWorker, differs
from dovetail.messages.workflow_ids import caretaker_id, task_queue
from dovetail.model import names
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.log.start import product_version
from dovetail.workflows.converter import UnreadablePayload

UNCHANGED_SECONDS: Final = 3600.0
LONGEST: Final = 200  # of one text


async def say_report(source: WorkerSource, now: float) -> bool:
    """Look, and report if anything is new; returns whether it reported."""
    client, cluster = await source.temporal(), source.settings.cluster
    described = await described_or_none(client, caretaker_id(cluster))
    if described is None:
        return False  # a worker starts it within a minute
    before = await _last_said(described)
    found = await _report(source, client, before, now)
    if before is not None and not differs(before, found) and now - before.at < UNCHANGED_SECONDS:
        return False
    await client.get_workflow_handle(caretaker_id(cluster)).signal("report", found)
    return True


async def _last_said(described: WorkflowExecutionDescription) -> ClusterReport | None:
    try:
        return await described.memo_value(REPORT, None, type_hint=ClusterReport)
    except UnreadablePayload:
        return None  # encrypted with another key: it is reported again with ours


async def _report(source: WorkerSource, client: Client, before: ClusterReport | None, now: float) -> ClusterReport:
    look = await source.look_unasked()
    status = await asyncio.to_thread(status_of, look)
    polling = await pollers_of(client, task_queue(source.settings.cluster, "control"), TYPE_ACTIVITY)
    known = before.kubernetes if before is not None and now - before.at < UNCHANGED_SECONDS else ""
    return report_in(
        status,
        look.snapshot,
        workers_in(polling, look.snapshot, source.settings.namespace),
        at=now,
        kubernetes=known or await source.opened.inspection.version(),
    )


def report_in(
    status: StatusAnswer, snapshot: Snapshot, workers: tuple[ReportedWorker, ...], *, at: float, kubernetes: str
) -> ClusterReport:
    """What `dovetail status` knows, cut to fit into a list of hundreds of clusters."""
    moving = Counter(move.kind for move in status.under_way)
    return ClusterReport(
        at=at,
        version=product_version(),
        kubernetes=kubernetes,
        region=_region(snapshot),
        workers=workers,
        nodes=status.totals.nodes,
        price=round(status.totals.price, 4),
        unpriced=status.totals.unpriced,
        pending_pods=status.totals.pending_pods,
        drifted=sum(pool.drifted for pool in status.pools),
        launches=moving["launch"],
        disruptions=moving["disruption"],
        terminations=moving["termination"],
        pauses=_short(status.pauses),
        needs=tuple(_need(need) for need in status.needs_person[:MOST_NAMED]),
        needing=len(status.needs_person),
        troubles=_short(trouble.what for trouble in status.troubles),
    )


def workers_in(polling: Iterable[str], snapshot: Snapshot, namespace: str) -> tuple[ReportedWorker, ...]:
    """The workers by pod; a worker whose pod is not in this cluster has no age."""
    made = {pod.name: pod.created for pod in snapshot.pods.values() if pod.namespace == namespace}
    places = {place.host: place for place in map(place_of, polling) if place is not None}
    return tuple(
        ReportedWorker(pod=host, version=places[host].version, since=made.get(host))
        for host in sorted(places)[:MOST_NAMED]
    )


def _region(snapshot: Snapshot) -> str:
    regions = Counter(filter(None, (node.labels.get(names.REGION, "") for node in snapshot.nodes.values())))
    return min(regions, key=lambda region: (-regions[region], region), default="")


def _need(need: Need) -> ReportedNeed:
    return ReportedNeed(about=need.about, what=need.what[:LONGEST], since=need.since, command=need.command)


def _short(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text[:LONGEST] for text in [*texts][:MOST_NAMED])
