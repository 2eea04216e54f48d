"""DescribeInstances, TerminateInstances and tags: what callers see of instances, and how they end.

Answered here and not by moto, which combines two filters of one name wrongly, has no shutting-down state, and needs 6
ms per instance listed (MOT-16).
"""

import time
from base64 import b64encode
from typing import Any

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.wire import moment
from testbed.cloud.json_object import Json
from testbed.cloud.operations import limits
from testbed.cloud.operations.interfaces import VPC, groups_shown, interfaces_of
from testbed.cloud.settings import ACCOUNT
from testbed.cloud.state.catalogue import architecture
from testbed.cloud.state.cloud import Cloud, Operations, Work
from testbed.cloud.state.instances import CODES, Instance


def _state(instance: Instance) -> Json:
    name = instance.state(time.time())
    return {"Name": name, "Code": CODES[name]}


def volume_id(instance: Instance, index: int) -> str:
    """Of one of its block devices."""
    return f"vol-{instance.number:08x}{index:09x}"


def _volumes(instance: Instance) -> list[Json]:
    return [
        {
            "DeviceName": each.get("DeviceName"),
            "Ebs": {
                "VolumeId": volume_id(instance, index),
                "Status": "attached",
                "DeleteOnTermination": each["Ebs"].get("DeleteOnTermination", True),
                "AttachTime": moment(instance.launched_at),
            },
        }
        for index, each in enumerate(instance.template.get("BlockDeviceMappings") or ())
        if "Ebs" in each
    ]


def _placement(cloud: Cloud, instance: Instance) -> Json:
    placement = instance.template.get("Placement") or {}
    group = _group(cloud, placement)
    return {
        "AvailabilityZone": instance.zone,
        "AvailabilityZoneId": cloud.world["zones"].get(instance.zone),
        "Tenancy": placement.get("Tenancy", "default"),
        "GroupId": group.get("id"),
        "GroupName": group.get("name", ""),
        "PartitionNumber": placement.get("PartitionNumber") or _partition(cloud, instance, placement),
    }


def _group(cloud: Cloud, placement: Json) -> Json:
    """The declared group, which may have been deleted since."""
    named = (placement.get("GroupId"), placement.get("GroupName"))
    found = [each for each in cloud.world["placementGroups"] if each["id"] == named[0] or each["name"] == named[1]]
    return found[0] if found else {}


def _partition(cloud: Cloud, instance: Instance, placement: Json) -> int | None:
    """EC2 says it once the instance runs; here it is the second one, as in the recorded traffic."""
    partitions = int(_group(cloud, placement).get("partitions") or 0)
    return min(2, partitions) if partitions and _state(instance)["Name"] == "running" else None


def _cpu(facts: Json, data: Json) -> Json:
    """The type's cores, and what the template says otherwise."""
    processors = facts.get("VCpuInfo") or {}
    usual = {"CoreCount": processors.get("DefaultCores"), "ThreadsPerCore": processors.get("DefaultThreadsPerCore")}
    return {**usual, **(data.get("CpuOptions") or {})}


