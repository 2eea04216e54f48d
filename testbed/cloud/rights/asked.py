"""What a call requires of IAM: actions on resources, each with the keys that conditions may name.

A launch needs more than its own action: every resource that it uses and makes, the tags of what it makes, and the role
of its instances. Missing resources are not checked: EC2 reports first that they do not exist.
"""

from collections.abc import Callable, Iterable, Iterator

from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.filters import from_tags, tags_for
from testbed.cloud.json_object import Json
from testbed.cloud.rights.evaluator import Asked
from testbed.cloud.settings import ACCOUNT
from testbed.cloud.state.cloud import Cloud, Work
from testbed.cloud.state.parameters import parameter_arn

Keys = dict[str, str | tuple[str, ...]]
PASSED = {"iam:PassedToService": "ec2.amazonaws.com"}


def asked_by(work: Work) -> Iterator[Asked]:
    """Everything that must be allowed before the call is carried out."""
    call = work.call
    special = _SPECIAL.get((call.service, call.operation))
    if special is not None:
        yield from special(work)
    else:
        region = {"aws:RequestedRegion": str(work.world["region"])}
        yield Asked(f"{call.service}:{call.operation}", "*", region)


def _arn(work: Work, kind: str, name: str, account: str = ACCOUNT) -> str:
    return f"arn:aws:ec2:{work.world['region']}:{account}:{kind}/{name}"


def _request(tags: dict[str, str]) -> Keys:
    return {**{f"aws:RequestTag/{key}": value for key, value in tags.items()}, "aws:TagKeys": tuple(tags)}


def _resource(tags: dict[str, str]) -> Keys:
    return {f"aws:ResourceTag/{key}": value for key, value in tags.items()}


# ---- EC2 --------------------------------------------------------------------------------------------------


def _create_template(work: Work) -> Iterator[Asked]:
    tags = tags_for(work.params.get("TagSpecifications"), "launch-template")
    yield from _made(work, ("ec2:CreateLaunchTemplate",), "launch-template", tags, "CreateLaunchTemplate")


def _made(work: Work, actions: Iterable[str], kind: str, tags: dict[str, str], by: str) -> Iterator[Asked]:
    """Something new with these tags."""
    name = _arn(work, kind, "*")
    for action in actions:
        yield Asked(action, name, _request(tags))
    if tags:
        yield Asked("ec2:CreateTags", name, {**_request(tags), "ec2:CreateAction": by})


def _template_of(work: Work, specification: Json | None) -> tuple[Json, Keys, str]:
    """The content of a launch template, and its resource; empty if none is named, or it does not exist."""
    if not specification:
        return {}, {}, ""
    name, identity = specification.get("LaunchTemplateName"), specification.get("LaunchTemplateId")
    try:
        found = work.cloud.templates.find(name, identity)
    except AwsError:
        return {}, {}, ""
    return found.data, _resource(found.tags), _arn(work, "launch-template", found.id)


def _create_fleet(work: Work) -> Iterator[Asked]:
    specified = work.params.get("TagSpecifications")
    yield from _made(work, ("ec2:CreateFleet",), "fleet", tags_for(specified, "fleet"), "CreateFleet")
    spot = (work.params.get("TargetCapacitySpecification") or {}).get("DefaultTargetCapacityType") == "spot"
    for config in work.params.get("LaunchTemplateConfigs") or ():
        data, keys, template = _template_of(work, config.get("LaunchTemplateSpecification"))
        if template:
            overrides = config.get("Overrides") or [{}]
            yield from _launch(
                work, ("ec2:CreateFleet", "ec2:RunInstances"), (template, keys), [data, *overrides], spot
            )


def _run_instances(work: Work) -> Iterator[Asked]:
    data, keys, template = _template_of(work, work.params.get("LaunchTemplate"))
    market = (work.params.get("InstanceMarketOptions") or {}).get("MarketType")
    if template or not work.params.get("LaunchTemplate"):
        yield from _launch(work, ("ec2:RunInstances",), (template, keys), [data, work.params], market == "spot")


