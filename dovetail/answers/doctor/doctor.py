"""`dovetail doctor`: is everything there that Dovetail needs?

Used when something does not move, and after an installation. Every check is made even if others fail, and each that
fails says what to do. A check that another one prevents says so and does not count as failed.
"""

import asyncio
from dataclasses import dataclass

from temporalio.client import Client

from dovetail.answers.doctor.cluster import cluster_checks
from dovetail.answers.doctor.findings import Check, failed, rest_skipped
from dovetail.answers.doctor.identity import NO_CLUSTER, ClusterSeen
from dovetail.answers.doctor.preflight import preflight_checks
from dovetail.answers.doctor.temporal import link_check, namespace_checks, temporal_checks
from dovetail.connection.configuration import TemporalUnusable
from dovetail.connection.presence import PROBE_SECONDS, silence_of
from dovetail.connection.temporal import connect
from dovetail.ports.failures import Failure
from dovetail.settings.settings import Settings, SettingsError
from dovetail.wiring.world import World, open_world

READY_SECONDS = 20.0
NO_TEMPORAL = "the Temporal server does not answer"
OF_TEMPORAL = "search attributes, payloads, retention, identity, Scheduler, Caretaker, Interruptions, workers, planning"
AWAY_ADVICE = "nothing begins or goes on until it answers: docs/temporal-outages.md"

Seen = asyncio.Future[ClusterSeen]  # set by one half of the checks, for the other


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorAnswer:
    """All checks, in the order in which a person would look at them."""

    cluster: str
    checks: tuple[Check, ...]


async def doctor(settings: Settings) -> DoctorAnswer:
    seen: Seen = asyncio.get_running_loop().create_future()
    temporal, cluster = await asyncio.gather(_temporal(settings, seen), _cluster(settings, seen))
    return DoctorAnswer(cluster=settings.cluster, checks=(*temporal, *cluster))


async def preflight(settings: Settings) -> DoctorAnswer:
    """What can be checked before an installation, when nothing of it runs yet."""
    seen: Seen = asyncio.get_running_loop().create_future()
    temporal, cluster = await asyncio.gather(_temporal_before(settings, seen), _cluster_before(settings, seen))
    return DoctorAnswer(cluster=settings.cluster, checks=(*temporal, *cluster))


async def _temporal_before(settings: Settings, seen: Seen) -> tuple[Check, ...]:
    try:
        client = await connect(settings)
    except TemporalUnusable as error:
        why = failed("Temporal server", str(error), "start it, or set TEMPORAL_ADDRESS; without it no worker works")
        return why, rest_skipped("Temporal", NO_TEMPORAL, "search attributes, retention, identity")
    return link_check(client), *await namespace_checks(client, settings.cluster, await seen)


async def _cluster_before(settings: Settings, seen: Seen) -> tuple[Check, ...]:
    try:
        world = await open_world(settings)
    except (Failure, SettingsError) as error:
        seen.set_result(NO_CLUSTER)
        advice = "set right what it names: the kubeconfig, the credentials, the region, the cluster's name"
        rest = "clock, alone, custom resources, rights in the cloud"
        return failed("cluster and cloud", str(error), advice), rest_skipped(
            "the cluster", "the cluster or its cloud cannot be asked", rest
        )
    seen.set_result(ClusterSeen(cluster_uid=world.cluster_uid, reads_queue=world.interruptions is not None))
    try:
        return await preflight_checks(world)
    finally:
        await world.close()


async def doctor_of_worker(settings: Settings, world: World, client: Client | None) -> DoctorAnswer:
    """The same checks, made by a worker with its own view and connection."""
    seen = ClusterSeen(cluster_uid=world.cluster_uid, reads_queue=world.interruptions is not None)
    cluster = cluster_checks(world, settings, _ready(world))
    temporal, found = await asyncio.gather(_temporal_of_worker(client, settings.cluster, seen), cluster)
    return DoctorAnswer(cluster=settings.cluster, checks=(*temporal, *found))


async def _temporal_of_worker(client: Client | None, cluster: str, seen: ClusterSeen) -> tuple[Check, ...]:
    """Check once whether Temporal answers: if not, that is one fault, not one for each check."""
    why = await silence_of(client, cluster) if client is not None else "the worker is not connected"
    if client is None or why:
        return failed("Temporal server", why, AWAY_ADVICE), rest_skipped("Temporal", NO_TEMPORAL, OF_TEMPORAL)
    return link_check(client), *await temporal_checks(client, cluster, seen)


async def _temporal(settings: Settings, seen: Seen) -> tuple[Check, ...]:
    name = "Temporal server"
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            client = await connect(settings)
    except TimeoutError:
        why = failed(name, f"no answer within {PROBE_SECONDS:.0f} s", AWAY_ADVICE)
        return why, rest_skipped("Temporal", NO_TEMPORAL, OF_TEMPORAL)
    except TemporalUnusable as error:
        why = failed(name, str(error), "start it, or set TEMPORAL_ADDRESS; nothing begins or goes on until it answers")
        return why, rest_skipped("Temporal", NO_TEMPORAL, OF_TEMPORAL)
    return link_check(client), *await temporal_checks(client, settings.cluster, await seen)


async def _cluster(settings: Settings, seen: Seen) -> tuple[Check, ...]:
    name = "cluster"
    try:
        acting = settings.model_copy(update={"beside_karpenter": False})  # what a worker that acts would find
        world = await open_world(acting)
    except (Failure, SettingsError) as error:
        seen.set_result(NO_CLUSTER)
        rest = "view, clock, rights, custom resources, unreadable objects, cloud"
        why = failed(name, str(error), "see --kubeconfig and KUBECONFIG")
        return why, rest_skipped("the cluster", "there is no cluster to ask", rest)
    seen.set_result(ClusterSeen(cluster_uid=world.cluster_uid, reads_queue=world.interruptions is not None))
    try:
        return await cluster_checks(world, settings, _ready(world))
    finally:
        await world.close()


async def _ready(world: World) -> None:
    async with asyncio.timeout(READY_SECONDS):
        await world.ready()
