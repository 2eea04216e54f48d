"""What is known of the cluster: its version is read again, because an upgrade changes what an alias means."""

from typing import Any, cast

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


class Eks:
    """EKS as the calls reach it, upgraded or away."""

    def __init__(self) -> None:
        self.version, self.asked = "1.35", 0

    async def call(self, service: str, operation: str, **_: Any) -> Any:
        assert (service, operation) == ("eks", "DescribeCluster")
        self.asked += 1
        if not self.version:
            raise Unreachable("eks:DescribeCluster", "away")
        return {"cluster": {"version": self.version, "endpoint": "https://eks.example"}}


async def test_with_eks_as_the_source_the_version_is_asked_for_again_too() -> None:
    """AWS-159: with EKS_CONTROL_PLANE an upgrade changes what `@latest` means, without a restart."""
    eks, now = Eks(), [1000.0]
    calls: Any = eks
    cluster = Cluster(calls, AwsSettings(cluster="c"), ClusterFacts(), None, lambda: now[0])
    versions = [await cluster.version()]
    eks.version = "1.36"
    for seconds in (299.0, 1.0, 10.0):
        now[0] += seconds
        versions.append(await cluster.version())
    eks.version = ""
    now[0] += 300.0
    versions.append(await cluster.version())

    assert (versions, eks.asked) == (["1.35", "1.35", "1.36", "1.36", "1.36"], 3)


async def test_a_version_that_was_given_and_has_no_source_is_not_asked_of_eks() -> None:
    now, calls = [1000.0], cast(Any, None)
    cluster = Cluster(calls, AwsSettings(cluster="c"), ClusterFacts(version="1.35"), None, lambda: now[0])
    now[0] += 1000.0

    assert await cluster.version() == "1.35"


async def test_a_new_version_is_no_drift_of_the_class() -> None:
    """AWS-116: what the hash covers is what was given at the start."""
    server = Server()
    cluster = server.cluster()
    before = cluster.known
    server.now += 300.0

    await cluster.version()

    assert cluster.known == before
