"""The rights that we ask for: every call that the adapter makes is allowed, and nothing is allowed that it never
makes.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.adapters.aws.catalogue.prices import PriceRefresh
from dovetail.adapters.aws.catalogue.zonal_shift import ZonalShift
from dovetail.adapters.aws.interruptions.messages import read_message
from tests.adapters.aws.conftest import Stage
from tests.adapters.aws.worlds import a_claim

TEMPLATE = Path(__file__).parents[3] / "deploy" / "aws" / "cloudformation.yaml"
MOST_CHARACTERS = 6144  # of a managed policy, white space not counted

# Rights without a call of their own: EC2 asks for them while it carries out a launch.
IMPLIED = {"ec2:CreateTags", "iam:PassRole", "iam:TagInstanceProfile"}


class _Loader(yaml.SafeLoader):
    """Takes CloudFormation's short forms for their text."""


def _text(loader: _Loader, suffix: str, node: yaml.ScalarNode) -> str:
    return str(node.value)


_Loader.add_multi_constructor("!", _text)


def resources() -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(TEMPLATE.read_text(encoding="utf-8"), Loader=_Loader)["Resources"]
    return found


def documents() -> list[dict[str, Any]]:
    return [
        json.loads(each["Properties"]["PolicyDocument"])
        for each in resources().values()
        if each["Type"] == "AWS::IAM::ManagedPolicy"
    ]


def allowed() -> set[str]:
    return {action for document in documents() for statement in document["Statement"] for action in statement["Action"]}


def test_each_policy_is_small_enough_and_every_write_has_a_condition() -> None:
    """AWS-162, AWS-163."""
    for document in documents():
        text = json.dumps(document).replace("${ClusterName}", "x" * 100)
        assert len(re.sub(r"\s", "", text)) < MOST_CHARACTERS
        for statement in document["Statement"]:
            writes = [a for a in statement["Action"] if not re.match(r"\w[\w-]*:(Describe|Get|List|Receive)", a)]
            free = statement["Sid"] in ("LaunchFromWhatIsThere", "ReadTheQueue")
            assert "Condition" in statement or not writes or free, statement["Sid"]


def test_the_rules_fill_the_queue_with_every_kind_of_message_that_is_understood() -> None:
    """AWS-164, AWS-124."""
    patterns = [
        each["Properties"]["EventPattern"] for each in resources().values() if each["Type"] == "AWS::Events::Rule"
    ]
    details = {
        "AWS Health Event": {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": []},
        "EC2 Instance State-change Notification": {"instance-id": "i-0a000000", "state": "stopping"},
    }
    for pattern in patterns:
        (source,), (kind,) = pattern["source"], pattern["detail-type"]
        body = {
            "version": "0",
            "source": source,
            "detail-type": kind,
            "detail": details.get(kind, {"instance-id": "i-0a000000"}),
        }
        assert read_message(json.dumps(body)).reason != "no_op"
    assert len(patterns) == 5


@pytest.fixture
async def traffic(stage: Stage) -> set[str]:
    """Everything that the adapter does in the life of a class and an instance."""
    stage.patch(zonalShift={"zonalShifts": []})
    await stage.adapter.check()
    sources = stage.adapter.offerings.sources
    await PriceRefresh(stage.adapter.calls, sources.prices, stage.adapter.settings).refresh()
    await stage.with_class(
        placementGroupSelector={"name": "none"},
        capacityReservationSelectorTerms=[{"id": "cr-0"}],
    )
    await stage.with_class()
    launched = await stage.launched(a_claim())
    await stage.adapter.cloud.find(provider_id=launched.provider_id)
    await stage.adapter.cloud.terminate(launched.provider_id)
    interruptions = stage.adapter.interruptions
    stage.server.control("POST", "sqs", {"body": "{}"})
    await interruptions.acknowledge([message.receipt for message in await interruptions.receive()])
    await interruptions.troubles()
    await ZonalShift(stage.adapter.calls, "dovetail", stage.adapter.clock).zones()
    stage.classes.delete()
    await stage.upkeep.keep()
    return {f"{call['service']}:{call['op']}" for call in stage.server.calls(since=stage.since)}


async def test_every_call_is_allowed_and_every_allowed_action_is_used(traffic: set[str]) -> None:
    """AWS-161 to AWS-163: the fewest rights, action by action."""
    assert traffic - allowed() == set()
    assert allowed() - traffic - IMPLIED == set()
