"""`dovetail doctor`: is everything there that Dovetail needs?

Asked when something does not move, and after an installation. Every check is made although others fail, and each that
does not hold says what to do. A check that cannot be made because of another says so and is not counted as failed.
"""

import asyncio
from dataclasses import dataclass

from temporalio.client import Client

from dovetail.cli.doctor.cluster import cluster_checks
from dovetail.cli.doctor.findings import Check, failed, fine, skipped
from dovetail.cli.doctor.temporal import temporal_checks
from dovetail.ports.failures import Failure
from dovetail.worker.settings import Settings, SettingsError
from dovetail.worker.temporal import TemporalUnusable, connect
from dovetail.worker.wiring import World, open_world

READY_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorAnswer:
    """All checks, in the order in which a person would look."""

    cluster: str
    checks: tuple[Check, ...]


async def doctor(settings: Settings) -> DoctorAnswer:
    """Make every check."""
    reads_queue: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    temporal, cluster = await asyncio.gather(_temporal(settings, reads_queue), _cluster(settings, reads_queue))
    return DoctorAnswer(cluster=settings.cluster, checks=(*temporal, *cluster))


async def _temporal(settings: Settings, reads_queue: asyncio.Future[bool]) -> tuple[Check, ...]:
    name = "Temporal server"
    try:
        client = await connect()
    except TemporalUnusable as error:
        why = failed(name, str(error), "start it, or set TEMPORAL_ADDRESS; nothing begins or goes on until it answers")
        rest = "search attributes, retention, Scheduler, Caretaker, Interruptions, workers"
        return why, skipped(rest, "the Temporal server does not answer")
    return fine(name, _address(client)), *await temporal_checks(client, settings.cluster, reads_queue=await reads_queue)


def _address(client: Client) -> str:
    return f"{client.service_client.config.target_host}, namespace {client.namespace}"


async def _cluster(settings: Settings, reads_queue: asyncio.Future[bool]) -> tuple[Check, ...]:
    name = "cluster"
    try:
        world = await open_world(settings)
    except (Failure, SettingsError) as error:
        reads_queue.set_result(False)
        rest = "view, clock, rights, custom resources, unreadable objects, cloud"
        return failed(name, str(error), "see --kubeconfig and KUBECONFIG"), skipped(rest, "there is no cluster to ask")
    reads_queue.set_result(world.interruptions is not None)
    try:
        return await cluster_checks(world, settings, _ready(world))
    finally:
        await world.close()


async def _ready(world: World) -> None:
    async with asyncio.timeout(READY_SECONDS):
        await world.ready()
