"""What is known of the cluster: its version is read again, because an upgrade changes what an alias means."""

from typing import Any

from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.ports.failures import Unreachable


class Server:
    """An API server that is upgraded, or away."""

    def __init__(self) -> None:
        self.now, self.version, self.asked = 1000.0, "1.36", 0

    async def answer(self) -> str:
        self.asked += 1
        if not self.version:
            raise Unreachable("version", "away")
        return self.version

    def cluster(self) -> Cluster:
        calls: Any = None  # everything is given, so that nothing is asked of EKS
        return Cluster(calls, AwsSettings(cluster="c"), ClusterFacts(version="1.35"), self.answer, lambda: self.now)


async def test_the_version_is_asked_for_again_every_five_minutes_and_no_sooner() -> None:
    """AWS-159."""
    server = Server()
    cluster = server.cluster()
    versions = []
    for seconds in (0.0, 299.0, 1.0, 10.0):
        server.now += seconds
        versions.append(await cluster.version())

    assert (versions, server.asked) == (["1.35", "1.35", "1.36", "1.36"], 1)


async def test_a_server_that_is_away_changes_nothing() -> None:
    server = Server()
    cluster = server.cluster()
    server.version = ""
    server.now += 300.0

    assert await cluster.version() == "1.35"


async def test_a_new_version_is_no_drift_of_the_class() -> None:
    """AWS-116: what the hash covers is what was given at the start."""
    server = Server()
    cluster = server.cluster()
    before = cluster.known
    server.now += 300.0

    await cluster.version()

    assert cluster.known == before
