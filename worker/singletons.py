"""Keeps the singletons running: the Scheduler, the Caretaker, and the reader of warnings.

Each worker checks them every minute. One that was terminated by hand is started again. The waits of a killed worker are
taken over at once, and what was lost while Temporal was away as soon as it answers; a new version is made known. A
worker that finds singletons of another cluster with the same name must not serve.
"""

import asyncio
import logging
import time
from dataclasses import replace
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy

from dovetail.connection.link import Link
from dovetail.connection.owner import LastRuns, OtherCluster, check_owner, is_running, singletons_of
from dovetail.connection.pollers import AbsentWorkers
from dovetail.connection.presence import TemporalPresence
from dovetail.connection.search_attributes import register_search_attributes
from dovetail.messages.inputs import CaretakerInput
from dovetail.messages.interruptions import InterruptionsInput
from dovetail.messages.states import SchedulerState
from dovetail.messages.workflow_ids import caretaker_id, interruptions_id, scheduler_id
from dovetail.messages.workflow_types import CARETAKER, INTERRUPTIONS, SCHEDULER
from dovetail.model.objects.watched_kinds import CLAIMS
from dovetail.settings.settings import Settings
from dovetail.worker.predecessors import is_gone, look_again, poke_lost, silent_workers, steps_in_hand
from dovetail.worker.starting import first_state, start_singleton
from dovetail.worker.steps import Wiring
from dovetail.worker.versions import deployment_of, poke_for_new_version

LOOK_SECONDS: Final = 60.0

Refused = asyncio.Future[OtherCluster]

_log = logging.getLogger(__name__)


class Singletons:
    """One cluster's singletons, as this worker sees them through its link."""

    def __init__(self, link: Link, wiring: Wiring, presence: TemporalPresence) -> None:
        self._link, self._wiring, self._presence = link, wiring, presence
        self._absent = AbsentWorkers()
        self._rare = wiring.settings.heartbeats == "cloud"  # heartbeats alone would tell after ten minutes only
        self._poked: set[tuple[str, str]] = set()
        self._first, self._returned = True, False
        self.ids = [*singletons_of(wiring.settings.cluster)]

    async def watch(self, refused: Refused) -> None:
        """Check every minute, for as long as they are this cluster's; `refused` gets the error once they are not."""
        while True:
            try:
                await self.look()
            except OtherCluster as error:
                if not refused.done():
                    refused.set_result(error)
                return
            except Exception as error:
                _log.warning("cannot start the Scheduler and the Caretaker now: %s", error)
            self._returned = await self._presence.sleep_or_return(LOOK_SECONDS) or self._returned

    async def look(self) -> None:
        client, settings, uid = self._link.current(), self._wiring.settings, self._wiring.world.cluster_uid
        if self._returned:
            await register_search_attributes(client)  # its database may be another one
        found = await check_owner(client, settings.cluster, uid)
        held = steps_in_hand(found)
        if self._rare:
            silent = silent_workers(held, time.time()) - {client.identity}
            await self._absent.look(client, settings.cluster, silent)
        await poke_lost(client, held, self._is_lost)
        await poke_for_new_version(client, deployment_of(settings), found, self._poked)
        await keep_singletons(client, settings, self._wiring, found)
        if self._first or self._returned:  # another cluster of the name may have started them in this moment
            await check_owner(client, settings.cluster, uid)
        if self._returned:
            await look_again(client, self.ids)
        self._first = self._returned = False

    def _is_lost(self, identity: str) -> bool:
        gone = is_gone(identity, serving=True, pod=self._wiring.settings.pod)
        return gone or (self._rare and self._absent.is_absent(identity))


async def keep_singletons(client: Client, settings: Settings, wiring: Wiring, found: LastRuns) -> None:
    """Start those that do not run, as after somebody has terminated one."""
    cluster, uid = settings.cluster, wiring.world.cluster_uid
    state = first_state(settings, uid, wiring.now())
    if not wiring.world.view.snapshot(CLAIMS).claims:
        state = replace(state, quiet_until=0.0)  # no claims: no nominations can have been lost
    singletons: list[tuple[str, str, SchedulerState | CaretakerInput | InterruptionsInput]] = [
        (SCHEDULER, scheduler_id(cluster), state),
        (CARETAKER, caretaker_id(cluster), CaretakerInput(cluster=cluster, cluster_uid=uid)),
    ]
    if wiring.world.interruptions is not None:
        reading = InterruptionsInput(cluster=cluster, cluster_uid=uid)
        singletons.append((INTERRUPTIONS, interruptions_id(cluster), reading))
    for name, identity, given in singletons:
        if not is_running(found.get(identity)):
            await start_singleton(client, name, identity, given, WorkflowIDConflictPolicy.USE_EXISTING)