def _launch(
    work: Work, actions: tuple[str, ...], template: tuple[str, Keys], parts: list[Json], spot: bool
) -> Iterator[Asked]:
    """`parts`: the template and its overrides, which name what is used."""
    used = set(_used(work, parts))
    for action in actions:
        if template[0]:
            yield Asked(action, template[0], template[1])
        for name in sorted(used):
            yield Asked(action, name, {})
    kinds = ["instance", "volume", "network-interface", *(["spot-instances-request"] if spot else [])]
    for kind in kinds:
        tags = tags_for(parts[0].get("TagSpecifications"), kind) | tags_for(work.params.get("TagSpecifications"), kind)
        yield from _made(work, actions, kind, tags, "RunInstances")
    profile = next((part["IamInstanceProfile"].get("Name") for part in parts if part.get("IamInstanceProfile")), None)
    for role in _roles(work.cloud, profile):
        yield Asked("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/{role}", PASSED)


def _used(work: Work, parts: list[Json]) -> Iterator[str]:
    """Images and other existing resources."""
    for part in parts:
        if part.get("ImageId"):
            yield _arn(work, "image", part["ImageId"], account="")
        interfaces = part.get("NetworkInterfaces") or ()
        subnets = [part.get("SubnetId"), *(each.get("SubnetId") for each in interfaces)]
        yield from (_arn(work, "subnet", each) for each in subnets if each)
        groups = [*(part.get("SecurityGroupIds") or ()), *(g for each in interfaces for g in each.get("Groups") or ())]
        yield from (_arn(work, "security-group", each) for each in groups)
        target = (part.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
        if target.get("CapacityReservationId"):
            yield _arn(work, "capacity-reservation", target["CapacityReservationId"])
        placement = part.get("Placement") or {}
        if placement.get("GroupId") or placement.get("GroupName"):
            yield _arn(work, "placement-group", placement.get("GroupName") or placement["GroupId"])
        disks = [each.get("Ebs") or {} for each in part.get("BlockDeviceMappings") or ()]
        yield from (_arn(work, "snapshot", each["SnapshotId"], account="") for each in disks if each.get("SnapshotId"))


def _tag(work: Work) -> Iterator[Asked]:
    tags = from_tags(work.params.get("Tags"))
    for identity in work.params.get("Resources") or ():
        yield from _of_instance(work, "ec2:CreateTags", identity, _request(tags))


def _terminate(work: Work) -> Iterator[Asked]:
    for identity in work.params.get("InstanceIds") or ():
        yield from _of_instance(work, "ec2:TerminateInstances", identity, {})


def _reboot(work: Work) -> Iterator[Asked]:
    for identity in work.params.get("InstanceIds") or ():
        yield from _of_instance(work, "ec2:RebootInstances", identity, {})


def _of_instance(work: Work, action: str, identity: str, keys: Keys) -> Iterator[Asked]:
    """An instance by its tags; for anything else nothing is known here that a condition could name."""
    instance = work.cloud.instances.get(identity)
    if instance is not None:
        yield Asked(action, _arn(work, "instance", identity), {**_resource(instance.tags), **keys})
    elif not identity.startswith("i-"):
        yield Asked(action, _arn(work, identity.partition("-")[0], identity), keys)


def _delete_template(work: Work) -> Iterator[Asked]:
    _, keys, template = _template_of(work, work.params)
    if template:
        yield Asked("ec2:DeleteLaunchTemplate", template, keys)


# ---- the others -------------------------------------------------------------------------------------------


def _profile_of(cloud: Cloud, name: str | None) -> tuple[str, dict[str, str], list[str]]:
    """Path and name, tags, roles."""
    for profile in cloud.moto.iam.get_instance_profiles():
        if profile.name == name:
            return f"{profile.path}{name}", from_tags(profile.tags), [role.name for role in profile.roles]
    return f"/{name}", {}, []


def _roles(cloud: Cloud, profile: str | None) -> list[str]:
    return _profile_of(cloud, profile)[2] if profile else []


def _create_profile(work: Work) -> Iterator[Asked]:
    """Its tags are included, and IAM requires no second right."""
    name = f"{work.params.get('Path', '/')}{work.params.get('InstanceProfileName')}"
    yield Asked("iam:CreateInstanceProfile", _profile(name), _request(from_tags(work.params.get("Tags"))))


def _with_profile(work: Work) -> Iterator[Asked]:
    name, tags, _ = _profile_of(work.cloud, work.params.get("InstanceProfileName"))
    given = from_tags(work.params.get("Tags"))
    yield Asked(f"iam:{work.call.operation}", _profile(name), {**_resource(tags), **(_request(given) if given else {})})
    role = work.params.get("RoleName")
    if work.call.operation == "AddRoleToInstanceProfile" and role in {
        each.name for each in work.cloud.moto.iam.get_roles()
    }:
        yield Asked("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/{role}", PASSED)


def _list_profiles(work: Work) -> Iterator[Asked]:
    yield Asked("iam:ListInstanceProfiles", _profile(work.params.get("PathPrefix") or "/"), {})


def _profile(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:instance-profile{name}"


def _queue(work: Work) -> Iterator[Asked]:
    name = work.params.get("QueueName") or str(work.params.get("QueueUrl", "")).rpartition("/")[2]
    action = work.call.operation.removesuffix("Batch")  # IAM knows the action on one message alone
    yield Asked(f"sqs:{action}", f"arn:aws:sqs:{work.world['region']}:{ACCOUNT}:{name}", {})


def _parameters(work: Work) -> Iterator[Asked]:
    """By name or by ARN, one, several, or all below a path; each is asked for by the call's own action."""
    params = work.params
    for name in [params[key] for key in ("Name", "Path") if key in params] + list(params.get("Names") or ()):
        yield Asked(f"ssm:{work.call.operation}", parameter_arn(work.world["region"], str(name).rstrip("/")), {})


def _cluster(work: Work) -> Iterator[Asked]:
    name = f"arn:aws:eks:{work.world['region']}:{ACCOUNT}:cluster/{work.params.get('name')}"
    yield Asked("eks:DescribeCluster", name, {})


def _shifted(work: Work) -> Iterator[Asked]:
    """Its resources are load balancers alone: for a cluster there is none, and a condition says which it is."""
    cluster = str(work.params.get("resourceIdentifier"))
    yield Asked("arc-zonal-shift:GetManagedResource", "*", {"arc-zonal-shift:ResourceIdentifier": cluster})


def _nothing(_work: Work) -> Iterator[Asked]:
    """Everyone may ask for their own identity."""
    yield from ()


_DELETES = ("DeleteMessage", "DeleteMessageBatch")
_PROFILES = ("AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile")
_SPECIAL: dict[tuple[str, str], Callable[[Work], Iterator[Asked]]] = {
    ("ec2", "CreateLaunchTemplate"): _create_template,
    ("ec2", "DeleteLaunchTemplate"): _delete_template,
    ("ec2", "CreateFleet"): _create_fleet,
    ("ec2", "RunInstances"): _run_instances,
    ("ec2", "CreateTags"): _tag,
    ("ec2", "TerminateInstances"): _terminate,
    ("ec2", "RebootInstances"): _reboot,
    ("iam", "CreateInstanceProfile"): _create_profile,
    **{("iam", name): _with_profile for name in (*_PROFILES, "GetInstanceProfile", "TagInstanceProfile")},
    ("iam", "ListInstanceProfiles"): _list_profiles,
    **{("sqs", name): _queue for name in ("GetQueueUrl", "ReceiveMessage", *_DELETES, "SendMessage")},
    **{("ssm", name): _parameters for name in ("GetParameter", "GetParameters", "GetParametersByPath")},
    ("sts", "GetCallerIdentity"): _nothing,
    ("eks", "DescribeCluster"): _cluster,
    ("arc-zonal-shift", "GetManagedResource"): _shifted,
}
