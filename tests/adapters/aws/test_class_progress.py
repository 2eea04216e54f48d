"""The condition NodesUpToDate of an EC2NodeClass: whether its latest change has reached its nodes."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.adapters.aws.drift import Judged
from dovetail.adapters.aws.node_class.conditions import READY, Verdict
from dovetail.adapters.aws.node_class.node_class import NodeClass, read_class
from dovetail.adapters.aws.upkeep.progress import progress_of
from dovetail.model.values.json import Json
from tests.adapters.aws.conftest import Stage
from worlds.aws import REFERENCE, ClassStore, a_claim_of_ec2

KIND = "NodesUpToDate"
UP = a_claim_of_ec2(name="up", provider_id="aws:///z/i-1")
OLD = a_claim_of_ec2(name="old", provider_id="aws:///z/i-2")
STARTING = a_claim_of_ec2(name="starting")


def a_class() -> NodeClass:
    store = ClassStore()
    store.apply()
    found = read_class(store.apply(userData="#!/bin/sh"))
    assert isinstance(found, NodeClass)
    assert found.generation == 2
    return found


def said(judged: dict[str, Judged], *claims: object, ready: str = "True") -> Verdict | None:
    before: list[Json] = [{"type": READY, "status": ready}]
    return progress_of(a_class(), claims, judged, before)  # type: ignore[arg-type]


def now_judged(reason: str, generation: int = 2) -> Judged:
    return Judged(generation=generation, reason=reason)


def test_nothing_is_said_of_a_generation_with_which_a_claim_has_not_been_compared() -> None:
    """It would say that all is done for the moments in which the drift is not found yet."""
    assert said({}, UP) is None
    assert said({UP.uid: now_judged("", generation=1)}, UP) is None
    assert said({UP.uid: now_judged("")}, UP, OLD) is None


def test_it_counts_the_claims_that_have_drifted_from_the_class() -> None:
    judged = {UP.uid: now_judged(""), OLD.uid: now_judged("AMIDrift")}
    some = Verdict(status="False", reason="RolloutInProgress", message="2/3 nodes are up to date")
    assert said(judged, UP, OLD, STARTING) == some
    assert said({**judged, OLD.uid: now_judged("")}, UP, OLD, STARTING) == Verdict(status="True", reason=KIND)
    assert said({}) == said({}, STARTING) == Verdict(status="True", reason=KIND)


def test_a_claim_that_is_leaving_is_judged_no_more_and_counts_as_it_did() -> None:
    leaving = replace(OLD, deleting_since=1.0)
    known = said({OLD.uid: now_judged("AMIDrift", generation=1)}, leaving)
    assert known is not None
    assert (known.status, known.message) == ("False", "0/1 nodes are up to date")
    assert said({}, leaving) == Verdict(status="True", reason=KIND)


def test_a_class_that_is_not_ready_blocks_its_own_roll_out() -> None:
    found = said({OLD.uid: now_judged("NodeClassDrift")}, OLD, ready="False")
    text = "0/1 nodes are up to date; NodeClass is not ready"
    assert found == Verdict(status="False", reason="RolloutBlocked", message=text)


async def test_a_change_of_a_class_is_said_with_its_generation_once_its_claims_are_judged(stage: Stage) -> None:
    """At rest nothing is written; the class stays ready, and the next resolution keeps the condition."""

    def condition() -> tuple[str, str, int]:
        [found] = [c for c in stage.classes.objects["default"]["status"]["conditions"] if c["type"] == KIND]
        return found["status"], found["message"], found["observedGeneration"]

    def version() -> str:
        found: str = stage.classes.objects["default"]["metadata"]["resourceVersion"]
        return found

    await stage.with_class()
    await stage.upkeep.keep()
    assert condition() == ("True", "", 1)
    rest = version()
    await stage.upkeep.keep()
    assert version() == rest

    claim = a_claim_of_ec2()
    instance = await stage.launched(claim)
    stage.claims.append(
        replace(
            claim,
            provider_id=instance.provider_id,
            labels={**claim.labels, **instance.labels},
            annotations=instance.annotations,
            image_id=instance.image_id,
        )
    )
    await stage.with_class(userData="#!/bin/sh")
    await stage.upkeep.keep()
    assert condition() == ("True", "", 1), "of the former generation, so that a gate waits"
    assert await stage.adapter.catalogues.drift(stage.claims[0]) == "NodeClassDrift"
    await stage.upkeep.keep()
    assert condition() == ("False", "0/1 nodes are up to date", 2)
    assert stage.classes.condition("Ready") == ("True", "Ready")
    stage.claims.clear()
    await stage.upkeep.keep()
    assert condition() == ("True", "", 2)
    state = await stage.adapter.catalogues.node_class(REFERENCE)
    assert state.ready == "True"


@pytest.mark.parametrize("fault", [{"code": "RequestLimitExceeded", "status": 503}, None])
async def test_nothing_is_said_of_a_change_whose_security_groups_are_not_known(
    stage: Stage, fault: dict[str, Any] | None
) -> None:
    """Neither while EC2 does not say them nor where it knows none: each claim would count as unchanged."""
    await stage.with_class()
    claim = a_claim_of_ec2()
    instance = await stage.launched(claim)
    labels = {**claim.labels, **instance.labels}
    stage.claims.append(
        replace(claim, provider_id=instance.provider_id, labels=labels, annotations=instance.annotations)
    )

    async def looked() -> list[tuple[str, int]]:
        await stage.adapter.catalogues.drift(stage.claims[0])
        await stage.upkeep.keep()
        conditions = stage.classes.objects["default"]["status"]["conditions"]
        return [(each["status"], each["observedGeneration"]) for each in conditions if each["type"] == KIND]

    assert await looked() == [("True", 1)]
    stage.patch(fail=[{"op": "DescribeSecurityGroups", **fault}] if fault else [])
    await stage.with_class(securityGroupSelectorTerms=[{"tags": {"team": "blue" if fault else "nobody"}}])
    assert await looked() == [("True", 1)]

    stage.patch(fail=[])
    await stage.with_class(securityGroupSelectorTerms=[{"tags": {"team": "blue"}}, {"id": "sg-03"}])
    assert await looked() == [("False", stage.classes.objects["default"]["metadata"]["generation"])]
