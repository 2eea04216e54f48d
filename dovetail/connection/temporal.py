"""The connection to Temporal.

Address, namespace and TLS come from Temporal's own environment variables and configuration file, which the `temporal`
command reads too; codec, key file and our name come from our settings.
"""

import asyncio
from typing import Final

from temporalio.client import Client
from temporalio.envconfig import ClientConnectConfig
from temporalio.service import RPCError

from dovetail.connection.codec import converter_of
from dovetail.connection.configuration import TemporalAway, TemporalRefuses, read_options
from dovetail.connection.identity import own_identity
from dovetail.connection.refusals import meaning_of
from dovetail.settings.settings import Settings

# A handshake of TLS beside other work can take seconds; an address where nothing listens refuses at once.
CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 5.0  # for which a command waits for a worker's answer over a connection that is there

_NO_ANSWER: Final = f"no answer within {CONNECT_SECONDS:.0f} s"


async def connect(settings: Settings) -> Client:
    """A client, or one clear line."""
    return await connect_with(read_options(settings.api_key_file), settings)


async def connect_with(options: ClientConnectConfig, settings: Settings) -> Client:
    """A client of these options, or one clear line."""
    converter, identity = converter_of(settings), own_identity(settings.pod)
    address = options["target_host"]
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await Client.connect(**options, data_converter=converter, identity=identity)
    except (RuntimeError, RPCError, TimeoutError, OSError, ValueError) as error:
        text = str(error)
        meaning = meaning_of(text, options)
        if meaning:
            raise TemporalRefuses(f"Temporal at {address}: {meaning}") from None
        why = text.partition(": tonic::")[0] or _NO_ANSWER  # the rest is the transport's internals
        raise TemporalAway(f"no Temporal server at {address}: {why} (set TEMPORAL_ADDRESS)") from None
