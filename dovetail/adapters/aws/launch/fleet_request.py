"""What CreateFleet is asked: one instance, or as many as a group has claims, of the types and in the places that a
frozen launch allows (AWS-88, AWS-183)."""

from dataclasses import dataclass

from dovetail.adapters.aws import names
from dovetail.adapters.aws.launch.frozen_launch import FrozenLaunch, LaunchGroup
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.tags import tag_specification
from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.json import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAttempt:
    """One attempt at a launch, the first or a later one."""

    claim: NodeClaim
    node_class: NodeClass
    launch: FrozenLaunch
    token: str
    share: GroupShare | None = None

    @property
    def instances(self) -> int:
        return 1 if self.share is None else self.share.size


def instance_tags(attempt: LaunchAttempt) -> dict[str, str]:
    """The class's tags, and the claim's name and UID (AWS-183); or the group, for whose claims one call is made."""
    if attempt.share is not None:
        return {**attempt.launch.tags, core.LAUNCH_GROUP_TAG: attempt.share.group}
    return {
        **attempt.launch.tags,
        names.CLAIM_TAG: attempt.claim.name,
        core.CLAIM_UID_TAG: attempt.claim.uid,
    }


def fleet_request(attempt: LaunchAttempt) -> Json:
    """CreateFleet's parameters: the same for the same launch, byte for byte (AWS-88)."""
    launch = attempt.launch
    target = "on-demand"
    if launch.fleet.capacity_type == core.CAPACITY_SPOT:
        target = "spot"
    elif launch.block:
        target = "capacity-block"
    elif launch.interruptible:
        target = "reserved-capacity"
    request: Json = {
        "Type": "instant",
        "ClientToken": attempt.token,
        "TargetCapacitySpecification": {"TotalTargetCapacity": attempt.instances, "DefaultTargetCapacityType": target},
        "LaunchTemplateConfigs": [_config(launch, group) for group in launch.groups],
        "TagSpecifications": [
            tag_specification("instance", instance_tags(attempt)),
            tag_specification("volume", launch.tags),
            tag_specification("fleet", launch.tags),
        ],
    }
    if target == "spot":
        strategy = "capacity-optimized-prioritized" if launch.overlaid else "price-capacity-optimized"
        request["SpotOptions"] = {"AllocationStrategy": strategy}
    elif target == "reserved-capacity":
        request["ReservedCapacityOptions"] = {"ReservationTypes": ["interruptible-capacity-reservation"]}
    elif target == "on-demand":
        strategy = "prioritized" if launch.overlaid else "lowest-price"
        request["OnDemandOptions"] = {"AllocationStrategy": strategy}
    if launch.context:
        request["Context"] = launch.context
    return request


def _config(launch: FrozenLaunch, group: LaunchGroup) -> Json:
    return {
        "LaunchTemplateSpecification": {"LaunchTemplateName": group.template, "Version": "$Latest"},
        "Overrides": [
            {
                "InstanceType": name,
                "SubnetId": launch.places[number].subnet,
                "AvailabilityZone": launch.places[number].zone,
                "ImageId": group.terms.image,
                "Priority": price,
            }
            for name, number, price in group.overrides
        ],
    }
