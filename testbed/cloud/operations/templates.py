"""Launch templates over the API: create, describe, delete."""

import base64
import binascii

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.wire import moment
from testbed.cloud.json_object import Json
from testbed.cloud.operations import limits
from testbed.cloud.state.cloud import Operations, Work
from testbed.cloud.state.templates_store import Template

USER_DATA_LIMIT = 16384  # bytes after decoding (AWS-43)
FILTERS: dict[str, filters.Values] = {
    "launch-template-name": lambda template: (template.name,),
    "launch-template-id": lambda template: (template.id,),
}


def user_data_of(data: Json) -> str:
    """The decoded user data of template data or of a RunInstances call."""
    encoded = data.get("UserData") or ""
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8", "replace")
    except (ValueError, binascii.Error) as broken:
        raise AwsError("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data") from broken


def check_user_data(data: Json) -> None:
    """EC2 counts the decoded bytes."""
    if len(base64.b64decode(data.get("UserData") or "")) > USER_DATA_LIMIT:
        raise AwsError("InvalidUserData.Malformed", "User data is limited to 16384 bytes")


def _described(template: Template) -> Json:
    return {
        "LaunchTemplateId": template.id,
        "LaunchTemplateName": template.name,
        "CreateTime": moment(template.created_at),
        "CreatedBy": "arn:aws:iam::111122223333:root",
        "DefaultVersionNumber": 1,
        "LatestVersionNumber": 1,
    }


def create(work: Work) -> Json:
    """The data is kept as it came; what is wrong in it shows at launch, as with AWS."""
    params = work.params
    data = params.get("LaunchTemplateData") or {}
    limits.check_template_name(params["LaunchTemplateName"])
    limits.check_specified(params.get("TagSpecifications"))
    limits.check_specified(data.get("TagSpecifications"))
    user_data_of(data)
    check_user_data(data)
    work.effect_begins()
    first = work.cloud.tokens.first_answer("CreateLaunchTemplate", params)
    if first is not None:
        work.notes |= {"replayed": True}
        return first[0]
    if len(work.cloud.templates.all()) >= int(work.world["mostTemplates"]):
        text = "You've reached the limit on the number of launch templates you can create"
        raise AwsError("MaxTemplateLimitExceeded", text)
    tags = filters.tags_for(params.get("TagSpecifications"), "launch-template")
    made = work.cloud.templates.create(params.get("LaunchTemplateName", ""), data, tags)
    answer = {"LaunchTemplate": _described(made)}
    work.notes |= {"template": made.id}
    work.cloud.tokens.remember("CreateLaunchTemplate", params, (answer, {}))
    return answer


def describe(work: Work) -> Json:
    """Names and ids must exist; filters need not find anything."""
    params, store = work.params, work.cloud.templates
    names, ids = params.get("LaunchTemplateNames") or [], params.get("LaunchTemplateIds") or []
    chosen = [store.find(name, None) for name in names] + [store.find(None, each) for each in ids]
    found = filters.select(
        chosen if names or ids else store.all(), params.get("Filters"), FILTERS, lambda template: template.tags
    )
    shown, following = work.page(found, default=200)
    described = [{**_described(each), "Tags": filters.as_tags(each.tags)} for each in shown]
    return filters.paged("LaunchTemplates", described, following)


def describe_versions(work: Work) -> Json:
    """The one version, with its data."""
    params = work.params
    template = work.cloud.templates.find(params.get("LaunchTemplateName"), params.get("LaunchTemplateId"))
    version = {
        "LaunchTemplateId": template.id,
        "LaunchTemplateName": template.name,
        "VersionNumber": 1,
        "DefaultVersion": True,
        "CreateTime": moment(template.created_at),
        "LaunchTemplateData": template.data,
    }
    return {"LaunchTemplateVersions": [version]}


def delete(work: Work) -> Json:
    """By name or id; instances that came from it stay."""
    params = work.params
    template = work.cloud.templates.find(params.get("LaunchTemplateName"), params.get("LaunchTemplateId"))
    work.effect_begins()
    work.cloud.templates.delete(template)
    return {"LaunchTemplate": _described(template)}


OPERATIONS: Operations = {
    ("ec2", "CreateLaunchTemplate"): create,
    ("ec2", "DescribeLaunchTemplates"): describe,
    ("ec2", "DescribeLaunchTemplateVersions"): describe_versions,
    ("ec2", "DeleteLaunchTemplate"): delete,
}
