"""Warnings: what messages say, that none is lost, and what is remembered of the offering."""

import json
from typing import Any

import pytest

from dovetail.adapters.aws.interruptions.instance_checks import read_status
from dovetail.adapters.aws.interruptions.messages import UnreadableMessage, read_message
from dovetail.model import names as core
from dovetail.ports.failures import Unreachable
from tests.adapters.aws.conftest import Stage
from tests.adapters.aws.worlds import a_claim, any_kind, one_of

SPOT_WARNING = "EC2 Spot Instance Interruption Warning"


def envelope(detail_type: str, detail: dict[str, Any], source: str = "aws.ec2", **change: Any) -> str:
    body = {
        "version": "0",
        "id": "e1",
        "detail-type": detail_type,
        "source": source,
        "account": "111122223333",
        "time": "2026-01-01T00:00:00Z",
        "region": "us-west-2",
        "resources": [],
        "detail": detail,
        **change,
    }
    return json.dumps(body)


@pytest.mark.parametrize(
    ("body", "reason", "instances"),
    [
        (
            envelope(SPOT_WARNING, {"instance-id": "i-0a", "instance-action": "terminate"}),
            "spot_interrupted",
            ("i-0a",),
        ),
        (
            envelope("EC2 Instance Rebalance Recommendation", {"instance-id": "i-0a"}),
            "rebalance_recommendation",
            ("i-0a",),
        ),
        (_state := envelope("EC2 Instance State-change Notification", {"instance-id": "i-0a", "state": "stopping"}),
         "instance_stopped", ("i-0a",)),
        (_state.replace("stopping", "Stopping"), "instance_stopped", ("i-0a",)),
        (_state.replace("stopping", "shutting-down"), "instance_terminated", ("i-0a",)),
        (_state.replace("stopping", "running"), "no_op", ()),
        (
            envelope(
                "AWS Health Event",
                {
                    "service": "EC2",
                    "eventTypeCategory": "scheduledChange",
                    "startTime": "Sat, 05 Jun 2026 15:10:09 GMT",
                    "affectedEntities": [{"entityValue": "i-0a"}, {"entityValue": "i-0b"}, {"entityValue": "i-0a"}],
                },
                "aws.health",
            ),
            "scheduled_change",
            ("i-0a", "i-0b"),
        ),
        (
            envelope("AWS Health Event", {"service": "EC2", "eventTypeCategory": "issue"}, "aws.health"),
            "no_op",
            (),
        ),
        (
            envelope("EC2 Capacity Reservation Instance Interruption Warning", {"instance-id": "i-0a"}),
            "capacity_reservation_interrupted",
            ("i-0a",),
        ),
        (envelope(SPOT_WARNING, {"instance-id": "i-0a"}, "aws.other"), "no_op", ()),
        (envelope(SPOT_WARNING, {"instance-id": "i-0a"}, version="1"), "no_op", ()),
        (envelope("Something New", {"x": 1}), "no_op", ()),
    ],
)  # fmt: skip
def test_a_message_is_recognised_by_version_source_and_type(body: str, reason: str, instances: tuple[str, ...]) -> None:
    """AWS-124, AWS-171."""
    found = read_message(body)

    assert (found.reason, found.instances, found.id) == (reason, instances, "e1")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not json",
        "[]",
        "{}",
        envelope(SPOT_WARNING, {}),
        envelope(SPOT_WARNING, {"instance-id": 7}),
        envelope(SPOT_WARNING, {"instance-id": "i-0a"}, time="yesterday"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(body: str) -> None:
    """AWS-125."""
    with pytest.raises(UnreadableMessage):
        read_message(body)


async def test_a_message_comes_until_it_is_acknowledged(stage: Stage) -> None:
    """AWS-123, AWS-127, AWS-187."""
    interruptions = stage.adapter.interruptions
    assert interruptions is not None
    stage.server.control("POST", "sqs", {"body": envelope(SPOT_WARNING, {"instance-id": "i-0a"})})

    (message,) = await interruptions.receive()
    assert message.interruption is not None
    assert message.interruption.instances == ("i-0a",)
    await interruptions.acknowledge([message.receipt])
    await interruptions.acknowledge([message.receipt])

    (call,) = stage.calls("ReceiveMessage")
    assert {key: call["input"][key] for key in ("MaxNumberOfMessages", "WaitTimeSeconds", "VisibilityTimeout")} == {
        "MaxNumberOfMessages": 10,
        "WaitTimeSeconds": 20,
        "VisibilityTimeout": 20,
    }


async def test_a_queue_that_does_not_exist_is_tried_again(stage: Stage) -> None:
    """AWS-122."""
    stage.patch(
        fail=[{"op": "GetQueueUrl", "code": "AWS.SimpleQueueService.NonExistentQueue", "status": 400, "times": 1}]
    )
    interruptions = stage.adapter.interruptions
    assert interruptions is not None

    with pytest.raises(Unreachable, match="queue dovetail does not exist"):
        await interruptions.acknowledge(["x"])


async def test_a_spot_warning_keeps_its_pool_out_of_the_next_launch(stage: Stage) -> None:
    """AWS-133: before the next plan, in this process and in the others."""
    await stage.with_class()
    interruptions = stage.adapter.interruptions
    assert interruptions is not None
    claim = a_claim(one_of("node.kubernetes.io/instance-type", "m5.large"), any_kind())
    launched = await stage.launched(claim)
    claim_with_labels = a_claim(labels=dict(launched.labels))
    warning = read_message(envelope(SPOT_WARNING, {"instance-id": "i-0a"}))

    await interruptions.learn_from(warning, claim_with_labels)
    second = await stage.launched(a_claim(one_of("node.kubernetes.io/instance-type", "m5.large"), any_kind()))

    assert (launched.labels[core.ZONE], second.labels[core.ZONE]) == ("us-west-2a", "us-west-2b")


def test_failed_reachability_counts_after_two_minutes_and_a_finished_event_never() -> None:
    """AWS-137, AWS-179."""
    from datetime import UTC, datetime

    since = datetime(2026, 1, 1, tzinfo=UTC)
    failed = {"Details": [{"Name": "reachability", "Status": "failed", "ImpairedSince": since}]}
    row = {
        "InstanceId": "i-0a",
        "InstanceStatus": failed,
        "SystemStatus": {"Details": [{"Name": "attached-ebs", "Status": "failed", "ImpairedSince": since}]},
        "Events": [{"Code": "instance-reboot", "Description": "[Completed] rebooted"}],
    }

    assert read_status(row, since.timestamp() + 119) == []
    assert [each.reason for each in read_status(row, since.timestamp() + 120)] == ["instance_status"]
    row["Events"] = [{"Code": "instance-retirement", "Description": "x"}]
    assert [each.reason for each in read_status(row, since.timestamp())] == ["event_status"]


async def test_troubles_are_read_with_three_filters(stage: Stage) -> None:
    """AWS-136."""
    interruptions = stage.adapter.interruptions
    assert interruptions is not None

    assert await interruptions.troubles() == ()
    assert len(stage.calls("DescribeInstanceStatus")) == 3
