"""What goes on beside the steps goes on after any failure: prices, instance types, the upkeep of classes and claims."""

import asyncio
import threading
import time
from typing import Any

import pytest

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.prices import PriceRefresh
from dovetail.adapters.aws.instance_types.region_types import RegionTypes
from dovetail.adapters.aws.meters import called
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.resolution import Resolution, Resolved
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.adapters.aws.upkeep.tagging import Tagging
from dovetail.background.supervised import task_troubles
from dovetail.model.nodes import NodeClassRef
from dovetail.model.values.backoff import Backoff
from tests.adapters.aws.conftest import Stage
from worlds.aws import a_claim_of_ec2


class Odd:
    """A refresh that meets an answer which nobody foresaw, twice, and is well after that."""

    def __init__(self) -> None:
        self.asked, self.well = 0, asyncio.Event()

    async def refresh(self, *_: Any) -> None:
        self.asked += 1
        if self.asked < 3:
            raise ValueError("could not convert string to float: 'n/a'")
        self.well.set()


@pytest.mark.parametrize(("owner", "task"), [(PriceRefresh, "aws prices"), (RegionTypes, "aws instance types")])
async def test_a_refresh_that_fails_unexpectedly_is_started_anew_and_counted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, owner: type, task: str
) -> None:
    odd, quiet = Odd(), Odd()
    quiet.asked = 3
    monkeypatch.setattr("dovetail.background.supervised.PAUSES", Backoff(first=0.0, longest=0.0))
    for each in (PriceRefresh, RegionTypes):
        monkeypatch.setattr(each, "refresh", (odd if each is owner else quiet).refresh)

    stage.adapter.start()
    await asyncio.wait_for(odd.well.wait(), 30)

    [trouble] = [line for line in task_troubles() if line.startswith(f"{task} has failed 2 times")]
    assert "'n/a'" in trouble


async def test_prices_are_waited_for_until_aws_has_been_asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that answered at once reckoned with the prices that came with the release."""
    answered = asyncio.Event()

    async def refresh(self: PriceRefresh) -> None:
        await answered.wait()

    monkeypatch.setattr(PriceRefresh, "refresh", refresh)
    stage.adapter.start()
    waiting = asyncio.create_task(stage.adapter.priced())

    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    answered.set()
    await asyncio.wait_for(waiting, 30)


async def test_prices_that_do_not_come_are_waited_for_no_longer_than_a_command_may(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dovetail.adapters.aws.adapter._PRICED_WITHIN", 0.01)

    await stage.adapter.priced()

    assert "prices are those that came with the release" in caplog.text


async def test_a_class_that_fails_unexpectedly_holds_up_no_other(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = Resolution.resolve

    async def odd(self: Resolution, node_class: NodeClass) -> Resolved:
        if node_class.name == "odd":
            raise KeyError("Images")
        return await resolve(self, node_class)

    monkeypatch.setattr(Resolution, "resolve", odd)
    stage.classes.apply("odd")
    stage.classes.apply("well")

    again = await stage.upkeep.keep()

    assert stage.classes.condition("Ready", "well") == ("True", "Ready")
    assert stage.classes.condition("Ready", "odd") == ("", "")
    assert again <= stage.adapter.clock() + 1.0, "the odd one is looked at again"


async def test_a_claim_that_fails_unexpectedly_holds_up_no_class(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def odd(*_: Any) -> None:
        raise KeyError("Tags")

    monkeypatch.setattr(Tagging, "_tag", odd)
    stage.claims.append(a_claim_of_ec2(provider_id="aws:///us-west-2a/i-0a000000", node_name="n"))
    stage.classes.apply()

    again = await stage.upkeep.keep()

    assert stage.classes.condition("Ready") == ("True", "Ready")
    assert again <= stage.adapter.clock() + 1.0


async def test_claims_of_another_provider_are_left_alone(stage: Stage) -> None:
    """Their instances are no instances of EC2."""
    other = NodeClassRef(group="karpenter.other.example", kind="OtherNodeClass", name="default")
    stage.claims.append(a_claim_of_ec2(node_class=other, provider_id="other:///zone/vm-1", node_name="n"))

    await stage.upkeep.keep()

    assert stage.calls("DescribeInstances") == stage.calls("CreateTags") == []


async def test_a_process_that_ends_waits_for_calls_under_way_and_not_for_the_question_for_warnings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The question may be twenty seconds without an answer; a worker stayed for it."""
    asked, answer, ended = [threading.Event(), threading.Event()], threading.Event(), list[str]()

    def blocking(self: Calls, service: str, operation: str, parameters: Any) -> Any:
        asked[service == "sqs"].set()
        if service == "sqs":
            assert answer.wait(60.0)
        else:
            time.sleep(0.2)
        ended.append(service)
        return {}

    monkeypatch.setattr(Calls, "_blocking", blocking)
    calls = Calls(AwsSettings(cluster="c", region="us-west-2"), agent="dovetail", observe=called, read_only=False)
    questions = [asyncio.create_task(calls.attempt(*call)) for call in (("sqs", "ReceiveMessage"), ("iam", "GetRole"))]
    for each in asked:
        await asyncio.to_thread(each.wait, 60.0)

    await asyncio.wait_for(calls.close(), 30.0)

    assert ended == ["iam"]
    answer.set()
    await asyncio.gather(*questions)
