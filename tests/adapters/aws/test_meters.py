"""What the adapter counts, by the names of Karpenter's AWS provider (AWS-139, AWS-166)."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.adapters.aws import meters
from dovetail.ports.cloud import NoCapacity
from dovetail.telemetry.metrics.exposition import counted
from tests.adapters.aws.conftest import Stage
from tests.placement.builders import a_general_pool
from worlds.aws import a_claim_of_ec2, one_of

READER = InMemoryMetricReader()


@pytest.fixture(scope="module", autouse=True)
def installed() -> Iterator[None]:
    """As the worker's metrics endpoint does; instruments made before it are stand-ins that then begin to count."""
    provider = metrics.get_meter_provider()
    if isinstance(provider, MeterProvider):  # another test of this process has installed it
        provider.add_metric_reader(READER)
    else:
        metrics.set_meter_provider(MeterProvider(metric_readers=[READER]))
    yield


def series_of(name: str) -> dict[str, float]:
    """The series of one metric: what stands in its braces, and its value."""
    found = {}
    for line in (*counted(READER.get_metrics_data()), *meters.TYPE_LINES.lines()):
        head, _, value = line.rpartition(" ")
        series, _, labels = head.partition("{")
        if series == f"karpenter_{name}":
            found[labels.rstrip("}")] = float(value)
    return found


async def test_types_offerings_and_user_data_are_measured(stage: Stage) -> None:
    """AWS-166."""
    await stage.with_class()

    await stage.adapter.catalogues.catalogue(a_general_pool("p"))

    assert series_of("cloudprovider_instance_type_cpu_cores")['instance_type="m5.large"'] == 2.0
    assert series_of("cloudprovider_instance_type_memory_bytes")['instance_type="m5.large"'] == 7577 * 2**20
    series = 'capacity_type="on-demand",instance_type="m5.large",zone="us-west-2a"'
    assert series_of("cloudprovider_instance_type_offering_available")[series] == 1.0
    assert series_of("cloudprovider_instance_type_offering_price_estimate")[series] == 0.096
    assert 500 < series_of("ec2nodeclasses_userdata_bytes")['nodeclass="default"'] < 16_384
    meters.forget("default")
    assert 'nodeclass="default"' not in series_of("ec2nodeclasses_userdata_bytes")


async def test_each_offering_that_a_launch_could_not_have_is_counted_with_its_reason(stage: Stage) -> None:
    """AWS-89, AWS-166."""
    await stage.with_class()
    before = sum(series_of("cloudprovider_instance_launch_failures_total").values())
    stage.patch(ice=[{"code": "InsufficientInstanceCapacity"}])

    answer = await stage.launch(a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large")))

    assert isinstance(answer, NoCapacity)
    failures = series_of("cloudprovider_instance_launch_failures_total")
    assert sum(failures.values()) - before == len([key for key in failures if "m5" not in key]) == 3
    assert all('reason="InsufficientInstanceCapacity"' in key and 'zone_id="usw2-az' in key for key in failures)


async def test_messages_are_counted_by_kind_when_read_and_again_when_deleted(stage: Stage) -> None:
    """AWS-126, AWS-166: the latency is from the event's own time."""
    queue = stage.adapter.interruptions
    assert queue is not None
    sent = datetime.fromtimestamp(time.time() - 3, UTC).isoformat()
    envelope = {"version": "0", "source": "aws.ec2", "time": sent, "id": "e1"}
    kind = "EC2 Spot Instance Interruption Warning"
    stage.server.control(
        "POST", "sqs", {"body": json.dumps({**envelope, "detail-type": kind, "detail": {"instance-id": "i-0a000001"}})}
    )
    stage.server.control("POST", "sqs", {"body": "not JSON"})
    before = sum(series_of("interruption_deleted_messages_total").values())

    receipts: list[str] = []
    while len(receipts) < 2:
        receipts += [message.receipt for message in await queue.receive()]
    await queue.acknowledge(receipts)

    assert series_of("interruption_received_messages_total") == {'message_type="spot_interrupted"': 1.0}
    assert sum(series_of("interruption_deleted_messages_total").values()) - before == 2.0
    assert series_of("interruption_message_queue_duration_seconds_count") == {"": 1.0}
    assert 3.0 <= series_of("interruption_message_queue_duration_seconds_sum")[""] < 30.0


async def test_an_unhealthy_instance_is_counted_once_until_it_is_healthy_again(stage: Stage) -> None:
    """AWS-139."""
    await stage.with_class()
    launched = await stage.launched(a_claim_of_ec2())
    identity = launched.provider_id.rpartition("/")[2]
    queue = stage.adapter.interruptions
    assert queue is not None
    counts = []
    for impaired in (True, True, False, True):
        body = {"InstanceId": identity, "Events": [{"Code": "instance-retirement", "Description": "soon"}]}
        stage.patch(instanceStatus=[{"filter": "event.code", "body": body}] if impaired else [])
        await queue.troubles()
        counts.append(series_of("interruption_instance_status_unhealthy_total").get('category="event_status"', 0.0))

    assert [count - counts[0] for count in counts] == [0.0, 0.0, 0.0, 1.0]


async def test_calls_are_counted_with_their_error_code(stage: Stage) -> None:
    """AWS-167."""
    stage.patch(fail=[{"op": "DescribeSubnets", "code": "UnauthorizedOperation", "status": 403, "times": 1}])

    await stage.with_class()

    calls = series_of("aws_requests_total")
    assert calls['code="UnauthorizedOperation",operation="DescribeSubnets",service="ec2"'] == 1.0
    assert calls['code="",operation="DescribeImages",service="ec2"'] >= 1.0


async def test_a_message_without_a_time_has_no_latency(stage: Stage) -> None:
    """AWS-178: upstream measures it from the year one."""
    queue = stage.adapter.interruptions
    assert queue is not None
    name = "interruption_message_queue_duration_seconds_count"
    before = sum(series_of(name).values())
    timeless = {"version": "0", "source": "aws.ec2", "detail-type": "Something New", "id": "e2"}
    stage.server.control("POST", "sqs", {"body": json.dumps(timeless)})

    [message] = await queue.receive()
    await queue.acknowledge([message.receipt])

    assert message.interruption is not None
    assert message.interruption.reason == "no_op"
    assert sum(series_of(name).values()) == before
