"""`dovetail pause` and `dovetail resume`: whether the Scheduler begins anything new.

A signal, so that it counts also while no worker runs. What is under way goes on.
"""

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from dovetail.cli.output import CommandFailed, say
from dovetail.messages.workflow_ids import scheduler_id


async def switch(client: Client, cluster: str, way: str) -> None:
    """Send the signal."""
    try:
        await client.get_workflow_handle(scheduler_id(cluster)).signal(way)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise CommandFailed(f"no Scheduler runs for cluster {cluster}; start a worker first") from None
        raise
    say(f"{cluster}: {way}d" if way.endswith("e") else f"{cluster}: {way}")
