"""Launching once: client tokens and faults around the effect (MOT-9, AWS-181)."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from tests.testbed.aws_clients import Aws, launched

POOL = ("m5.large", "subnet-0a")


def test_the_same_token_and_request_give_the_same_instance(aws: Aws) -> None:
    aws.template()

    first, second = aws.fleet(POOL, token="claim-1"), aws.fleet(POOL, token="claim-1")

    assert launched(first) == launched(second)
    assert len(aws.states()) == 1


def test_the_same_token_with_another_request_is_refused(aws: Aws) -> None:
    aws.template()
    aws.fleet(POOL, token="claim-1")

    with pytest.raises(ClientError) as refusal:
        aws.fleet(("m5.xlarge", "subnet-0a"), token="claim-1")

    assert refusal.value.response["Error"]["Code"] == "IdempotentParameterMismatch"


def test_another_token_launches_again(aws: Aws) -> None:
    aws.template()

    aws.fleet(POOL, token="claim-1")
    aws.fleet(POOL, token="claim-2")

    assert len(aws.states()) == 2


def test_run_instances_knows_tokens_too(aws: Aws) -> None:
    name = aws.template()
    request = {
        "LaunchTemplate": {"LaunchTemplateName": name},
        "InstanceType": "m5.large",
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": "claim-1",
    }

    first, second = aws.ec2.run_instances(**request), aws.ec2.run_instances(**request)

    assert first["Instances"][0]["InstanceId"] == second["Instances"][0]["InstanceId"]
    assert len(aws.states()) == 1


def test_ten_calls_at_once_with_one_token_launch_once(aws: Aws) -> None:
    aws.template()

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: aws.fleet(POOL, token="claim-1"), range(10)))

    assert len({each for answer in answers for each in launched(answer)}) == 1
    assert len(aws.states()) == 1


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ({"answer": "drop"}, ConnectionClosedError),
        ({"answer": "cut"}, ResponseParserError),
        ({"answer": "truncate"}, ResponseParserError),
        ({"when": "after", "code": "InternalError", "status": 500}, ClientError),
    ],
)
def test_a_launch_whose_answer_was_lost_is_found_again_by_its_token(
    aws: Aws, fault: dict[str, object], seen: type[Exception]
) -> None:
    """The fault strikes after the effect: the ledger has the instance, the caller has nothing."""
    aws.template()
    aws.server.control("POST", "rules/fail", [{"op": "CreateFleet", "times": 1, **fault}])

    with pytest.raises(seen):
        aws.fleet(POOL, token="claim-1")
    again = aws.fleet(POOL, token="claim-1")

    lost, found = aws.calls("CreateFleet")
    assert lost["instances"] == found["instances"] == launched(again) == list(aws.states())
    assert (lost["fault"]["when"], lost["token"], found["replayed"]) == ("after", "claim-1", True)


def test_a_late_answer_has_still_launched(aws: Aws) -> None:
    aws.template()
    aws.server.control("POST", "rules/fail", [{"op": "CreateFleet", "delay": 1.5, "times": 1}])
    impatient = aws.impatient(0.5)

    with pytest.raises(ReadTimeoutError):
        impatient.fleet(POOL, token="claim-1")

    assert [each["instances"] for each in aws.calls("CreateFleet")] == [list(aws.states())]
    assert len(aws.states()) == 1


def test_a_refusal_before_the_effect_launches_nothing_and_leaves_the_token_free(aws: Aws) -> None:
    aws.template()
    aws.patch_world(fail=[{"op": "CreateFleet", "code": "RequestLimitExceeded", "status": 503, "times": 1}])

    with pytest.raises(ClientError) as throttle:
        aws.fleet(POOL, token="claim-1")
    before = aws.states()
    after = aws.fleet(POOL, token="claim-1")

    assert throttle.value.response["Error"]["Code"] == "RequestLimitExceeded"
    assert throttle.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    assert (before, launched(after)) == ({}, list(aws.states()))


def test_no_capacity_is_an_answer_that_its_token_repeats(aws: Aws) -> None:
    """A launch known to have made nothing needs a new token (AWS-181: the generation rises)."""
    aws.template()
    aws.patch_world(ice=[{"times": 1}])

    first, second = aws.fleet(POOL, token="claim-1"), aws.fleet(POOL, token="claim-1")

    assert (launched(first), launched(second)) == ([], [])
    assert len(launched(aws.fleet(POOL, token="claim-1-again"))) == 1