def describe_instance(cloud: Cloud, instance: Instance) -> Json:
    """One instance as EC2 shows it."""
    facts = cloud.catalogue.facts(instance.type) or {}
    data = instance.template
    described: Json = {
        "InstanceId": instance.id,
        "ImageId": instance.image,
        "InstanceType": instance.type,
        "State": _state(instance),
        "LaunchTime": moment(instance.launched_at),
        "Placement": _placement(cloud, instance),
        "SubnetId": instance.subnet,
        "VpcId": VPC,
        "PrivateIpAddress": instance.address,
        "PrivateDnsName": instance.node_name,
        "Architecture": architecture(facts) if facts else "x86_64",
        "SecurityGroups": groups_shown(cloud, instance.security_groups),
        "NetworkInterfaces": interfaces_of(cloud, instance),
        "BlockDeviceMappings": _volumes(instance),
        "Tags": filters.as_tags(instance.tags),
        "ClientToken": instance.client_token or "",
        "SpotInstanceRequestId": instance.spot_request,
        "InstanceLifecycle": "spot" if instance.capacity_type == "spot" else None,
        "CapacityReservationId": instance.capacity_reservation,
        "CapacityReservationSpecification": instance.reservation_specification,
        "Monitoring": {"State": "enabled" if (data.get("Monitoring") or {}).get("Enabled") else "disabled"},
        "MetadataOptions": {"State": "applied", **(data.get("MetadataOptions") or {})},
        "CpuOptions": _cpu(facts, data),
        "EnclaveOptions": {"Enabled": bool((data.get("EnclaveOptions") or {}).get("Enabled"))},
        "Hypervisor": "xen",
        "VirtualizationType": "hvm",
        "RootDeviceType": "ebs",
    }
    if instance.profile:
        arn = f"arn:aws:iam::{ACCOUNT}:instance-profile/{instance.profile}"
        described["IamInstanceProfile"] = {"Arn": arn, "Id": f"AIPA{instance.number:017d}"}
    if instance.terminated_at is not None:
        described["StateTransitionReason"] = f"User initiated ({moment(instance.terminated_at)})"
    return described | instance.extra


FILTERS: dict[str, filters.Values] = {
    "instance-id": lambda each: (each.id,),
    "instance-state-name": lambda each: (each.state(time.time()),),
    "instance-state-code": lambda each: (str(CODES[each.state(time.time())]),),
    "instance-type": lambda each: (each.type,),
    "availability-zone": lambda each: (each.zone,),
    "subnet-id": lambda each: (each.subnet,),
    "vpc-id": lambda _: (VPC,),
    "image-id": lambda each: (each.image,),
    "client-token": lambda each: (each.client_token or "",),
    "instance-lifecycle": lambda each: (each.capacity_type,),
    "private-dns-name": lambda each: (each.node_name,),
    "private-ip-address": lambda each: (each.address,),
    "instance.group-id": lambda each: each.security_groups,
    "iam-instance-profile.arn": lambda each: (f"arn:aws:iam::{ACCOUNT}:instance-profile/{each.profile}",),
}


def _seen(cloud: Cloud, instance: Instance) -> bool:
    """EC2 knows a new id a while later than the call that made it, if the world says so."""
    return time.time() >= instance.launched_at + float(cloud.world["visibleAfter"])


def named(cloud: Cloud, ids: list[str]) -> list[Instance]:
    """Those of the ids; one that EC2 does not know, or does not know yet, refuses the call."""
    found = {each: cloud.instances.get(each) for each in ids}
    missing = [identity for identity, each in found.items() if each is None or not _seen(cloud, each)]
    if missing:
        several = "s" if len(missing) > 1 else ""
        text = f"The instance ID{several} '{', '.join(missing)}' do{'' if several else 'es'} not exist"
        not_found = AwsError("InvalidInstanceID.NotFound", text)
        refusals = [limits.unknown_id(each, not_found) for each in missing]
        raise next((each for each in refusals if each is not not_found), not_found)
    return [each for each in found.values() if each is not None]


def describe(work: Work) -> Json:
    """By ids or by filters, a page at a time, grouped by the call that launched them."""
    params, cloud = work.params, work.cloud
    ids = params.get("InstanceIds")
    if ids and params.get("MaxResults"):
        raise AwsError(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        )
    chosen = named(cloud, ids) if ids else [each for each in cloud.instances if _seen(cloud, each)]
    found = filters.select(chosen, params.get("Filters"), FILTERS, lambda each: each.tags)
    shown, following = (found, None) if ids else work.page(found)
    reservations: dict[str, Json] = {}
    for each in shown:
        group = reservations.setdefault(
            each.reservation, {"ReservationId": each.reservation, "OwnerId": ACCOUNT, "Instances": []}
        )
        group["Instances"].append(describe_instance(cloud, each))
    return filters.paged("Reservations", list(reservations.values()), following)


