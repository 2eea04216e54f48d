"""The client of this process, replaced while it runs when its configuration has changed.

Certificates and keys are files that are rewritten long before the old ones expire. They are read again every ten
seconds; if they differ, a new connection is made, and once it is up it replaces the old one in every worker. If it
cannot be made (a key that does not belong to its certificate yet), that is tried again, and the old one stays in use.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from temporalio.client import Client
from temporalio.envconfig import ClientConnectConfig

from dovetail.connection.configuration import TemporalUnusable, read_options
from dovetail.connection.temporal import connect_with
from dovetail.settings.settings import Settings

LOOK_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


def _on(client: Client, connected: Client) -> Client:
    """The client, with its interceptors, on the other one's connection."""
    config = client.config()
    config["service_client"] = connected.service_client
    config["data_converter"] = connected.data_converter
    return Client(**config)


class Link:
    def __init__(self, client: Client, settings: Settings) -> None:
        self.client = client
        self._settings = settings
        self._followers: list[Callable[[Client], None]] = []
        self._trouble = ""

    def current(self) -> Client:
        return self.client

    def add_follower(self, follower: Callable[[Client], None]) -> None:
        """Give each new client to this one too."""
        self._followers.append(follower)

    async def keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> bool:
        """Read the configuration again, and exchange what has changed; whether anything has."""
        try:
            options = await asyncio.to_thread(read_options, self._settings.api_key_file)
            return await self._follow(options)
        except TemporalUnusable as error:
            if str(error) != self._trouble:
                _log.warning("the connection to Temporal could not be renewed and stays in use: %s", error)
            self._trouble = str(error)
            return False

    async def _follow(self, options: ClientConnectConfig) -> bool:
        config = self.client.service_client.config
        key = options.get("api_key")
        if (config.target_host, config.tls) != (options["target_host"], options.get("tls")):
            self.client = _on(self.client, await connect_with(options, self._settings))
            for follower in self._followers:
                follower(self.client)
            _log.info("using a new connection to Temporal: its address, certificate or authority has changed")
        elif config.api_key != key:
            self.client.api_key = key
            _log.info("using a new API key for Temporal")
        else:
            return False
        self._trouble = ""
        return True
