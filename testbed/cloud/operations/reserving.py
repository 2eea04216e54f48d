"""Capacity reservations that callers make and cancel, beside those of the declared world; volumes of instances."""

import time
from datetime import datetime
from typing import Final

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.wire import moment
from testbed.cloud.json_object import Json
from testbed.cloud.operations import limits
from testbed.cloud.operations.instance_answers import volume_id
from testbed.cloud.operations.surroundings import reservation_shown
from testbed.cloud.state.cloud import Operations, Work
from testbed.cloud.state.instances import Instance

GIBIBYTES: Final = 8  # of a volume whose mapping names no size

# ---- reservations -------------------------------------------------------------------------------------------


def create_reservation(work: Work) -> Json:
    """Paid for from now on: open to all instances of its type, or for those that name it."""
    params, world = work.params, work.world
    if params["InstanceType"] not in work.cloud.types():
        raise AwsError("InvalidInstanceType", f"The instance type '{params['InstanceType']}' does not exist")
    if params.get("AvailabilityZone") not in world["zones"]:
        raise AwsError("InvalidParameterValue", f"Invalid availability zone: [{params.get('AvailabilityZone')}]")
    limits.check_specified(params.get("TagSpecifications"))
    work.effect_begins()
    number = 1 + sum(1 for each in world["reservations"])
    declared: Json = {
        "id": f"cr-{number:017x}",
        "type": params["InstanceType"],
        "zone": params["AvailabilityZone"],
        "available": int(params["InstanceCount"]),
        "match": params.get("InstanceMatchCriteria", "open"),
        "tags": filters.tags_for(params.get("TagSpecifications"), "capacity-reservation"),
    }
    if params.get("EndDate"):
        declared["endIn"] = datetime.fromisoformat(params["EndDate"]).timestamp() - time.time()
    world.patch({"reservations": [*world["reservations"], declared]})
    return {"CapacityReservation": reservation_shown(work.cloud, declared)}


def cancel_reservation(work: Work) -> Json:
    """Its instances keep running, outside it."""
    identity = work.params["CapacityReservationId"]
    declared: list[Json] = work.world["reservations"]
    if identity not in {each["id"] for each in declared}:
        text = f"The capacity reservation '{identity}' does not exist"
        raise limits.unknown_id(identity, AwsError("InvalidCapacityReservationId.NotFound", text))
    work.effect_begins()
    changed = [{**each, "state": "cancelled", "available": 0} if each["id"] == identity else each for each in declared]
    work.world.patch({"reservations": changed})
    return {"Return": True}


# ---- volumes ------------------------------------------------------------------------------------------------


def _volumes(instance: Instance) -> list[Json]:
    """The volumes mapped by its template, as long as it lives: all are deleted with their instance."""
    found = []
    for index, each in enumerate(instance.template.get("BlockDeviceMappings") or ()):
        disk = each.get("Ebs")
        if disk is None:
            continue
        attached = {
            "VolumeId": volume_id(instance, index),
            "InstanceId": instance.id,
            "Device": each.get("DeviceName"),
            "State": "attached",
            "DeleteOnTermination": disk.get("DeleteOnTermination", True),
            "AttachTime": moment(instance.launched_at),
        }
        found.append(
            {
                "VolumeId": volume_id(instance, index),
                "AvailabilityZone": instance.zone,
                "State": "in-use",
                "CreateTime": moment(instance.launched_at),
                "Size": int(disk.get("VolumeSize", GIBIBYTES)),
                "VolumeType": disk.get("VolumeType", "gp2"),
                "Encrypted": bool(disk.get("Encrypted")),
                "Attachments": [attached],
                "Tags": filters.as_tags(instance.volume_tags),
                **{key: disk[key] for key in ("Iops", "Throughput", "KmsKeyId", "SnapshotId") if key in disk},
            }
        )
    return found


FILTERS: dict[str, filters.Values] = {
    "volume-id": lambda each: (each["VolumeId"],),
    "attachment.instance-id": lambda each: tuple(one["InstanceId"] for one in each["Attachments"]),
    "availability-zone": lambda each: (each["AvailabilityZone"],),
    "volume-type": lambda each: (each["VolumeType"],),
    "status": lambda each: (each["State"],),
}


def describe_volumes(work: Work) -> Json:
    """Of live instances, by id or by filter."""
    present = {each["VolumeId"]: each for instance in work.cloud.instances.live() for each in _volumes(instance)}
    named = work.params.get("VolumeIds")
    missing = [each for each in named or () if each not in present]
    if missing:
        text = f"The volume '{missing[0]}' does not exist."
        raise limits.unknown_id(missing[0], AwsError("InvalidVolume.NotFound", text))
    chosen = [present[each] for each in named] if named else list(present.values())
    found = filters.select(chosen, work.params.get("Filters"), FILTERS, lambda each: filters.from_tags(each["Tags"]))
    shown, following = work.page(found)
    return filters.paged("Volumes", shown, following)


OPERATIONS: Operations = {
    ("ec2", "CreateCapacityReservation"): create_reservation,
    ("ec2", "CancelCapacityReservation"): cancel_reservation,
    ("ec2", "DescribeVolumes"): describe_volumes,
}
