"""The versions that work together (workers, Kubernetes, Temporal), and the number of workers."""

import asyncio
from dataclasses import dataclass
from typing import Final

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.connection.pollers import TYPE_ACTIVITY, pollers_of
from dovetail.messages.workflow_ids import task_queue
from dovetail.telemetry.log.start import product_version

SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsAnswer:
    """What each reports; empty if it did not answer."""

    worker: str  # the one that answers
    workers: tuple[str, ...]  # who polls
    kubernetes: str
    temporal: str


async def versions_of(client: Client | None, cluster: str, kubernetes: str) -> VersionsAnswer:
    """Ask Temporal for its version, and for who polls."""
    temporal, workers = "", tuple[str, ...]()
    if client is not None:
        workers = await _workers(client, cluster)
        try:
            async with asyncio.timeout(SECONDS):
                temporal = (await client.workflow_service.get_system_info(GetSystemInfoRequest())).server_version
        except (RPCError, TimeoutError):
            temporal = ""
    return VersionsAnswer(worker=product_version(), workers=workers, kubernetes=kubernetes, temporal=temporal)


async def worker_count(client: Client, cluster: str) -> int | None:
    """How many poll for steps of control; None if Temporal does not say."""
    return len(await _workers(client, cluster)) or None


async def _workers(client: Client, cluster: str) -> tuple[str, ...]:
    try:
        async with asyncio.timeout(SECONDS):
            return tuple(await pollers_of(client, task_queue(cluster, "control"), TYPE_ACTIVITY))
    except (RPCError, TimeoutError):
        return ()
