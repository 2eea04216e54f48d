"""What EC2 refuses whatever the world holds: malformed ids, too many of something, tags that are none.

Beside each stands where AWS says so. `model` is botocore's description of EC2 (its `service-2.json`), AWS's own
reference; `errors` is docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.json_object import Json

# By the code of an id that nobody has: how such an id begins, and the code of one that is not of that form (errors:
# "Ensure that you specify the … ID in the form xx-xxxxxxxxxxxxxxxxx"; older ids have eight digits).
_FORMS: Final[Mapping[str, tuple[str, str]]] = {
    "InvalidAMIID.NotFound": ("ami", "InvalidAMIID.Malformed"),
    "InvalidCapacityReservationId.NotFound": ("cr", "InvalidCapacityReservationId.Malformed"),
    "InvalidGroup.NotFound": ("sg", "InvalidGroupId.Malformed"),
    "InvalidInstanceID.NotFound": ("i", "InvalidInstanceID.Malformed"),
    "InvalidNetworkInterfaceID.NotFound": ("eni", "InvalidNetworkInterfaceId.Malformed"),
    "InvalidPlacementGroupId.NotFound": ("pg", "InvalidPlacementGroupId.Malformed"),
    "InvalidSubnetID.NotFound": ("subnet", "InvalidSubnetID.Malformed"),
    "InvalidVolume.NotFound": ("vol", "InvalidVolumeID.Malformed"),
}
_DIGITS: Final = re.compile(r"[0-9a-f]{8}|[0-9a-f]{17}")

MOST_TAGS: Final = 50  # of a resource (model: CreateTags)
_KEY_LENGTH: Final = 128  # the guide's page on tag restrictions; the model says 127
_VALUE_LENGTH: Final = 256  # model: Tag
_NAME: Final = re.compile(r"[a-zA-Z0-9().\-/_]{3,128}")  # errors: InvalidLaunchTemplateName.MalformedException
MOST_RESOURCES: Final = 1000  # of one call (model: CreateTags, TerminateInstances)
MOST_STATUS_IDS: Final = 100  # model: DescribeInstanceStatusRequest
MOST_OVERRIDES: Final = 300  # model: FleetLaunchTemplateConfigRequest, of the types request and maintain


def unknown_id(identity: str, not_found: AwsError) -> AwsError:
    """How EC2 refuses an id that the world does not have: by its form first."""
    begin, malformed = _FORMS[not_found.code]
    kind, _, digits = identity.partition("-")
    if kind == begin and _DIGITS.fullmatch(digits):
        return not_found
    return AwsError(malformed, f'Invalid id: "{identity}"')


def check_tags(tags: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
    """The tags that a call gives to one resource, which may have some."""
    for key, value in tags.items():
        if key.startswith("aws:"):
            raise AwsError("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
        if not key or len(key) > _KEY_LENGTH:
            raise AwsError("InvalidParameterValue", f"Tag key exceeds the maximum length of {_KEY_LENGTH} characters")
        if len(value) > _VALUE_LENGTH:
            text = f"Tag value exceeds the maximum length of {_VALUE_LENGTH} characters"
            raise AwsError("InvalidParameterValue", text)
    if len({**(before or {}), **tags}) > MOST_TAGS:
        raise AwsError("TagLimitExceeded", f"The maximum number of tags of a resource is {MOST_TAGS}")  # errors


def check_specified(*specifications: Iterable[Mapping[str, Any]] | None) -> None:
    """The tags of a call and of its template, which come together for each kind of resource."""
    together: dict[str, dict[str, str]] = {}
    for each in (one for listed in specifications for one in listed or ()):
        tags = together.setdefault(str(each.get("ResourceType")), {})
        keys = [tag["Key"] for tag in each.get("Tags") or ()]
        if len(keys) != len(set(keys)):  # model, CreateTags: "Tag keys must be unique per resource"
            raise AwsError("InvalidParameterValue", "Duplicate tag keys are not allowed")
        tags |= filters.from_tags(each.get("Tags"))
    for tags in together.values():
        check_tags(tags)


def check_template_name(name: str) -> None:
    """errors: InvalidLaunchTemplateName.MalformedException."""
    if not _NAME.fullmatch(name):
        text = "A launch template name is of 3 to 128 letters, numbers, and the characters ( ) . / _ -"
        raise AwsError("InvalidLaunchTemplateName.MalformedException", text)


def check_count(named: Sequence[Any], most: int, what: str) -> None:
    """errors: InvalidParameterValue. Which code AWS gives to too many ids is not known."""
    if len(named) > most:
        raise AwsError("InvalidParameterValue", f"The maximum number of {what} of one call is {most}")


def check_template_specification(specification: Json) -> None:
    """model: FleetLaunchTemplateSpecificationRequest. Exactly one of name and id, and for a fleet a version."""
    named = [key for key in ("LaunchTemplateId", "LaunchTemplateName") if specification.get(key)]
    if len(named) != 1:
        text = "Specify the ID or the name of a launch template, and not both"
        raise AwsError("InvalidParameterCombination" if named else "MissingParameter", text)


def check_groups_are_in_one_place(data: Json) -> None:
    """model: RequestLaunchTemplateData.SecurityGroupIds, and RunInstances alike."""
    if data.get("NetworkInterfaces") and (data.get("SecurityGroupIds") or data.get("SecurityGroups")):
        text = "Network interfaces and instance-level security groups may not be specified on the same request"
        raise AwsError("InvalidParameterCombination", text)
