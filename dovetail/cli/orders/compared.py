"""Whether the workflows of CLUSTER_NAME are those of the cluster that an order is for."""

import asyncio
import contextlib

from temporalio.service import RPCError

from dovetail.connection.configuration import TemporalUnusable
from dovetail.connection.owner import check_owner
from dovetail.connection.temporal import ANSWER_SECONDS, connect
from dovetail.settings.settings import Settings


async def compare(settings: Settings, uid: str) -> None:
    """Raise OtherCluster if Temporal says in time that they are another's."""
    with contextlib.suppress(TemporalUnusable, TimeoutError, RPCError):
        client = await connect(settings)
        async with asyncio.timeout(ANSWER_SECONDS):
            await check_owner(client, settings.cluster, uid)