def terminate(work: Work) -> Json:
    """An unknown id refuses the whole call; an instance already on its way is answered as it is."""
    cloud = work.cloud
    ids = work.params["InstanceIds"]
    limits.check_count(ids, limits.MOST_RESOURCES, "instance ids")
    chosen = named(cloud, ids)
    work.effect_begins()
    answers = []
    for each in chosen:
        before = _state(each)
        cloud.instances.terminate(each, float(cloud.world["shutdownSeconds"]))
        answers.append({"InstanceId": each.id, "PreviousState": before, "CurrentState": _state(each)})
    work.notes |= {"terminated": [each.id for each in chosen]}
    return {"TerminatingInstances": answers}


def reboot(work: Work) -> Json:
    """As TerminateInstances takes its ids; a terminated one is passed over, and one that does not run is refused."""
    cloud = work.cloud
    chosen = [each for each in named(cloud, work.params["InstanceIds"]) if each.state(time.time()) != "terminated"]
    for each in chosen:
        if each.state(time.time()) != "running":
            raise AwsError("IncorrectInstanceState", f"The instance '{each.id}' is not in the 'running' state.")
    work.effect_begins()
    for each in chosen:
        cloud.instances.reboot(each)
    work.notes |= {"rebooted": [each.id for each in chosen]}
    return {}


ATTRIBUTES: dict[str, Any] = {
    "disableApiTermination": lambda _: {"DisableApiTermination": {"Value": False}},
    "groupSet": lambda each: {"Groups": [{"GroupId": group} for group in each.security_groups]},
    "instanceType": lambda each: {"InstanceType": {"Value": each.type}},
    "userData": lambda each: {"UserData": {"Value": b64encode(each.user_data.encode()).decode()}},
}


def attribute(work: Work) -> Json:
    """One of an instance; those that no caller here asks for are refused."""
    (instance,) = named(work.cloud, [work.params["InstanceId"]])
    if (read := ATTRIBUTES.get(work.params["Attribute"])) is None:
        raise AwsError("InvalidParameterValue", f"The attribute '{work.params['Attribute']}' is not known here")
    return {"InstanceId": instance.id, **read(instance)}


def _tagged(cloud: Cloud, resource: str) -> dict[str, str]:
    """The tags of a resource, to be changed in place."""
    if resource.startswith("i-"):
        return named(cloud, [resource])[0].tags
    for template in cloud.templates.all():
        if template.id == resource:
            return template.tags
    for kind in ("subnets", "securityGroups", "images", "reservations"):
        for each in cloud.world[kind]:
            if each["id"] == resource:
                tags: dict[str, str] = each.setdefault("tags", {})
                return tags
    raise AwsError("InvalidID", f"The ID '{resource}' is not valid")


def create_tags(work: Work) -> Json:
    """Unknown resources and `aws:` keys are refused, before anything is tagged."""
    tags, resources = filters.from_tags(work.params["Tags"]), work.params["Resources"]
    limits.check_count(resources, limits.MOST_RESOURCES, "resources")
    chosen = [(each, _tagged(work.cloud, each)) for each in resources]
    for _, old in chosen:
        limits.check_tags(tags, old)
    work.effect_begins()
    for resource, old in chosen:
        old.update(tags)
        instance = work.cloud.instances.get(resource)
        if instance is not None:
            work.cloud.instances.touch(instance)
    return {}


def delete_tags(work: Work) -> Json:
    """A tag named with a value goes only if it has that value."""
    wanted: list[Any] = work.params.get("Tags") or []
    chosen = [_tagged(work.cloud, each) for each in work.params.get("Resources") or ()]
    work.effect_begins()
    for tags in chosen:
        for each in wanted:
            if "Value" not in each or tags.get(each["Key"]) == each["Value"]:
                tags.pop(each["Key"], None)
    return {}


OPERATIONS: Operations = {
    ("ec2", "DescribeInstances"): describe,
    ("ec2", "DescribeInstanceAttribute"): attribute,
    ("ec2", "TerminateInstances"): terminate,
    ("ec2", "RebootInstances"): reboot,
    ("ec2", "CreateTags"): create_tags,
    ("ec2", "DeleteTags"): delete_tags,
}
