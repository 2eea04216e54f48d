"""The source of a command's answers without a worker: a world that it opens with a worker's settings, or a recorded
file."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from temporalio.client import Client

from dovetail.activities.shared.looks.snapshots import whole_snapshot
from dovetail.answers.change.basis import Basis, basis_of
from dovetail.answers.doctor import doctor as checks
from dovetail.answers.doctor.doctor import DoctorAnswer
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import Look, look, look_now, opened, state_from
from dovetail.answers.look.troubles import scheduler_silent, temporal_away
from dovetail.answers.questions.asking import Answered, Asked
from dovetail.answers.questions.table import question
from dovetail.answers.record.entries import MOST
from dovetail.answers.record.trend import TrendAnswer
from dovetail.answers.shadow.comparing import ShadowReport
from dovetail.answers.status.answer import NodesAnswer, StatusAnswer
from dovetail.connection import temporal
from dovetail.connection.configuration import TemporalAway, link_words
from dovetail.model.objects.watched_kinds import FLEET, OVERLAYS, PLACEMENT
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Failure
from dovetail.settings.settings import Settings, SettingsError
from dovetail.wiring.world import World


@dataclass(slots=True)
class LocalSource:
    """Each question opens what it needs and closes it again. `file`: a recorded snapshot to look at instead."""

    settings: Settings
    file: Path | None = None
    most_entries: int = MOST
    _client: Client | None = None

    async def look(self) -> Look:
        return await look(self.settings, self.file)

    async def fleet(self) -> Look:
        """One question to Temporal: if it does not answer, the first line says so."""
        async with self.world() as world:
            await world.priced()
            try:
                client = await self.temporal()
            except TemporalAway as error:
                found = await look_now(self.settings, world, None, str(error), PLACEMENT)
                return replace(found, troubles=(temporal_away(0.0, found.snapshot.now),))
            state, note = await state_from(client, self.settings.cluster, world.cluster_uid)
            found = await look_now(self.settings, world, state, note, PLACEMENT)
            return replace(found, troubles=(scheduler_silent(note),) if note else ())

    async def besides(self, kind: str, answer: StatusAnswer | NodesAnswer) -> Mapping[str, object]:
        if self._client is None:
            return {}
        client = self._client
        address = client.service_client.config.target_host
        link = f"Temporal at {address}, namespace {client.namespace}: {link_words(client)}"
        return {"notes": [link, *getattr(answer, "notes", ())]}

    def basis(self) -> AbstractAsyncContextManager[Basis]:
        return basis_of(self.settings, self.file)

    def world(self) -> AbstractAsyncContextManager[World]:
        return opened(self.settings)

    def snapshot(self) -> Snapshot | None:
        return None

    async def priced(self) -> Snapshot | None:
        try:
            async with self.world() as world:
                await world.priced()
                return await whole_snapshot(world.view, world.catalogues, FLEET | OVERLAYS)
        except (Failure, SettingsError):
            return None  # the record can be read even if the cluster or the cloud cannot

    async def temporal(self) -> Client:
        if self._client is None:
            self._client = await temporal.connect(self.settings)
        return self._client

    async def doctor(self, *, preflight: bool) -> DoctorAnswer:
        return await (checks.preflight if preflight else checks.doctor)(self.settings)

    def trend(self) -> TrendAnswer:
        raise CommandFailed("trend: a worker keeps it; it cannot be made from here")

    def shadow(self) -> ShadowReport:
        raise CommandFailed(
            "shadow report: only a worker with --beside-karpenter has watched; it cannot be made from here"
        )


async def answered(source: LocalSource, route: str, asked: Asked) -> Answered:
    return await question(route)(source, asked)
