"""What must hold before a worker starts, and what it says where it does not (AWS-159)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from botocore.utils import ContainerMetadataFetcher

from dovetail.adapters.aws.account import Account
from dovetail.adapters.aws.adapter import AwsAdapter, Surroundings
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.meters import called
from dovetail.adapters.aws.settings import ClusterFacts
from dovetail.cli.demo.temporal_server import free_ports
from dovetail.ports.failures import Failure, Misconfigured, Unauthenticated, Unreachable
from testbed.cloud.server import CloudServer
from tests.adapters.aws.conftest import Stage
from worlds.aws import CLUSTER, ClassStore, open_adapter, settings_for


@asynccontextmanager
async def opened(
    server: CloudServer, calls: Calls, facts: ClusterFacts = CLUSTER, **change: Any
) -> AsyncIterator[AwsAdapter]:
    adapter = open_adapter(server, ClassStore(), calls, cluster=facts, **change)
    yield adapter
    await adapter.close()


async def test_what_is_not_given_is_asked_for_before_the_worker_starts(stage: Stage, aws_calls: Calls) -> None:
    """Endpoint and version of EKS, types and offerings of EC2; not with the first class or the first launch."""
    async with opened(stage.server, aws_calls, ClusterFacts()) as adapter:
        await adapter.check()

        for operation in ("DescribeCluster", "DescribeInstanceTypeOfferings"):
            assert stage.calls(operation), operation
        assert await adapter.cluster.version()
        assert (await adapter.cluster.for_launch(with_cidr=False)).endpoint
        assert len(stage.calls("DescribeCluster")) == 1


async def test_what_the_start_has_read_is_not_read_again_at_once(stage: Stage) -> None:
    await stage.adapter.check()
    asked = len(stage.calls("DescribeInstanceTypeOfferings"))

    stage.adapter.start()
    await asyncio.sleep(0.3)

    assert len(stage.calls("DescribeInstanceTypeOfferings")) == asked == 1


async def test_a_worker_that_heeds_zonal_shifts_starts_under_the_shipped_policies(
    stage: Stage, aws_calls: Calls
) -> None:
    """AWS-163: a cluster without a shift, and one that was never registered for any."""
    async with opened(stage.server, aws_calls, enable_zonal_shift=True) as adapter:
        with pytest.raises(Misconfigured, match="ENABLE_ZONAL_SHIFT"):
            await adapter.check()
        stage.patch(zonalShift=[{"zoneId": "usw2-az1"}])
        await adapter.check()

        assert adapter.offerings.shifted_ids.keys() == {"usw2-az1"}


@pytest.mark.parametrize(
    ("operation", "subject"),
    [
        ("DescribeInstanceTypes", "ec2:DescribeInstanceTypes"),
        ("DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypeOfferings"),
        ("DescribeCluster", "eks:DescribeCluster"),
    ],
)
async def test_a_worker_that_may_not_ask_does_not_start(
    stage: Stage, aws_calls: Calls, operation: str, subject: str
) -> None:
    stage.patch(fail=[{"op": operation, "code": "AccessDeniedException", "status": 403, "times": 9}])
    async with opened(stage.server, aws_calls, ClusterFacts()) as adapter:
        with pytest.raises(Failure, match=subject):
            await adapter.check()


async def test_a_region_without_types_and_a_cluster_without_an_endpoint_are_named(
    stage: Stage, aws_calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any, **__: Any) -> Any:
        return {}

    async with opened(stage.server, aws_calls) as adapter:
        types = adapter.offerings.sources.region_types
        monkeypatch.setattr(types, "_offered", nothing)
        with pytest.raises(Misconfigured, match=r"AWS_REGION.*offers no instance types in any zone of 'us-west-2'"):
            await adapter.check()
    async with opened(stage.server, aws_calls) as adapter:
        monkeypatch.setattr(adapter.offerings.sources.region_types, "_types", nothing)
        with pytest.raises(Misconfigured, match=r"AWS_REGION.*knows no instance types in 'us-west-2'"):
            await adapter.check()
    for facts, subject in (
        (ClusterFacts(version="1.36"), "CLUSTER_ENDPOINT"),
        (ClusterFacts(endpoint="https://cluster.example"), "version of dovetail"),
    ):
        async with opened(stage.server, aws_calls, facts) as adapter:
            monkeypatch.setattr(adapter.cluster, "_described", nothing)
            with pytest.raises(Misconfigured, match=subject):
                await adapter.check()


async def test_a_worker_with_the_credentials_of_another_account_does_not_start(stage: Stage, aws_calls: Calls) -> None:
    """There every instance would seem to be gone."""
    config_maps = ClassStore()
    account = Account(config_maps, "dovetail-shortages")
    await account.check(aws_calls)
    await account.check(aws_calls)  # the same again
    seen = config_maps.objects["dovetail-shortages"]["metadata"]["annotations"]["dovetail.sh/aws-account"]
    await config_maps.merge("dovetail-shortages", {"metadata": {"annotations": {"dovetail.sh/aws-account": "42"}}})
    given = Surroundings(node_classes=dict, cluster=CLUSTER, calls=aws_calls, account=account)
    adapter = AwsAdapter.open(settings_for(stage.server), given)

    with pytest.raises(Misconfigured, match=f"AWS credentials: they are of account {seen}, but .* in account 42"):
        await adapter.check()
    await adapter.close()


async def test_an_account_that_cannot_be_asked_for_stops_nobody(stage: Stage, aws_calls: Calls) -> None:
    """A network without a way to STS is not a wrong account."""
    config_maps = ClassStore()
    stage.patch(fail=[{"op": "GetCallerIdentity", "code": "AccessDenied", "status": 403}])

    await Account(config_maps, "dovetail-shortages").check(aws_calls)

    assert config_maps.objects == {}


@asynccontextmanager
async def pod_identity_agent(port: int, status: int) -> AsyncIterator[None]:
    """As the one of EKS answers, at an address of this machine's loop."""
    given = {"AccessKeyId": "testing", "SecretAccessKey": "testing", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(given, status=status)

    app = web.Application()
    app.router.add_get("/v1/credentials", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield
    await runner.cleanup()


async def test_who_gives_out_credentials_may_come_after_the_worker_on_a_node_that_is_new(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EKS Pod Identity's agent is a pod of its own: until it listens nothing is known of our credentials, and a start
    waits as it does for EC2. What the agent itself refuses is a person's."""
    [port] = free_ports(1)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{port}/v1/credentials")
    monkeypatch.setattr(ContainerMetadataFetcher, "SLEEP_TIME", 0)
    calls = Calls(settings_for(stage.server), agent="dovetail", observe=called, read_only=False)
    async with opened(stage.server, calls) as adapter:
        with pytest.raises(Unreachable, match="Error when retrieving credentials from container-role: "):
            await adapter.check()
        async with pod_identity_agent(port, 404):
            with pytest.raises(Unauthenticated, match=r"no valid AWS credentials .*non 200 response 404"):
                await adapter.check()
        async with pod_identity_agent(port, 200):
            await adapter.check()
    await calls.close()
