"""Other calls that Karpenter makes: parameters, the cluster, zonal shifts, instance status, and the corners of IAM
where moto deviates (ListInstanceProfiles ignores PathPrefix; a missing role is worded in a way that clients do not
recognise).
"""

import time
from datetime import UTC

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.json_object import Json
from testbed.cloud.operations import limits
from testbed.cloud.operations.instance_answers import named
from testbed.cloud.settings import ACCOUNT
from testbed.cloud.state.cloud import Cloud, Operations, Work
from testbed.cloud.state.instances import CODES, Instance
from testbed.cloud.state.parameters import declared_name, parameter_arn

SHIFT_SECONDS = 86400.0

# ---- SSM ----------------------------------------------------------------------------------------------------


def get_parameter(work: Work) -> Json:
    """By name or by ARN."""
    name = work.params["Name"]
    key = declared_name(work.world["ssm"], name)
    if key is None:
        raise AwsError("ParameterNotFound", f"Parameter {name} not found.")
    return {"Parameter": _parameter(work, key)}


def get_parameters(work: Work) -> Json:
    """Several at once, by name or by ARN; the missing ones are listed."""
    found = {name: declared_name(work.world["ssm"], name) for name in work.params["Names"]}
    return {
        "Parameters": [_parameter(work, key) for key in found.values() if key is not None],
        "InvalidParameters": [name for name, key in found.items() if key is None],
    }


def get_parameters_by_path(work: Work) -> Json:
    """Those below a path, a page at a time; only its own level unless `Recursive`."""
    below = f"{work.params['Path'].rstrip('/')}/"
    found = [
        key
        for key in sorted(work.world["ssm"])
        if key.startswith(below) and (work.params.get("Recursive") or "/" not in key.removeprefix(below))
    ]
    shown, following = work.page(found, default=10)
    return filters.paged("Parameters", [_parameter(work, key) for key in shown], following)


def _parameter(work: Work, key: str) -> Json:
    arn = parameter_arn(work.world["region"], key)
    return {"Name": key, "Type": "String", "Value": work.world["ssm"][key], "Version": 1, "ARN": arn}


# ---- EKS and zonal shift ------------------------------------------------------------------------------------


def cluster_arn(cloud: Cloud) -> str:
    """The cluster that this cloud has."""
    return f"arn:aws:eks:{cloud.world['region']}:{ACCOUNT}:cluster/{cloud.settings.cluster_name}"


def describe_cluster(work: Work) -> Json:
    """The one cluster; its network part is the world's `eks`."""
    settings = work.cloud.settings
    name = work.params["name"]
    if name != settings.cluster_name:
        raise AwsError("ResourceNotFoundException", f"No cluster found for name: {name}.", 404)
    return {
        "cluster": {
            "name": settings.cluster_name,
            "arn": cluster_arn(work.cloud),
            "version": work.world["kubernetesVersion"],
            "status": "ACTIVE",
            "endpoint": settings.cluster_endpoint,
            "certificateAuthority": {"data": settings.cluster_ca},
            "kubernetesNetworkConfig": work.world["eks"],
            "platformVersion": "eks.1",
        }
    }


def get_managed_resource(work: Work) -> Json:
    """ARC's view of the cluster; `zonalShift` null means that it was never registered, an empty list that no shift is
    active.

    A world that needs more than the list's notation declares the answer's own fields as a map.
    """
    shift, arn = work.world["zonalShift"], cluster_arn(work.cloud)
    asked = work.params["resourceIdentifier"]
    if shift is None or asked != arn:
        raise AwsError("ResourceNotFoundException", f"{asked} is not a managed resource", 404)
    known = {"arn": arn, "name": work.cloud.settings.cluster_name, "appliedWeights": {}, "zonalShifts": []}
    if isinstance(shift, dict):
        return {**known, **shift}
    return {**known, "zonalShifts": [_shift(work.cloud, arn, each) for each in shift]}


def _shift(cloud: Cloud, arn: str, declared: Json) -> Json:
    """`zoneId`, `applied` (true), `endIn` seconds from when it was first seen so declared (a day)."""
    zone = str(declared["zoneId"])
    begins, ends = cloud.shift_times(zone, float(declared.get("endIn", SHIFT_SECONDS)))
    return {
        "awayFrom": zone,
        "appliedStatus": "APPLIED" if declared.get("applied", True) else "NOT_APPLIED",
        "zonalShiftId": f"shift-{zone}",
        "resourceIdentifier": arn,
        "comment": "declared",
        "startTime": begins,
        "expiryTime": ends,
    }


# ---- instance status ----------------------------------------------------------------------------------------


def _status(instance: Instance) -> Json:
    state = instance.state(time.time())
    passed = {"Status": "ok", "Details": [{"Name": "reachability", "Status": "passed"}]}
    return {
        "InstanceId": instance.id,
        "AvailabilityZone": instance.zone,
        "InstanceState": {"Name": state, "Code": CODES[state]},
        "InstanceStatus": passed,
        "SystemStatus": passed,
    }


