"""Which instances are this cluster's, and what is known of them (AWS-101 to AWS-106)."""

import asyncio

import pytest

from dovetail.model.values.json import Json
from dovetail.ports.failures import Retryable
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
