"""One AWS server for these tests; each begins with the world as at the start, a class and an adapter of its own."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.adapters.aws.adapter import AwsAdapter, UpkeepCluster
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.meters import called
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow, Ec2NodeClassUpkeep
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.values.json import Json
from dovetail.ports.cloud import Instance, Prepared
from testbed.cloud.server import CloudServer
from worlds.aws import ClassStore, Notices, open_adapter, settings_for


@dataclass(slots=True)
class Stage:
    """A cloud, its adapter and the cluster beside it."""

    server: CloudServer
    classes: ClassStore
    adapter: AwsAdapter
    since: int
    notices: Notices = field(default_factory=Notices)
    claims: list[NodeClaim] = field(default_factory=list)
    pools: list[NodePool] = field(default_factory=list)
    _upkeep: Ec2NodeClassUpkeep | None = None

    @property
    def upkeep(self) -> Ec2NodeClassUpkeep:
        if self._upkeep is None:
            now = ClusterNow(claims=lambda: tuple(self.claims), pools=lambda: tuple(self.pools))
            kept = UpkeepCluster(objects=self.classes, claims=None, notices=self.notices, nodes=None, now=now)
            self._upkeep = self.adapter.node_class_upkeep(kept)
        return self._upkeep

    async def with_class(self, **change: Any) -> None:
        """A class with this spec, after one round of upkeep."""
        self.classes.apply(**change)
        await self.upkeep.keep()

    async def launch(self, claim: NodeClaim, token: str = "") -> Any:
        """prepare and launch; the launch's answer, or what prepare said instead."""
        prepared = await self.adapter.cloud.prepare(claim)
        if not isinstance(prepared, Prepared):
            return prepared
        return await self.adapter.cloud.launch(claim, prepared.request, token or claim.uid)

    async def launched(self, claim: NodeClaim) -> Instance:
        answer = await self.launch(claim)
        assert isinstance(answer, Instance), answer
        return answer

    def calls(self, operation: str) -> list[Json]:
        return self.server.calls(operation, self.since)

    def patch(self, **change: Any) -> None:
        self.server.control("PATCH", "world", change)


@pytest.fixture(scope="session")
def aws_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    server = CloudServer.start(Path(tmp_path_factory.mktemp("aws")), options=("--enforce-policies",))
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def no_pause_between_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's attempts follow one another at once: how long it waits between them is its own affair."""
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _seconds: None))


@pytest.fixture(scope="session")
async def aws_calls(aws_server: CloudServer) -> AsyncIterator[Calls]:
    """The clients of all tests: making them takes a second."""
    calls = Calls(settings_for(aws_server), agent="dovetail", observe=called, read_only=False)
    yield calls
    await calls.close()


@pytest.fixture
async def stage(aws_server: CloudServer, aws_calls: Calls) -> AsyncIterator[Stage]:
    aws_server.control("POST", "reset")
    classes = ClassStore()
    adapter = open_adapter(aws_server, classes, aws_calls)
    since = aws_server.control("GET", "ledger/last")
    yield Stage(server=aws_server, classes=classes, adapter=adapter, since=since)
    await adapter.close()
