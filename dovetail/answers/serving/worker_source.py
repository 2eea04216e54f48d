"""What a worker answers from: the view and the connection that it has anyway."""

import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.activities.shared.snapshots import whole_snapshot
from dovetail.answers.change.basis import Basis, basis_in
from dovetail.answers.doctor.doctor import DoctorAnswer, doctor_of_worker
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import Look, look_now, state_from
from dovetail.answers.questions.versions import worker_count
from dovetail.answers.record.paces import KEPT_SECONDS, read_paces
from dovetail.answers.shadow.comparing import ShadowReport
from dovetail.answers.shadow.shadow import Shadow
from dovetail.answers.status.answer import NodesAnswer, StatusAnswer
from dovetail.disruption.outlook.paces import Paces
from dovetail.model.snapshot import Snapshot
from dovetail.model.watched_kinds import FLEET, OVERLAYS, PLACEMENT
from dovetail.ports.failures import Failure
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

NO_TEMPORAL: Final = "the worker is not connected to Temporal: nominations and held plans are not considered"
MOST_ENTRIES: Final = 1000

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WorkerSource:
    """Its world stays open. `client`: None while Temporal is away; `watching`: of a worker beside Karpenter."""

    settings: Settings
    opened: World
    client: Callable[[], Client | None]
    watching: Shadow | None = None
    most_entries: int = MOST_ENTRIES
    _known: tuple[float, Paces | None] = (0.0, None)  # and when it was read
    clock: Callable[[], float] = field(default=time.monotonic)

    async def look(self) -> Look:
        client = self.client()
        if client is None:
            return await look_now(self.settings, self.opened, None, NO_TEMPORAL, PLACEMENT)
        state, note = await state_from(client, self.settings.cluster, self.opened.cluster_uid)
        return await look_now(self.settings, self.opened, state, note, PLACEMENT)

    async def fleet(self) -> Look:
        return await self.look()

    async def besides(self, kind: str, answer: StatusAnswer | NodesAnswer) -> Mapping[str, object]:
        if kind != "ClusterStatus":
            return {}
        client = self.client()
        return {"workers": await worker_count(client, self.settings.cluster) if client is not None else None}

    @asynccontextmanager
    async def basis(self) -> AsyncIterator[Basis]:
        yield basis_in(self.opened, await self.look(), await self.paces())

    async def paces(self) -> Paces:
        """How long nodes took of late, as it was read within the last minutes; nothing without Temporal."""
        at, found = self._known
        client = self.client()
        if client is not None and (found is None or self.clock() - at > KEPT_SECONDS):
            try:
                found = await read_paces(client, self.settings.cluster)
            except RPCError as error:
                _log.warning("how long nodes took is not known: %s", error)
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
            return None  # what happened is known without a view of what is there

    async def temporal(self) -> Client:
        client = self.client()
        if client is None:
            raise TimeoutError("the worker is not connected to Temporal, which keeps the history")
        return client

    async def doctor(self, *, preflight: bool) -> DoctorAnswer:
        return await doctor_of_worker(self.settings, self.opened, self.client())

    def shadow(self) -> ShadowReport:
        if self.watching is None:
            raise CommandFailed("shadow: this worker acts; `dovetail worker --beside-karpenter` decides and compares")
        return self.watching.report()
