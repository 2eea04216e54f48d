"""`dovetail set-up-temporal`: creates the namespace and its search attributes if they are missing.

For your own server, before the first worker starts; the chart runs it as a Job. It may be run again at any time.
Namespaces of Temporal Cloud are created there.
"""

import asyncio
import time
from typing import Final

from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from dovetail.answers.failures import CommandFailed
from dovetail.cli.output import say
from dovetail.connection.search_attributes import missing_search_attributes, register_search_attributes
from dovetail.model.values.durations import DAY
from dovetail.model.values.setting_texts import seconds_of

# A server's parts learn of a new namespace one after another.
KNOWN_SECONDS: Final = 60.0


async def set_up_temporal(client: Client, retention: str) -> None:
    """Create what is missing; CommandFailed says what may not be created."""
    made = await _namespace(client, _seconds(retention))
    missing = await _search_attributes(client)
    what = f"made, ended workflows are kept for {retention}" if made else "there already"
    say(f"namespace {client.namespace}: {what}")
    say(f"search attributes: {', '.join(missing)} added" if missing else "search attributes: there already")


def _seconds(retention: str) -> int:
    if retention.endswith("d") and retention[:-1].isdigit():
        return int(retention[:-1]) * DAY
    try:
        return int(seconds_of(retention))
    except ValueError:
        raise CommandFailed(f"--retention: not a time such as 30d or 72h: {retention!r}") from None


async def _namespace(client: Client, retention: int) -> bool:
    service = client.workflow_service
    try:
        await service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
        return False
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise CommandFailed(f"namespace {client.namespace}: {error.message}") from None
    request = RegisterNamespaceRequest(
        namespace=client.namespace,
        description="Dovetail: node lifecycle of Kubernetes clusters",
        workflow_execution_retention_period=Duration(seconds=retention),
    )
    try:
        await service.register_namespace(request)
    except RPCError as refused:
        if refused.status != RPCStatusCode.ALREADY_EXISTS:
            raise CommandFailed(f"namespace {client.namespace}: cannot be made: {refused.message}") from None
    return True


async def _search_attributes(client: Client) -> list[str]:
    deadline = time.monotonic() + KNOWN_SECONDS
    while True:
        try:
            missing = await missing_search_attributes(client)
            break
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND or time.monotonic() > deadline:
                raise CommandFailed(f"namespace {client.namespace}: {error.message}") from None
        await asyncio.sleep(1)
    await register_search_attributes(client)
    return missing
