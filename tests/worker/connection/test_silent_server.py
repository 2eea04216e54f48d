"""A server that takes the connection and says nothing, as one behind a proxy whose other end is gone."""

import asyncio

import pytest
from temporalio.envconfig import ClientConnectConfig

from dovetail.connection import temporal
from dovetail.connection.configuration import TemporalAway
from dovetail.settings.settings import Settings


async def test_a_server_that_says_nothing_is_one_line_that_says_how_long_was_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(temporal, "CONNECT_SECONDS", 0.2)
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        with pytest.raises(TemporalAway) as said:
            await temporal.connect_with(ClientConnectConfig(target_host=f"127.0.0.1:{port}"), Settings())
    finally:
        server.close()  # without a wait for the connection, which stays open

    assert str(said.value) == f"no Temporal server at 127.0.0.1:{port}: no answer within 10 s (set TEMPORAL_ADDRESS)"
