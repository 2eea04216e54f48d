"""What a worker answers from: its existing view and connection."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote

from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.activities.shared.looks.snapshots import whole_snapshot
from dovetail.answers.change.basis import Basis, basis_in
from dovetail.answers.doctor.doctor import DoctorAnswer, doctor_of_worker
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import Look, look_now, state_from
from dovetail.answers.look.troubles import (
    OwnTrouble,
    failing,
    scheduler_silent,
    temporal_away,
    watches_broken,
    workers_missing,
)
from dovetail.answers.questions.versions import worker_count
from dovetail.answers.record.paces import KEPT_SECONDS, read_paces
from dovetail.answers.record.trend import Trend, TrendAnswer
from dovetail.answers.shadow.comparing import ShadowReport
from dovetail.answers.shadow.shadow import Shadow
from dovetail.answers.status.answer import NodesAnswer, StatusAnswer
from dovetail.connection.presence import TemporalPresence
from dovetail.connection.temporal import ANSWER_SECONDS
from dovetail.disruption.outlook.paces import Paces
from dovetail.messages.states import Recent, SchedulerState
from dovetail.model.objects.watched_kinds import FLEET, OVERLAYS, PLACEMENT, Kinds
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Failure
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

MOST_ENTRIES: Final = 1000
NOT_CONSIDERED: Final = "nominations and held plans are not considered"
AGAIN_SECONDS: Final = 0.25  # for a Scheduler that did not answer last time

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WorkerSource:
    """Its world stays open. `watching`: the shadow, in a worker beside Karpenter; `fails`: what fails in this worker,
    in lines.

    A question that can be answered without Temporal waits for it only once: if the Scheduler did not answer, it is next
    asked in the background, for later questions."""

    settings: Settings
    opened: World
    presence: TemporalPresence
    watching: Shadow | None = None
    fails: Callable[[], Sequence[str]] = tuple
    most_entries: int = MOST_ENTRIES
    past: Trend = field(default_factory=Trend)  # of the last day
    _known: tuple[float, Paces | None] = (0.0, None)  # with the time of reading
    clock: Callable[[], float] = field(default=time.monotonic)
    _asking: asyncio.Task[tuple[SchedulerState | None, str]] | None = None
    _unanswered: str = ""  # why the Scheduler did not answer last time
    _saw_all: bool = False  # whether it has seen everything that each pass reads
    _recent: tuple[Recent, ...] = ()  # what the Scheduler did, by its last answer

    async def look(self, reads: Kinds = PLACEMENT) -> Look:
        state, note = await self._scheduler()
        found = await self._looked(state, note, reads)
        if state is not None:
            self._recent = state.recent
        return replace(found, recent=self._recent)

    async def look_unasked(self) -> Look:
        """A look without a query to the Scheduler, which Temporal Cloud bills: its held plans are missing."""
        return await self._looked(None, "")

    async def _looked(self, state: SchedulerState | None, note: str, reads: Kinds = PLACEMENT) -> Look:
        found = await look_now(self.settings, self.opened, state, note, reads)
        return replace(found, troubles=tuple(self._troubles(found, note)), clock=self.clock)

    async def _scheduler(self) -> tuple[SchedulerState | None, str]:
        """The Scheduler's state; or none, and why."""
        client = self._client()
        if client is None:
            return None, f"{self._silence()}: {NOT_CONSIDERED}"
        if self._asking is None or self._asking.done():
            asked = state_from(client, self.settings.cluster, self.opened.cluster_uid)
            self._asking = asyncio.create_task(asked)
        await asyncio.wait({self._asking}, timeout=AGAIN_SECONDS if self._unanswered else None)
        if not self._asking.done():
            return None, self._unanswered
        state, self._unanswered = self._asking.result()
        if state is None and not await self.presence.look():
            return None, f"{self._silence()}: {NOT_CONSIDERED}"
        return state, self._unanswered

    def _client(self) -> Client | None:
        """None while Temporal is away: a question to it would wait."""
        return self.presence.client if not self.presence.is_away else None

    def _silence(self) -> str:
        silent = self.presence.silent_seconds
        return f"Temporal has not answered for {silent:.0f} s" if silent else "the worker is not connected to Temporal"

    def _troubles(self, found: Look, note: str) -> Iterator[OwnTrouble]:
        """The troubles, the most serious first."""
        silent = self.presence.silent_seconds if found.state is None else 0.0
        if silent:
            yield temporal_away(silent, found.snapshot.now)
        elif note and self.presence.client is not None:
            yield scheduler_silent(note)
        yield from workers_missing(found.snapshot, self.settings.namespace, self.settings.pod)
        view = self.opened.view
        yield from watches_broken(view.stale(), view.silent_for, found.snapshot.now)
        yield from failing(self.fails() if not silent else ())

    async def fleet(self) -> Look:
        """The fleet, or its last known state if the API server does not answer: the first line says since when. A
        worker that has never seen everything has nothing to show."""
        self._saw_all = self._saw_all or PLACEMENT.isdisjoint(self.opened.view.stale())
        return await self.look(frozenset() if self._saw_all else PLACEMENT)

    async def besides(self, kind: str, answer: StatusAnswer | NodesAnswer) -> Mapping[str, object]:
        if kind != "ClusterStatus":
            return {}
        client = self._client()
        workers = await worker_count(client, self.settings.cluster) if client is not None else None
        return {"workers": workers, "workflows": self._workflows()}

    def _workflows(self) -> str:
        client, ui = self.presence.client, self.settings.temporal_ui
        return f"{ui.rstrip('/')}/namespaces/{quote(client.namespace, safe='')}/workflows/" if ui and client else ""

    @asynccontextmanager
    async def basis(self) -> AsyncIterator[Basis]:
        yield basis_in(self.opened, await self.look(), await self.paces())

    async def paces(self) -> Paces:
        """How long nodes recently took, as read within the last minutes; empty without Temporal."""
        at, found = self._known
        client = self._client()
        if client is not None and (found is None or self.clock() - at > KEPT_SECONDS):
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    found = await read_paces(client, self.settings.cluster)
            except (RPCError, TimeoutError) as error:
                _log.warning("cannot read how long nodes took: %s", error)
            else:
                self._known = (self.clock(), found)
        return found or Paces()

    @asynccontextmanager
    async def world(self) -> AsyncIterator[World]:
        yield self.opened

    def snapshot(self) -> Snapshot | None:
        return self.opened.view.snapshot(FLEET)

    async def priced(self) -> Snapshot | None:
        try:
            return await whole_snapshot(self.opened.view, self.opened.catalogues, FLEET | OVERLAYS)
        except Failure:
            return None  # what happened is known even without a view of the cluster

    async def temporal(self) -> Client:
        client = self._client()
        if client is None:
            raise TimeoutError(f"{self._silence()}; it keeps the history")
        return client

    async def doctor(self, *, preflight: bool) -> DoctorAnswer:
        return await doctor_of_worker(self.settings, self.opened, self.presence.client)

    def shadow(self) -> ShadowReport:
        if self.watching is None:
            raise CommandFailed("shadow: this worker acts; `dovetail worker --beside-karpenter` decides and compares")
        return self.watching.report()

    def trend(self) -> TrendAnswer:
        return self.past.answer(self.opened.clock.now())
