"""What is known of the cluster: its version is read again, because an upgrade changes what an alias means."""

from typing import Any, cast

from dovetail.adapters.aws.adapter import AwsAdapter, Surroundings
from dovetail.adapters.aws.cluster import Cluster, ServerNow
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.ports.failures import Unreachable
from tests.adapters.aws.conftest import Stage
from worlds.aws import CLUSTER, a_claim_of_ec2, settings_for


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
        return Cluster(
            calls, AwsSettings(cluster="c"), ClusterFacts(version="1.35"), ServerNow(self.answer), lambda: self.now
        )


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
    cluster = Cluster(calls, AwsSettings(cluster="c"), ClusterFacts(), ServerNow(), lambda: now[0])
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
    cluster = Cluster(calls, AwsSettings(cluster="c"), ClusterFacts(version="1.35"), ServerNow(), lambda: now[0])
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


async def test_new_nodes_know_the_api_server_by_the_certificates_of_this_moment(stage: Stage) -> None:
    """AWS-96: with those of the worker's start they would not join. The class's hash keeps what was given (AWS-116): a
    renewal replaces no node."""
    authority = CLUSTER.ca_bundle
    server = ServerNow(authority=lambda: authority)
    given = Surroundings(node_classes=stage.classes.raw, cluster=CLUSTER, calls=stage.adapter.calls, server=server)
    stage.adapter = AwsAdapter.open(settings_for(stage.server), given)
    await stage.with_class()
    before = await stage.launched(a_claim_of_ec2())
    authority = "cmVuZXdlZA=="

    after = await stage.launched(a_claim_of_ec2(name="later"))

    made = stage.calls("CreateLaunchTemplate")[-1]["input"]["LaunchTemplateData"]["UserData"]
    assert f"certificateAuthority: {authority}" in made and CLUSTER.ca_bundle not in made
    assert before.annotations == after.annotations
