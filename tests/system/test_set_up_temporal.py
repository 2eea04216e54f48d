"""`dovetail set-up-temporal` makes a namespace in which a worker can begin, and may be run again."""

import os
import sys

import pytest
from temporalio.client import Client

from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.connection.search_attributes import missing_search_attributes
from worlds.loaded.processes import run_command

pytestmark = pytest.mark.temporal

NAMESPACE = "made-for-dovetail"


async def typed(server: TemporalServer, *arguments: str) -> tuple[int, str, str]:
    environment = {**os.environ, "TEMPORAL_ADDRESS": server.address, "TEMPORAL_NAMESPACE": NAMESPACE}
    command = [sys.executable, "-m", "dovetail.cli.main", "set-up-temporal", *arguments]
    code, out, err = await run_command(command, environment)
    return code, out.decode(), err.decode()


async def test_what_is_missing_is_made_once(temporal_server: TemporalServer) -> None:
    (code, first, said), (again, second, more) = await typed(temporal_server), await typed(temporal_server)

    assert (code, again) == (0, 0), said + more
    assert "made, ended workflows are kept for 30d" in first and "DovetailNodePool" in first
    assert second.count("there already") == 2
    client = await Client.connect(temporal_server.address, namespace=NAMESPACE)
    assert await missing_search_attributes(client) == []


async def test_a_retention_that_cannot_be_read_is_named(temporal_server: TemporalServer) -> None:
    code, _, said = await typed(temporal_server, "--retention", "for ever")

    assert code == 1
    assert "--retention: not a time such as 30d or 72h: 'for ever'" in said
