"""What upstream's provider asked AWS for is asked of this server, and answered as the recorded one was (MOT-2)."""

from collections import Counter
from typing import Final

import pytest

from acceptance.traffic.cases import Case
from acceptance.traffic.lane import AS_RECORDED
from dovetail.model.values.json import Json
from tests.recorded.test_aws_traffic import PART, recorded
from tests.testbed.aws_clients import Aws
from tests.testbed.recorded_requests import Requests

# Where this server refuses and the recorded one did not.
STRICTER: Final = {
    "class-fields/subnet-zero": "a fleet launched into a subnet without a free address",
}


def answered(aws: Aws, case: Case) -> tuple[list[str], Counter[str]]:
    """What differs, and how many of each operation were sent."""
    aws.server.control("POST", "reset")
    declared: list[Json] = aws.server.control("GET", "world")["images"]
    # the recorded one knew no image's size, so that any volume was large enough
    images = [{key: value for key, value in each.items() if key != "rootGiB"} for each in declared]
    aws.patch_world(**AS_RECORDED, images=images)
    aws.patch_world(**case.given.get("world") or {})
    requests = Requests(aws)
    return list(requests.differences(case)), requests.sent


@pytest.mark.parametrize("name", PART)
def test_recorded_requests_are_answered_as_recorded(aws: Aws, name: str) -> None:
    different, sent = answered(aws, recorded()[name])

    assert different == [] and sent.total() > 0


@pytest.mark.soak
def test_all_recorded_requests_are_answered_as_recorded(aws: Aws) -> None:
    different, operations = {}, Counter[str]()
    for name, case in recorded().items():
        found, sent = answered(aws, case)
        operations += sent
        if found:
            different[name] = found

    assert different.keys() == STRICTER.keys()
    assert len(operations) == 30 and operations["CreateFleet"] > 300


def test_an_answer_that_differs_is_found(aws: Aws) -> None:
    """The comparison itself: a shortage that was not recorded, and a refusal."""
    case = recorded()["launches/basic"]
    worse = {**case.given, "world": {"ice": [{"zone": "us-west-2a"}], "fail": [{"op": "CreateTags", "code": "Busy"}]}}

    different, _ = answered(aws, Case(id="x", words="", file="x", given=worse, expected=case.expected))

    assert [each.split(": ")[1] for each in different] == ["CreateFleet", "CreateTags"]
