"""The connection to Temporal, and what must be registered there before a workflow runs.

Address, namespace and TLS come from Temporal's own environment variables and configuration file, which the `temporal`
command reads too. A missing search attribute would make the first workflow hang without a word, so they are added where
that is allowed, and an error names them where it is not.
"""

import asyncio

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode

from dovetail.workflows.attributes import ALL
from dovetail.workflows.converter import DATA_CONVERTER

CONNECT_SECONDS = 10.0


class TemporalUnusable(Exception):
    """The Temporal server cannot be used; the message says why and what to do."""


async def connect() -> Client:
    """A client, or one clear line."""
    options = ClientConfig.load_client_connect_config()
    address = options.get("target_host") or "localhost:7233"
    options["target_host"] = address
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await Client.connect(**options, data_converter=DATA_CONVERTER)
    except (RuntimeError, RPCError, TimeoutError, OSError) as error:
        why = str(error).partition(": tonic::")[0] or type(error).__name__  # the rest is the transport's internals
        raise TemporalUnusable(f"no Temporal server at {address}: {why} (set TEMPORAL_ADDRESS)") from None


async def register_search_attributes(client: Client) -> None:
    """Add the attributes that are missing; TemporalUnusable names those that cannot be added."""
    missing = await missing_search_attributes(client)
    if not missing:
        return
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=client.namespace,
                search_attributes=dict.fromkeys(missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD),
            )
        )
    except RPCError as error:
        if error.status != RPCStatusCode.ALREADY_EXISTS:
            commands = "; ".join(
                f"temporal operator search-attribute create --name {name} --type Keyword" for name in missing
            )
            raise TemporalUnusable(f"search attributes are missing ({error.message}); run: {commands}") from None


async def missing_search_attributes(client: Client) -> list[str]:
    """The attributes that the namespace does not have."""
    found = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    return sorted(key.name for key in ALL if key.name not in found.custom_attributes)
