"""The shipped policies are such as AWS's service authorization reference knows.

A statement that names a resource which its action does not have allows nothing, however well it reads.
"""

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from dovetail.model.values.json import Json
from testbed.cloud.rights import policies
from testbed.cloud.rights.policies import statements, values_for
from testbed.cloud.settings import CloudSettings

REFERENCE: Json = tomllib.loads((policies.FOLDER.parents[2] / "testbed/cloud/rights/reference.toml").read_text("utf-8"))


def shipped() -> list[Json]:
    return statements(values_for(CloudSettings(state=Path("/nowhere")), "us-west-2"))


def patterns(action: str) -> list[str]:
    """The ARNs of what an action can be allowed on."""
    kinds = [*REFERENCE["actions"][action], *REFERENCE["beside"].get(action, ())]
    return [str(REFERENCE["kinds"][each]) for each in kinds]


def is_known(action: str, resource: str) -> bool:
    """A statement's resource may have stars of its own; a star stands for anything on both sides."""
    return any(fnmatchcase(resource, each) or fnmatchcase(each, resource) for each in patterns(action))


def faults(found: list[Json]) -> list[str]:
    """What of the statements allows nothing."""
    wrong = []
    for statement in found:
        resources = [statement["Resource"]] if isinstance(statement["Resource"], str) else statement["Resource"]
        if resources == ["*"]:
            continue
        actions = statement["Action"]
        wrong += [
            f"{action} is allowed on none of the resources of {statement['Sid']}"
            for action in actions
            if not any(is_known(action, each) for each in resources)
        ]
        wrong += [
            f"{each} is nothing that an action of {statement['Sid']} knows"
            for each in resources
            if not any(is_known(action, each) for action in actions)
        ]
    return wrong


def test_every_statement_names_what_its_actions_know() -> None:
    assert faults(shipped()) == []


def test_every_action_that_is_allowed_is_in_the_reference() -> None:
    assert {action for each in shipped() for action in each["Action"]} == REFERENCE["actions"].keys()


CLUSTER = "arn:aws:eks:us-west-2:111122223333:cluster/dovetail"


@pytest.mark.parametrize(
    ("action", "resource", "says"),
    [
        # As it was shipped once: a worker with ENABLE_ZONAL_SHIFT did not start.
        ("arc-zonal-shift:GetManagedResource", CLUSTER, "is allowed on none of the resources"),
        ("ec2:DescribeInstances", "arn:aws:ec2:us-west-2:*:instance/*", "is allowed on none of the resources"),
        ("ec2:TerminateInstances", "arn:aws:ec2:us-west-2:*:volume/*", "is nothing that an action"),
        ("ec2:RunInstances", "arn:aws:ec2:us-west-2:111122223333:image/*", "is nothing that an action"),
    ],
)
def test_a_statement_that_would_allow_nothing_is_found(action: str, resource: str, says: str) -> None:
    assert any(says in each for each in faults([{"Sid": "Mine", "Action": [action], "Resource": [resource]}]))
