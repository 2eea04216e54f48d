"""Whoever may write to the queue: each field of each kind of message forged in turn, read from the queue and answered
while EC2 says that the instance runs and is well."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import pytest

from dovetail.activities.interruptions.answer_interruptions import AnswerInterruptions
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.interruptions.queue import WarningQueue
from dovetail.messages.interruptions import TAKEN_BACK, InterruptionReason
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.ports.failures import Postponed
from dovetail.ports.objects import MetadataChange
from testbed.cloud.settings import ACCOUNT
from tests.adapters.aws.conftest import Stage
from worlds.aws import a_claim_of_ec2

Fate = Literal["deleted", "EC2 is asked, and says no", "nothing to do", "foreign", "unreadable"]

OURS: Final = "us-west-2"
EC2_KINDS: Final[Mapping[InterruptionReason, str]] = {
    "spot_interrupted": "EC2 Spot Instance Interruption Warning",
    "rebalance_recommendation": "EC2 Instance Rebalance Recommendation",
    "instance_stopped": "EC2 Instance State-change Notification",
    "instance_terminated": "EC2 Instance State-change Notification",
    "capacity_reservation_interrupted": "EC2 Capacity Reservation Instance Interruption Warning",
}
STATES: Final = {"instance_stopped": "stopped", "instance_terminated": "terminated"}
KINDS: Final[tuple[InterruptionReason, ...]] = (*EC2_KINDS, "scheduled_change")


def genuine(kind: InterruptionReason, instance: str) -> Json:
    """As AWS sends it."""
    if kind == "scheduled_change":
        source, detail_type = "aws.health", "AWS Health Event"
        detail: Json = {
            "service": "EC2",
            "eventTypeCategory": "scheduledChange",
            "affectedAccount": ACCOUNT,
            "eventRegion": OURS,
            "affectedEntities": [{"entityValue": instance}],
        }
    else:
        source, detail_type = "aws.ec2", EC2_KINDS[kind]
        detail = {"instance-id": instance, **({"state": STATES[kind]} if kind in STATES else {})}
    return {
        "version": "0",
        "id": "e1",
        "detail-type": detail_type,
        "source": source,
        "account": ACCOUNT,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "region": OURS,
        "resources": [],
        "detail": detail,
    }


def forgeries(kind: InterruptionReason, instance: str) -> dict[str, tuple[Json, Fate]]:
    """Each with what must come of it."""
    body, health = genuine(kind, instance), kind == "scheduled_change"
    detail = body["detail"]
    as_it_is: Fate = "deleted" if kind in TAKEN_BACK else "EC2 is asked, and says no"
    if kind == "rebalance_recommendation":
        as_it_is = "nothing to do"
    elsewhere = {"affectedAccount": "999999999999", "eventRegion": "eu-west-1"}
    ours = {"affectedAccount": ACCOUNT, "eventRegion": OURS}

    def with_instance(text: Any) -> Json:
        named = {"affectedEntities": [{"entityValue": text}]} if health else {"instance-id": text}
        return {**body, "detail": {**detail, **named}}

    rows: dict[str, tuple[Json, Fate]] = {
        "nothing": (body, as_it_is),
        "version": ({**body, "version": "1"}, "nothing to do"),
        "source": ({**body, "source": "aws.mine"}, "nothing to do"),
        "detail-type": ({**body, "detail-type": "EC2 Something"}, "nothing to do"),
        "time, long ago": ({**body, "time": "2020-01-01T00:00:00Z"}, as_it_is),  # the queue's own clock counts
        "time, to come": ({**body, "time": "2099-01-01T00:00:00Z"}, as_it_is),
        "time, none": ({**body, "time": "soon"}, "unreadable"),
        "account of the detail": ({**body, "detail": {**detail, "affectedAccount": "999999999999"}}, "foreign"),
        "region of the detail": ({**body, "detail": {**detail, "eventRegion": "eu-west-1"}}, "foreign"),
        "both places, one way": ({**body, "detail": {**detail, **elsewhere}}, "foreign"),
        "instance, nobody's": (with_instance("i-0ffffffffffffffff"), "nothing to do"),
        "instance, no id": (with_instance("../i-0a000000"), "nothing to do" if health else "unreadable"),
        "instance, a list": (with_instance([instance]), "unreadable"),
        "detail, none": ({**body, "detail": {}}, "nothing to do" if health else "unreadable"),
        "an hour in the queue": (body, "foreign"),
    }
    if not health:
        # The envelope's word holds, whatever the detail says beside it: of health alone copies go elsewhere.
        for field, theirs in (("account", "999999999999"), ("region", "eu-west-1"), ("region", "global")):
            rows[f"{field} {theirs}"] = ({**body, field: theirs}, "foreign")
            rows[f"{field} {theirs}, ours in the detail"] = (
                {**body, field: theirs, "detail": {**detail, **ours}},
                "foreign",
            )
    if kind in STATES:
        rows["state, one that goes on"] = ({**body, "detail": {**detail, "state": "running"}}, "nothing to do")
        rows["state, a number"] = ({**body, "detail": {**detail, "state": 3}}, "unreadable")
    if health:
        rows["service"] = ({**body, "detail": {**detail, "service": "RDS"}}, "nothing to do")
        rows["category"] = ({**body, "detail": {**detail, "eventTypeCategory": "issue"}}, "nothing to do")
    return rows


class OneClaim:
    """The cluster: one claim, and what was deleted."""

    def __init__(self, claim: NodeClaim) -> None:
        self.claim, self.deleted = claim, list[str]()

    def snapshot(self, reads: object = None) -> Snapshot:
        return replace(Snapshot(now=time.time()), claims={self.claim.name: self.claim})

    async def read(self, name: str) -> NodeClaim | None:
        return self.claim

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        return claim

    async def delete(self, name: str, uid: str) -> int:
        self.deleted.append(name)
        return 1


async def fate_of(stage: Stage, queue: WarningQueue, claim: NodeClaim, body: Json) -> Fate:
    """Sent to the queue, read, and answered as a workflow would."""
    stage.server.control("POST", "sqs", {"body": json.dumps(body)})
    (message,) = await queue.receive()
    await queue.acknowledge([message.receipt])
    if message.interruption is None:
        return "unreadable"
    if message.interruption.reason == "no_op":
        return "foreign" if not message.interruption.id else "nothing to do"
    cluster = OneClaim(claim)
    answering = AnswerInterruptions(cluster, cluster, stage.adapter.interruptions, time.time)  # type: ignore[arg-type]
    warnings = answering.ours((message.interruption,))
    try:
        await answering.answer_interruptions(tuple(warnings))
    except Postponed:
        assert cluster.deleted == []
        return "EC2 is asked, and says no"
    return "deleted" if cluster.deleted else "nothing to do"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_message_with_one_forged_field_deletes_nothing_that_runs(
    kind: InterruptionReason, stage: Stage, aws_calls: Calls
) -> None:
    """AWS-189, AWS-191: and the field that nobody can check, the time, makes it neither better nor worse."""
    await stage.with_class()
    instance = await stage.launched(a_claim_of_ec2())
    claim = replace(
        a_claim_of_ec2(),
        provider_id=instance.provider_id,
        labels={names.CAPACITY_TYPE: TAKEN_BACK.get(kind, names.CAPACITY_ON_DEMAND)},
    )
    identity = instance.provider_id.rpartition("/")[2]
    fresh = WarningQueue(aws_calls, "dovetail", clock=time.time)
    late = WarningQueue(aws_calls, "dovetail", lambda: time.time() + 4_000)
    rows = forgeries(kind, identity)

    fates = {
        field: await fate_of(stage, late if field == "an hour in the queue" else fresh, claim, body)
        for field, (body, _) in rows.items()
    }

    assert fates == {field: fate for field, (_, fate) in rows.items()}


@pytest.mark.parametrize("kind", TAKEN_BACK)
@pytest.mark.parametrize("lifecycle", [names.CAPACITY_SPOT, names.CAPACITY_RESERVED, names.CAPACITY_ON_DEMAND, ""])
async def test_capacity_is_taken_back_from_instances_of_that_kind_alone(
    kind: InterruptionReason, lifecycle: str, stage: Stage, aws_calls: Calls
) -> None:
    """AWS-191: what the message cannot say of itself stands on the claim."""
    await stage.with_class()
    instance = await stage.launched(a_claim_of_ec2())
    claim = replace(a_claim_of_ec2(), provider_id=instance.provider_id, labels={names.CAPACITY_TYPE: lifecycle})
    body = genuine(kind, instance.provider_id.rpartition("/")[2])

    fate = await fate_of(stage, WarningQueue(aws_calls, "dovetail", clock=time.time), claim, body)

    assert fate == ("deleted" if lifecycle == TAKEN_BACK[kind] else "EC2 is asked, and says no")
