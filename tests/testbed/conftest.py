"""One AWS server for all tests of it; each test begins with the world as it was at the start."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.cloud.server import CloudServer
from tests.testbed.aws_clients import Aws


@pytest.fixture(scope="session")
def running_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    server = CloudServer.start(Path(tmp_path_factory.mktemp("cloud")))
    yield server
    server.stop()


@pytest.fixture
def aws(running_cloud: CloudServer) -> Aws:
    running_cloud.control("POST", "reset")
    return Aws(running_cloud)
