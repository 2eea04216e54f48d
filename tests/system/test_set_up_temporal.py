"""`dovetail set-up-temporal` makes a namespace in which a worker can begin, and may be run again."""

import os
import subprocess
import sys

import pytest
from temporalio.client import Client

from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.connection.search_attributes import missing_search_attributes

pytestmark = pytest.mark.temporal

NAMESPACE = "made-for-dovetail"


def typed(server: TemporalServer, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "TEMPORAL_ADDRESS": server.address, "TEMPORAL_NAMESPACE": NAMESPACE}
    command = [sys.executable, "-m", "dovetail.cli.main", "set-up-temporal", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


async def test_what_is_missing_is_made_once(temporal_server: TemporalServer) -> None:
    first, second = typed(temporal_server), typed(temporal_server)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "made, ended workflows are kept for 30d" in first.stdout and "DovetailNodePool" in first.stdout
    assert second.stdout.count("there already") == 2
    client = await Client.connect(temporal_server.address, namespace=NAMESPACE)
    assert await missing_search_attributes(client) == []


def test_a_retention_that_cannot_be_read_is_named(temporal_server: TemporalServer) -> None:
    done = typed(temporal_server, "--retention", "for ever")

    assert done.returncode == 1
    assert "--retention: not a time such as 30d or 72h: 'for ever'" in done.stderr
