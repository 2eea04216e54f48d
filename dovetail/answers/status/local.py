"""The same answers worked out here, with a worker's settings: for a world in a file, or while no worker answers."""

from collections.abc import Callable

from dovetail.answers.look.sources import Look, look_now, opened, state_from
from dovetail.answers.shown.documents import Document, document
from dovetail.answers.status.nodes import nodes_of
from dovetail.answers.status.status import status_of
from dovetail.connection.configuration import link_words
from dovetail.connection.temporal import connect
from dovetail.model.watched_kinds import PLACEMENT
from dovetail.settings.settings import Settings


async def local_status(settings: Settings) -> Document:
    """Temporal must be reachable: half of what a person asks for here is known to it alone."""
    return await _answered(settings, "ClusterStatus", status_of)


async def local_nodes(settings: Settings) -> Document:
    """Every node."""
    return await _answered(settings, "NodeList", nodes_of)


async def _answered(settings: Settings, kind: str, make: Callable[[Look], object]) -> Document:
    client = await connect(settings)
    address = client.service_client.config.target_host
    link = f"Temporal at {address}, namespace {client.namespace}: {link_words(client)}"
    async with opened(settings) as world:
        state, note = await state_from(client, settings.cluster, world.cluster_uid)
        look = await look_now(settings, world, state, note, PLACEMENT)
    found = document(kind, settings.cluster, make(look))
    return {**found, "notes": [link, *found.get("notes", ())]}
