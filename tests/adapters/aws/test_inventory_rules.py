"""Which instances are this cluster's, and what is known of them (AWS-101 to AWS-106)."""

import asyncio

import pytest

from dovetail.model.values.json import Json
from dovetail.ports.cloud import Instance
from dovetail.ports.failures import Retryable, Unreachable
from tests.adapters.aws.conftest import Stage

OURS = {
    "karpenter.sh/nodepool": "default",
    "karpenter.k8s.aws/ec2nodeclass": "default",
    "eks:eks-cluster-name": "dovetail",
}
OWNED = {**OURS, "kubernetes.io/cluster/dovetail": "owned"}  # without it the policy lets nobody end them


def added(stage: Stage, **given: Json) -> str:
    made: Json = stage.server.control("POST", "instances", {"type": "m5.large", **given})
    return f"aws:///{made['zone']}/{made['id']}"


async def listed(stage: Stage) -> set[str]:
    return {each.provider_id for each in await stage.adapter.cloud.list_instances()}


async def test_instances_of_another_cluster_or_without_our_tags_are_not_listed(stage: Stage) -> None:
    """AWS-103: what is listed and has no claim is collected, so another cluster's instances must never be."""
    ours = added(stage, tags=OURS)
    added(stage, tags={**OURS, "eks:eks-cluster-name": "other"})
    for missing in OURS:
        added(stage, tags={key: value for key, value in OURS.items() if key != missing})

    assert await listed(stage) == {ours}


@pytest.mark.parametrize(
    ("state", "known"),
    [
        ("pending", True),
        ("running", True),
        ("stopping", True),
        ("stopped", True),
        ("shutting-down", True),
        ("terminated", False),
    ],
)
async def test_five_states_are_alive(stage: Stage, state: str, known: bool) -> None:
    """AWS-101, AWS-103."""
    stage.patch(shutdownSeconds=600)
    provider_id = added(stage, tags=OURS)
    stage.server.control("PATCH", "instances/first", {"state": state})

    found = await stage.adapter.cloud.find(provider_id=provider_id)

    assert ((found is not None), await listed(stage)) == (known, {provider_id} if known else set())


@pytest.mark.parametrize(
    ("state", "answer", "calls"), [("shutting-down", "terminating", 0), ("running", "terminating", 1)]
)
async def test_an_instance_that_shuts_down_is_not_terminated_again(
    stage: Stage, state: str, answer: str, calls: int
) -> None:
    """AWS-105, AWS-106."""
    stage.patch(shutdownSeconds=600)
    provider_id = added(stage, tags=OWNED)
    stage.server.control("PATCH", "instances/first", {"state": state})

    assert await stage.adapter.cloud.terminate(provider_id) == answer
    assert len(stage.calls("TerminateInstances")) == calls


async def test_terminations_that_come_together_are_one_call_and_a_refused_one_holds_up_no_other(stage: Stage) -> None:
    """AWS-106, AWS-166: EC2 ends all instances of a call or none."""
    good = [added(stage, tags=OWNED) for _ in range(6)]
    bad = added(stage, tags=OWNED)
    stage.patch(fail=[{"op": "TerminateInstances", "has": bad.rpartition("/")[2], "code": "OperationNotPermitted"}])

    ends = [stage.adapter.cloud.terminate(provider_id) for provider_id in (*good, bad)]
    answers = await asyncio.gather(*ends, return_exceptions=True)

    assert answers[:6] == ["terminating"] * 6
    assert isinstance(answers[6], Retryable)
    first, *halves = stage.calls("TerminateInstances")
    assert len(first["input"]["InstanceIds"]) == 7
    assert len(halves) <= 6


async def found_together(stage: Stage, *provider_ids: str) -> list[str | None]:
    """What comes of look-ups that share a call: the state, what went wrong, or None."""
    looks = [stage.adapter.cloud.find(provider_id=each) for each in provider_ids]
    answers = await asyncio.gather(*looks, return_exceptions=True)
    return [_what_came(each) for each in answers]


def _what_came(answer: Instance | BaseException | None) -> str | None:
    if isinstance(answer, Instance):
        return answer.state
    return None if answer is None else type(answer).__name__


async def test_a_text_that_is_no_id_of_ec2_spoils_no_look_up_of_others(stage: Stage) -> None:
    """AWS-2: EC2 refuses the whole call; its ids have eight digits or seventeen."""
    good = [added(stage, tags=OURS) for _ in range(2)]

    found = await found_together(stage, *good, "aws:///us-west-2a/i-123456789")

    assert found == ["running", "running", None]


async def test_an_id_that_ec2_does_not_take_fails_alone(stage: Stage) -> None:
    """AWS-102: the call is halved until the others have their answer."""
    good = [added(stage, tags=OURS) for _ in range(5)]
    odd = "i-abcdef01"
    stage.patch(fail=[{"op": "DescribeInstances", "has": odd, "code": "InvalidInstanceID.Malformed"}])

    found = await found_together(stage, *good, f"aws:///us-west-2a/{odd}")

    assert found == ["running"] * 5 + ["Refused"]


async def test_a_missing_right_is_not_asked_about_by_halves(stage: Stage) -> None:
    good = [added(stage, tags=OURS) for _ in range(4)]
    stage.patch(fail=[{"op": "DescribeInstances", "code": "UnauthorizedOperation", "status": 403}])

    assert await found_together(stage, *good) == ["Forbidden"] * 4
    assert len(stage.calls("DescribeInstances")) == 1


async def test_an_instance_that_an_answer_lacks_is_asked_for_alone_before_it_is_gone(stage: Stage) -> None:
    """AWS-102: while a zone is in trouble an answer may lack instances that run, and a node that is gone loses its
    finalizer."""
    good = [added(stage, tags=OURS) for _ in range(4)]
    stage.patch(fail=[{"op": "DescribeInstances", "when": "after", "answer": "half", "times": 1}])

    assert await found_together(stage, *good) == ["running"] * 4


async def test_an_answer_without_the_one_instance_that_was_asked_for_does_not_say_that_it_is_gone(stage: Stage) -> None:
    """AWS-102: EC2 refuses an id that it does not know, so such an answer is a part of one."""
    running = added(stage, tags=OWNED)
    stage.patch(fail=[{"op": "DescribeInstances", "when": "after", "answer": "half"}])

    assert await found_together(stage, running) == ["Unreachable"]
    with pytest.raises(Unreachable):
        await stage.adapter.cloud.terminate(running)

    stage.patch(fail=[])
    assert await found_together(stage, running) == ["running"]
    assert await stage.adapter.cloud.terminate(running) == "terminating"


async def test_an_instance_that_has_ended_is_gone_without_another_question(stage: Stage) -> None:
    running, ended = (added(stage, tags=OURS) for _ in range(2))
    stage.server.control("PATCH", f"instances/{ended.rpartition('/')[2]}", {"state": "terminated"})

    assert await found_together(stage, running, ended) == ["running", None]
    assert len(stage.calls("DescribeInstances")) == 1


async def test_hundreds_that_ec2_does_not_know_are_gone_and_the_others_are_found(stage: Stage) -> None:
    """AWS-102: EC2 takes 200 values of a filter."""
    good = added(stage, tags=OURS)
    unknown = [f"aws:///us-west-2a/i-{number:017x}" for number in range(0xA000, 0xA000 + 250)]

    assert await found_together(stage, good, *unknown) == ["running"] + [None] * 250
