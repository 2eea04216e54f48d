"""The tags of everything that is made for a class (AWS-7, AWS-8, AWS-183).

Our own override the class's; the cluster's IAM policy demands exactly these at creation (AWS-165). The claim's name and
UID are in the launch call itself, so that an instance whose launch was never written down is found by them.
"""

from collections.abc import Mapping

from dovetail.adapters.aws import names
from dovetail.adapters.aws.node_class.node_class import NodeClass, is_forbidden_tag
from dovetail.model import names as core
from dovetail.model.values.json import Json


class ForbiddenTag(ValueError):
    """A tag of the class that only the product may set."""


def class_tags(node_class: NodeClass, cluster: str, pool: str) -> dict[str, str]:
    """For instances, volumes, fleets, interfaces, templates. Raises ForbiddenTag."""
    own: dict[str, str] = node_class.raw_spec.get("tags") or {}
    for key in sorted(own):
        if is_forbidden_tag(key):
            raise ForbiddenTag(f"tag {key} is set by the product and must not be in spec.tags")
    return {
        **own,
        names.owned_tag(cluster): "owned",
        core.NODE_POOL: pool,
        names.CLUSTER_TAG: cluster,
        names.NODE_CLASS: node_class.name,
    }


def cluster_tag(cluster_uid: str) -> dict[str, str]:
    """The cluster that an instance belongs to, whatever that cluster's name. For launches, not for templates, whose
    names are made of their tags; frozen with the launch, so that every version repeats it byte for byte."""
    return {core.CLUSTER_UID_TAG: cluster_uid} if cluster_uid else {}


def template_tags(launch_tags: Mapping[str, str]) -> dict[str, str]:
    """The tags of a launch that its template carries and is named by."""
    return {key: value for key, value in launch_tags.items() if key != core.CLUSTER_UID_TAG}


def as_tags(tags: Mapping[str, str]) -> list[Json]:
    """In EC2's request format."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def from_tags(tags: list[Json] | None) -> dict[str, str]:
    """From EC2's answer format."""
    return {tag["Key"]: tag.get("Value", "") for tag in tags or ()}


def tag_specification(kind: str, tags: Mapping[str, str]) -> Json:
    """For one kind of resource."""
    return {"ResourceType": kind, "Tags": as_tags(tags)}
