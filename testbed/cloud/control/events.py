"""The messages that EventBridge puts into the interruption queue: one envelope per kind of warning (AWS-124).

Put straight into the queue, because that is where Karpenter's rules deliver them; the whole way, through PutEvents and
a rule, works in moto.
"""

import time
from uuid import uuid4

from testbed.cloud.json_object import Json
from testbed.cloud.settings import ACCOUNT

DETAIL_TYPES = {
    "spot": "EC2 Spot Instance Interruption Warning",
    "rebalance": "EC2 Instance Rebalance Recommendation",
    "scheduled": "AWS Health Event",
    "state": "EC2 Instance State-change Notification",
    "reservation": "EC2 Capacity Reservation Instance Interruption Warning",
}


def _detail(kind: str, instance_id: str, state: str) -> Json:
    if kind == "scheduled":
        return {
            "service": "EC2",
            "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
            "eventTypeCategory": "scheduledChange",
            "affectedEntities": [{"entityValue": instance_id}],
        }
    if kind == "state":
        return {"instance-id": instance_id, "state": state}
    if kind == "rebalance":
        return {"instance-id": instance_id}
    return {"instance-id": instance_id, "instance-action": "terminate"}


def scheduled_event(instance_id: str) -> Json:
    """The same in the status that EC2 shows of the instance, as a world declares it."""
    event = {"Code": "instance-retirement", "Description": "The instance is running on degraded hardware"}
    return {"filter": "event.code", "body": {"InstanceId": instance_id, "Events": [event]}}


def envelope(kind: str, instance_id: str, region: str, state: str = "stopping") -> Json:
    """One message body; `state` matters to kind `state` only."""
    return {
        "version": "0",
        "id": str(uuid4()),
        "detail-type": DETAIL_TYPES[kind],
        "source": "aws.health" if kind == "scheduled" else "aws.ec2",
        "account": ACCOUNT,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "region": region,
        "resources": [f"arn:aws:ec2:{region}:{ACCOUNT}:instance/{instance_id}"],
        "detail": _detail(kind, instance_id, state),
    }