def _runs(instance: Instance) -> bool:
    return instance.state(time.time()) == "running"


def describe_status(work: Work) -> Json:
    """Declared problems under the filter that finds them; without a filter, every running instance and its own. With
    IncludeAllInstances also those not running. An unknown id refuses the whole call."""
    wanted = work.params.get("InstanceIds")
    if wanted and work.params.get("MaxResults"):
        text = "The parameter instancesSet cannot be used with the parameter maxResults"
        raise AwsError("InvalidParameterCombination", text)
    limits.check_count(wanted or (), limits.MOST_STATUS_IDS, "instance ids")
    named(work.cloud, wanted or [])
    live = work.cloud.instances.live()
    first = live[0].id if live else ""
    asked = {each["Name"] for each in work.params.get("Filters") or ()}
    troubles = {}
    for each in work.world["instanceStatus"]:
        body = {**each["body"], "InstanceId": each["body"]["InstanceId"].replace("$INSTANCE", first)}
        if body["InstanceId"] and (not asked or each["filter"] in asked):
            troubles[body["InstanceId"]] = body
    every = bool(work.params.get("IncludeAllInstances"))
    present = [] if asked else [_status(each) for each in work.cloud.instances if every or _runs(each)]
    rows = [{**row, **troubles.pop(row["InstanceId"], {})} for row in present] + list(troubles.values())
    shown, following = work.page([row for row in rows if not wanted or row["InstanceId"] in wanted])
    return filters.paged("InstanceStatuses", shown, following)


# ---- IAM ----------------------------------------------------------------------------------------------------


def list_profiles(work: Work) -> Json:
    """Under a path, a page at a time."""
    prefix = work.params.get("PathPrefix", "/")
    found = [each for each in work.cloud.moto.iam.get_instance_profiles() if each.path.startswith(prefix)]
    marked = {"NextToken": work.params.get("Marker"), "MaxResults": work.params.get("MaxItems")}
    shown, following = work.page(sorted(found, key=lambda each: str(each.name)), default=100, params=marked)
    profiles = [
        {
            "Path": each.path,
            "InstanceProfileName": each.name,
            "InstanceProfileId": each.id,
            "Arn": each.arn,
            "CreateDate": each.create_date.replace(tzinfo=UTC),
            "Roles": [_role(role) for role in each.roles],
        }
        for each in shown
    ]
    more = {"IsTruncated": True, "Marker": following} if following else {"IsTruncated": False}
    return {"InstanceProfiles": profiles, **more}


def _role(role: object) -> Json:
    return {
        "Path": getattr(role, "path", "/"),
        "RoleName": getattr(role, "name", ""),
        "RoleId": getattr(role, "id", ""),
        "Arn": getattr(role, "arn", ""),
        "CreateDate": "2026-01-01T00:00:00Z",
    }


def add_role(work: Work) -> Json:
    """The world decides which roles exist; moto attaches."""
    params, cloud = work.params, work.cloud
    name = params["RoleName"]
    if params["InstanceProfileName"] not in cloud.moto.profile_names():
        profile = params["InstanceProfileName"]
        raise AwsError("NoSuchEntity", f"Instance Profile {profile} cannot be found.", 404)
    if name not in work.world["roles"]:
        raise AwsError("NoSuchEntity", f"The role with name {name} cannot be found.", 404)
    attached = cloud.moto.iam.get_instance_profile(params["InstanceProfileName"]).roles
    if attached:
        raise AwsError("LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1", 409)
    cloud.moto.ensure_role(name)
    cloud.moto.iam.add_role_to_instance_profile(params["InstanceProfileName"], name)
    return {}


def remove_role(work: Work) -> Json:
    """moto breaks on a role that is not in the profile."""
    params, iam = work.params, work.cloud.moto.iam
    profile, name = params["InstanceProfileName"], params["RoleName"]
    if profile not in work.cloud.moto.profile_names():
        raise AwsError("NoSuchEntity", f"Instance Profile {profile} cannot be found.", 404)
    if name not in {role.name for role in iam.get_instance_profile(profile).roles}:
        raise AwsError("NoSuchEntity", f"The role with name {name} cannot be found.", 404)
    iam.remove_role_from_instance_profile(profile, name)
    return {}


OPERATIONS: Operations = {
    ("ssm", "GetParameter"): get_parameter,
    ("ssm", "GetParameters"): get_parameters,
    ("ssm", "GetParametersByPath"): get_parameters_by_path,
    ("eks", "DescribeCluster"): describe_cluster,
    ("arc-zonal-shift", "GetManagedResource"): get_managed_resource,
    ("ec2", "DescribeInstanceStatus"): describe_status,
    ("iam", "ListInstanceProfiles"): list_profiles,
    ("iam", "AddRoleToInstanceProfile"): add_role,
    ("iam", "RemoveRoleFromInstanceProfile"): remove_role,
}
