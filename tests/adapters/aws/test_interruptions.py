"""Warnings: what messages say, that none is lost, and what is remembered of the offering."""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio import activity

from dovetail.activities.interruptions import watch_interruptions
from dovetail.activities.interruptions.watch_interruptions import WatchInterruptions
from dovetail.activities.shared.every_step.step_health import StepHealth
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import Denied
from dovetail.adapters.aws.interruptions import queue
from dovetail.adapters.aws.interruptions.instance_checks import borne_out, read_status
from dovetail.adapters.aws.interruptions.messages import ForeignMessage, Place, UnreadableMessage, read_message
from dovetail.answers.doctor.cluster import warnings_check
from dovetail.connection.presence import TemporalPresence
from dovetail.messages.interruptions import InterruptionReason, Warned
from dovetail.model import names as core
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.json import Json
from dovetail.ports.failures import Unreachable
from dovetail.ports.interruptions import Message
from dovetail.settings.settings import Settings
from dovetail.worker.self_watch import SelfWatch
from testbed.cloud.server import CloudServer
from testbed.cloud.settings import ACCOUNT
from tests.activities.test_step_health import as_a_worker_runs
from tests.adapters.aws.conftest import Stage
from worlds.aws import ClassStore, a_claim_of_ec2, any_kind, one_of, open_adapter

SPOT_WARNING = "EC2 Spot Instance Interruption Warning"
FIRST, SECOND = "i-0a000000", "i-0b000000"
IMPAIRED = 1_700_000_000.0
FAILED = {"Name": "reachability", "Status": "failed", "ImpairedSince": datetime.fromtimestamp(IMPAIRED, UTC)}


def envelope(detail_type: str, detail: dict[str, Any], source: str = "aws.ec2", **change: Any) -> str:
    body = {
        "version": "0",
        "id": "e1",
        "detail-type": detail_type,
        "source": source,
        "account": ACCOUNT,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "region": "us-west-2",
        "resources": [],
        "detail": detail,
        **change,
    }
    return json.dumps(body)


@pytest.mark.parametrize(
    ("body", "reason", "instances"),
    [
        (
            envelope(SPOT_WARNING, {"instance-id": FIRST, "instance-action": "terminate"}),
            "spot_interrupted",
            (FIRST,),
        ),
        (
            envelope("EC2 Instance Rebalance Recommendation", {"instance-id": FIRST}),
            "rebalance_recommendation",
            (FIRST,),
        ),
        (_state := envelope("EC2 Instance State-change Notification", {"instance-id": FIRST, "state": "stopping"}),
         "instance_stopped", (FIRST,)),
        (_state.replace("stopping", "Stopping"), "instance_stopped", (FIRST,)),
        (_state.replace("stopping", "shutting-down"), "instance_terminated", (FIRST,)),
        (_state.replace("stopping", "running"), "no_op", ()),
        (
            envelope(
                "AWS Health Event",
                {
                    "service": "EC2",
                    "eventTypeCategory": "scheduledChange",
                    "startTime": "Sat, 05 Jun 2026 15:10:09 GMT",
                    "affectedEntities": [{"entityValue": FIRST}, {"entityValue": SECOND}, {"entityValue": FIRST}],
                },
                "aws.health",
            ),
            "scheduled_change",
            (FIRST, SECOND),
        ),
        (
            envelope("AWS Health Event", {"service": "EC2", "eventTypeCategory": "issue"}, "aws.health"),
            "no_op",
            (),
        ),
        (
            envelope("AWS Health Event", {"service": "RDS", "eventTypeCategory": "scheduledChange"}, "aws.health"),
            "no_op",
            (),
        ),
        (
            envelope("EC2 Capacity Reservation Instance Interruption Warning", {"instance-id": FIRST}),
            "capacity_reservation_interrupted",
            (FIRST,),
        ),
        (envelope(SPOT_WARNING, {"instance-id": FIRST}, "aws.other"), "no_op", ()),
        (envelope(SPOT_WARNING, {"instance-id": FIRST}, version="1"), "no_op", ()),
        (envelope("Something New", {"x": 1}), "no_op", ()),
    ],
)  # fmt: skip
def test_a_message_is_recognised_by_version_source_and_type(body: str, reason: str, instances: tuple[str, ...]) -> None:
    """AWS-124, AWS-171."""
    found = read_message(body)

    assert (found.reason, found.instances, found.id) == (reason, instances, "e1")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not json",
        "[]",
        "{}",
        envelope(SPOT_WARNING, {}),
        envelope(SPOT_WARNING, {"instance-id": 7}),
        envelope(SPOT_WARNING, {"instance-id": FIRST}, time="yesterday"),
        "[" * 100_000,
        '{"detail": ' * 100_000,
        '{"version": ' + "9" * 5000 + "}",
        envelope(SPOT_WARNING, {"instance-id": "\ud800"}),
        envelope(SPOT_WARNING, {"instance-id": "i-" + "0" * 2000}),
        envelope(SPOT_WARNING, {"instance-id": "i-0a"}),
        envelope(SPOT_WARNING, {"instance-id": "i-0A000000"}),
        envelope(SPOT_WARNING, {"instance-id": "../i-0a000000"}),
        envelope(SPOT_WARNING, {"instance-id": "i-0a000000\n"}),
        envelope(SPOT_WARNING, {"instance-id": [FIRST]}),
        envelope(SPOT_WARNING, []),  # type: ignore[arg-type]
    ],
    ids=range(18),
)
def test_a_body_that_cannot_be_read_is_refused(body: str) -> None:
    """AWS-125."""
    with pytest.raises(UnreadableMessage):
        read_message(body)


def test_of_an_event_of_health_only_instances_count() -> None:
    """Volumes and ARNs may be named beside them, and whatever a stranger makes of it."""
    named = ["vol-0a000000", FIRST, "UNKNOWN", "i-" + "0" * 2000, "i-0123456789abcdef0"]
    detail = {
        "service": "EC2",
        "eventTypeCategory": "scheduledChange",
        "affectedEntities": [{"entityValue": each} for each in named],
    }

    assert read_message(envelope("AWS Health Event", detail, "aws.health")).instances == (
        FIRST,
        "i-0123456789abcdef0",
    )


def test_no_text_of_a_message_goes_on_at_full_length() -> None:
    """Ten messages are answered together, and what crosses into a workflow is bounded."""
    huge = envelope(SPOT_WARNING, {"instance-id": FIRST}, id="x" * 1_000_000)
    assert len(read_message(huge).id) == 100

    with pytest.raises(UnreadableMessage) as refused:
        read_message(envelope(SPOT_WARNING, {"instance-id": "y" * 1_000_000}))
    assert len(str(refused.value)) < 600


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
_KINDS = (
    ("aws.ec2", SPOT_WARNING),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    ("aws.ec2", "EC2 Instance State-change Notification"),
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
    ("aws.health", "AWS Health Event"),
)
_DETAILS = st.fixed_dictionaries(
    {},
    optional={
        "instance-id": st.just(FIRST) | _ANYTHING,
        "state": st.just("stopping") | _ANYTHING,
        "service": st.just("EC2"),
        "eventTypeCategory": st.just("scheduledChange"),
        "affectedEntities": st.lists(st.fixed_dictionaries({"entityValue": _ANYTHING}), max_size=3) | _ANYTHING,
    },
)


@pytest.mark.slow
@given(kind=st.sampled_from(_KINDS), detail=_DETAILS | _ANYTHING, change=st.dictionaries(
    st.sampled_from(["id", "time", "version", "source", "detail-type", "detail", "region"]), _ANYTHING, max_size=2
))  # fmt: skip
def test_whatever_a_message_says_it_is_a_bounded_warning_or_unreadable(
    kind: tuple[str, str], detail: Any, change: dict[str, Any]
) -> None:
    """AWS-125: a body of any shape neither stops the reading nor makes an id that a workflow cannot bear."""
    source, detail_type = kind
    body = json.dumps(
        {"version": "0", "id": "e", "source": source, "detail-type": detail_type, "detail": detail} | change
    )

    _bounded_or_unreadable(body)


@given(body=st.text(max_size=200) | _ANYTHING.map(json.dumps))
def test_whatever_a_body_is_it_is_a_bounded_warning_or_unreadable(body: str) -> None:
    _bounded_or_unreadable(body)


def _bounded_or_unreadable(body: str) -> None:
    try:
        found = read_message(body)
    except UnreadableMessage:
        return
    assert all(re.fullmatch("i-([0-9a-f]{8}|[0-9a-f]{17})", each) for each in found.instances)
    assert len(found.id) <= 100
    assert json.loads(json.dumps([found.id, found.at])) == [found.id, found.at]
    found.id.encode()


async def test_one_hostile_message_does_not_hold_up_the_others(stage: Stage) -> None:
    """AWS-125: those that came with it are read, and it is thrown away."""
    for body in ("[" * 100_000, envelope(SPOT_WARNING, {"instance-id": FIRST})):
        stage.server.control("POST", "sqs", {"body": body})

    read: list[Message] = []
    while len(read) < 2:
        read += await stage.adapter.interruptions.receive()

    assert sorted(each.interruption.instances[0] if each.interruption else "" for each in read) == ["", FIRST]
    assert next(each for each in read if each.interruption is None).problem.startswith("not a message of EventBridge")


@pytest.mark.parametrize(
    "change",
    [
        {"account": "999999999999"},
        {"region": "eu-west-1"},
        {"detail": {"instance-id": FIRST, "affectedAccount": "999999999999"}},
    ],
    ids=str,
)
async def test_a_warning_of_another_account_or_region_is_dropped_counted_and_said_once(
    stage: Stage, change: dict[str, Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-189."""
    counted: list[Mapping[str, str]] = []
    monkeypatch.setattr(queue, "count", lambda _, labels: counted.append(labels))
    warning, other = {"detail": {"instance-id": FIRST}, **change}, {"detail": {}, **change}
    bodies = [envelope(SPOT_WARNING, **warning)] * 3 + [envelope("Something New", **other)]
    for body in bodies:
        stage.server.control("POST", "sqs", {"body": body})
    stage.server.control("POST", "sqs", {"body": envelope(SPOT_WARNING, {"instance-id": SECOND})})
    interruptions, read = stage.adapter.interruptions, list[Message]()

    while len(read) < 5:
        read += await interruptions.receive()

    assert sorted(each.interruption.instances for each in read if each.interruption) == [(), (), (), (), (SECOND,)]
    assert [each.problem for each in read] == [""] * 5
    assert sorted(each["message_type"] for each in counted) == ["foreign"] * 3 + ["no_op", "spot_interrupted"]
    assert caplog.text.count("warnings are dropped") == 1


@pytest.mark.parametrize(("hours", "instances"), [(0.9, (FIRST,)), (1.1, ())])
async def test_a_warning_that_nobody_has_read_for_an_hour_is_dropped_whatever_time_it_names(
    stage: Stage, aws_calls: Calls, hours: float, instances: tuple[str, ...]
) -> None:
    """AWS-189: by the queue's own clock."""
    read = queue.WarningQueue(aws_calls, "dovetail", lambda: time.time() + hours * 3600)
    stage.server.control(
        "POST", "sqs", {"body": envelope(SPOT_WARNING, {"instance-id": FIRST}, time="2020-01-01T00:00:00Z")}
    )

    found: tuple[Message, ...] = ()
    while not found:
        found = await read.receive()

    assert [each.interruption.instances for each in found if each.interruption] == [instances]
    if instances:
        [sent] = [each.interruption.at for each in found if each.interruption]
        assert abs(time.time() - sent) < 60, "what is fresh is not the message's own word either"


def test_an_event_of_health_is_of_the_region_that_it_names_itself() -> None:
    """AWS sends a copy of each to another region."""
    detail = {
        "service": "EC2",
        "eventTypeCategory": "scheduledChange",
        "affectedEntities": [{"entityValue": FIRST}],
        "eventRegion": "us-west-2",
    }
    body = envelope("AWS Health Event", detail, "aws.health", region="us-east-1")

    assert read_message(body, Place(account=ACCOUNT, region="us-west-2")).instances == (FIRST,)
    with pytest.raises(ForeignMessage):
        read_message(body, Place(region="us-east-1"))


async def test_without_a_queue_ec2_is_asked_for_its_checks_all_the_same(
    aws_server: CloudServer, aws_calls: Calls, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-136: independent of SQS."""
    monkeypatch.setattr("dovetail.adapters.aws.interruptions.announcements.WAIT_SECONDS", 0.01)
    adapter = open_adapter(aws_server, ClassStore(), aws_calls, interruption_queue="")

    assert await adapter.interruptions.troubles() == ()
    assert await adapter.interruptions.receive() == ()
    await adapter.interruptions.acknowledge([])

    assert len(stage.calls("DescribeInstanceStatus")) == 3
    assert stage.calls("GetQueueUrl") == []


async def test_the_queue_is_read_while_ec2_hangs(aws_server: CloudServer, stage: Stage) -> None:
    """A spot warning leaves two minutes; calls that hang must not take the threads that read it."""
    stage.server.control("POST", "sqs", {"body": envelope(SPOT_WARNING, {"instance-id": FIRST})})
    stage.patch(fail=[{"op": "DescribeInstances", "delay": 2.0, "times": 4}])
    adapter = open_adapter(aws_server, ClassStore(), threads=2)
    await adapter.interruptions.troubles()  # clients are made before anything is timed
    hanging = [asyncio.ensure_future(adapter.calls.attempt("ec2", "DescribeInstances")) for _ in range(4)]
    await asyncio.sleep(0.2)

    (message,) = await adapter.interruptions.receive()
    await adapter.interruptions.acknowledge([message.receipt])
    await adapter.interruptions.troubles()

    assert not any(each.done() for each in hanging[2:]), "they wait for the two threads that hang"
    await asyncio.gather(*hanging)
    await adapter.close()


async def test_an_event_of_ec2_bears_out_one_of_health_and_nothing_else() -> None:
    """AWS-191: and what neither runs nor begins to, or is not known, bears out everything."""
    states = {FIRST: "running", SECOND: "stopped"}
    events = [{"Code": "instance-retirement", "Description": "x"}]
    rows = [{"InstanceId": each, "InstanceState": {"Name": state}} for each, state in states.items()]
    calls = Statuses([{**rows[0], "Events": events}, rows[1]])
    named = [*states, "i-0c000000", "not-an-id"]
    warned: list[Warned] = [(each, reason) for each in named for reason in get_args(InterruptionReason)]

    found = await borne_out(calls, warned, IMPAIRED)  # type: ignore[arg-type]

    every = set(get_args(InterruptionReason))
    assert {each: {reason for name, reason in found if name == each} for each in named} == {
        FIRST: {"event_status", "scheduled_change"},
        SECOND: every,
        "i-0c000000": every,
        "not-an-id": set(),
    }
    assert calls.asked == [["i-0a000000", "i-0b000000", "i-0c000000"], ["i-0a000000", "i-0b000000"]]


@pytest.mark.parametrize("words", ["The instance IDs '{}' do not exist", "Some ids do not exist"])
async def test_ids_that_ec2_does_not_know_do_not_hide_what_it_knows(words: str) -> None:
    """AWS-191: one such id has the whole question refused, which names up to a hundred."""
    ids = [f"i-{number:08x}" for number in range(250)]
    running = [{"InstanceId": each, "InstanceState": {"Name": "running"}} for each in ids if each[-1] != "7"]
    calls = Statuses(running, words)
    warned: list[Warned] = [(each, "instance_terminated") for each in ids]

    found = await borne_out(calls, warned, IMPAIRED)  # type: ignore[arg-type]

    assert sorted(name for name, _ in found) == [each for each in ids if each[-1] == "7"]
    assert max(len(each) for each in calls.asked) == 100


async def test_an_answer_that_lacks_an_instance_does_not_say_that_it_is_gone(stage: Stage) -> None:
    """AWS-191: EC2 refuses an id that it does not know; while a zone is in trouble its answers lack some that run."""
    await stage.with_class()
    identity = (await stage.launched(a_claim_of_ec2())).provider_id.rpartition("/")[2]
    stage.patch(fail=[{"op": "DescribeInstanceStatus", "when": "after", "answer": "half"}])
    warned: list[Warned] = [(identity, "instance_terminated"), (identity, "instance_status")]

    assert await stage.adapter.interruptions.borne_out(warned) == frozenset()


class Statuses:
    """EC2, which knows some instances."""

    def __init__(self, rows: list[Json], words: str = "The instance IDs '{}' do not exist") -> None:
        self.rows, self.words = {row["InstanceId"]: row for row in rows}, words
        self.asked: list[list[str]] = []

    async def attempt(self, service: str, operation: str, **given: Any) -> Json | Denied:
        assert (service, operation, given["IncludeAllInstances"]) == ("ec2", "DescribeInstanceStatus", True)
        self.asked.append(given["InstanceIds"])
        unknown = [each for each in given["InstanceIds"] if each not in self.rows]
        if unknown:
            return Denied(code="InvalidInstanceID.NotFound", message=self.words.format(", ".join(unknown)))
        return {"InstanceStatuses": [self.rows[each] for each in given["InstanceIds"]]}


async def test_ec2_is_asked_whether_an_instance_that_is_said_to_have_ended_has(stage: Stage) -> None:
    """AWS-191."""
    await stage.with_class()
    identity = (await stage.launched(a_claim_of_ec2())).provider_id.rpartition("/")[2]
    warned: list[Warned] = [(identity, "instance_terminated"), (SECOND, "instance_terminated")]

    before = await stage.adapter.interruptions.borne_out(warned)
    stage.server.control("PATCH", f"instances/{identity}", {"state": "stopping"})

    after = await stage.adapter.interruptions.borne_out(warned)

    assert (before, after) == (frozenset(warned[1:]), frozenset(warned))


async def test_without_the_right_to_ask_ec2_warnings_are_believed_but_for_a_mass(stage: Stage) -> None:
    """AWS-191."""
    stage.patch(fail=[{"op": "DescribeInstanceStatus", "code": "UnauthorizedOperation", "status": 403}])
    warned: list[Warned] = [(FIRST, "instance_terminated"), (FIRST, "spot_interrupted")]

    interruptions = stage.adapter.interruptions
    found = [await interruptions.borne_out(warned) for _ in range(2)]

    assert found == [{warned[0]}] * 2
    assert len(stage.calls("DescribeInstanceStatus")) == 1


async def test_a_message_comes_until_it_is_acknowledged(stage: Stage) -> None:
    """AWS-123, AWS-127, AWS-187."""
    interruptions = stage.adapter.interruptions
    stage.server.control("POST", "sqs", {"body": envelope(SPOT_WARNING, {"instance-id": FIRST})})

    (message,) = await interruptions.receive()
    assert message.interruption is not None
    assert message.interruption.instances == (FIRST,)
    await interruptions.acknowledge([message.receipt])
    await interruptions.acknowledge([message.receipt])

    (call,) = stage.calls("ReceiveMessage")
    assert {key: call["input"][key] for key in ("MaxNumberOfMessages", "WaitTimeSeconds", "VisibilityTimeout")} == {
        "MaxNumberOfMessages": 10,
        "WaitTimeSeconds": 20,
        "VisibilityTimeout": 20,
    }


async def test_who_only_tries_the_queue_takes_no_message_from_its_reader(stage: Stage) -> None:
    stage.server.control("POST", "sqs", {"body": envelope(SPOT_WARNING, {"instance-id": FIRST})})
    interruptions = stage.adapter.interruptions

    await interruptions.try_reading()
    (message,) = await interruptions.receive()

    assert message.interruption is not None
    assert message.interruption.instances == (FIRST,)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"op": "ReceiveMessage", "code": "AccessDenied", "status": 403}, "sqs:ReceiveMessage: "),
        ({"op": "GetQueueUrl", "code": "AccessDenied", "status": 403}, "sqs:GetQueueUrl: "),
        ({"op": "GetQueueUrl", "code": "QueueDoesNotExist", "status": 400}, "queue dovetail does not exist"),
    ],
)
async def test_a_queue_that_cannot_be_read_is_listed_alerted_and_named_by_doctor_and_restarts_nothing(
    stage: Stage, fault: Json, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spot nodes died undrained with no step failing and `doctor` content; ten minutes later worker after worker was
    killed for it, with the drains and launches that it had in hand."""
    stage.patch(fail=[fault])
    clock, tried = [1000.0], asyncio.Semaphore(0)
    steps, presence = StepHealth(lambda: clock[0]), TemporalPresence("c")
    watch = SelfWatch(view=None, why_unfit=str, steps=steps, presence=presence)  # type: ignore[arg-type]  # not asked here
    queue_of_bed = stage.adapter.interruptions
    ask = queue_of_bed.receive

    async def receive() -> tuple[Message, ...]:
        clock[0] += 10.0
        tried.release()
        return await ask()

    monkeypatch.setattr(watch_interruptions, "_PAUSES", Backoff(first=0.0, longest=0.0))
    monkeypatch.setattr(watch_interruptions, "least_wait", lambda failure: 0.0)
    monkeypatch.setattr(queue_of_bed, "receive", receive, raising=False)
    answers: Any = SimpleNamespace(answering=SimpleNamespace(ours=list))
    step = WatchInterruptions("c", queue_of_bed, lambda: clock[0], answers, client=activity.client)
    running = asyncio.create_task(as_a_worker_runs(step.watch_interruptions, steps, "watch_interruptions"))
    for _ in range(70):
        await tried.acquire()

    lines, samples = watch.troubles(), {(each.name, each.labels): each.value for each in watch.samples()}
    world: Any = SimpleNamespace(interruptions=queue_of_bed)
    seen = asyncio.ensure_future(asyncio.sleep(0))
    checks = await warnings_check(world, Settings(cluster="c"), seen)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert watch.stuck() == []
    named = [line for line in lines if line.startswith("watch_interruptions (reading) of c/w has failed")]
    assert [words in line for line in named] == [True]
    [failing] = {labels for name, labels in samples if name == "steps_failing"}
    assert dict(failing)["step"] == "watch_interruptions"
    assert samples["loop_last_look_age_seconds", (("loop", "interruptions"),)] > 600.0, "the alert on loops fires too"
    [check] = checks
    assert (check.name, check.verdict) == ("warnings", "fails")
    assert words in check.found


@pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])
async def test_a_queue_that_does_not_exist_is_tried_again(stage: Stage, code: str) -> None:
    """AWS-108, AWS-122."""
    stage.patch(fail=[{"op": "GetQueueUrl", "code": code, "status": 400, "times": 1}])
    interruptions = stage.adapter.interruptions

    with pytest.raises(Unreachable, match="queue dovetail does not exist"):
        await interruptions.acknowledge(["x"])


async def test_a_queue_that_has_gone_is_looked_for_under_its_name_again(stage: Stage) -> None:
    """AWS-122: one that was made anew may have another address."""
    interruptions = stage.adapter.interruptions
    stage.server.control("POST", "sqs", {"body": envelope(SPOT_WARNING, {"instance-id": FIRST})})
    (message,) = await interruptions.receive()
    stage.patch(fail=[{"op": "DeleteMessage", "code": "QueueDoesNotExist", "status": 400, "times": 1}])

    with pytest.raises(Unreachable, match="queue dovetail does not exist"):
        await interruptions.acknowledge([message.receipt])
    await interruptions.acknowledge([message.receipt])

    assert len(stage.calls("GetQueueUrl")) == 2


async def test_a_spot_warning_keeps_its_pool_out_of_the_next_launch(stage: Stage) -> None:
    """AWS-133: before the next plan, in this process and in the others."""
    await stage.with_class()
    interruptions = stage.adapter.interruptions
    claim = a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large"), any_kind())
    launched = await stage.launched(claim)
    claim_with_labels = a_claim_of_ec2(labels=dict(launched.labels))
    warning = read_message(envelope(SPOT_WARNING, {"instance-id": FIRST}))

    await interruptions.learn_from(warning, claim_with_labels)
    second = await stage.launched(a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large"), any_kind()))

    assert (launched.labels[core.ZONE], second.labels[core.ZONE]) == ("us-west-2a", "us-west-2b")


def test_failed_reachability_counts_after_two_minutes_and_a_finished_event_never() -> None:
    """AWS-137, AWS-179."""
    since = datetime(2026, 1, 1, tzinfo=UTC)
    failed = {"Details": [{"Name": "reachability", "Status": "failed", "ImpairedSince": since}]}
    row = {
        "InstanceId": FIRST,
        "InstanceStatus": failed,
        "SystemStatus": {"Details": [{"Name": "attached-ebs", "Status": "failed", "ImpairedSince": since}]},
        "Events": [{"Code": "instance-reboot", "Description": "[Completed] rebooted"}],
    }

    assert read_status(row, since.timestamp() + 119) == []
    assert [each.reason for each in read_status(row, since.timestamp() + 120)] == ["instance_status"]
    row["Events"] = [{"Code": "instance-retirement", "Description": "x"}]
    assert [each.reason for each in read_status(row, since.timestamp())] == ["event_status"]


async def test_troubles_are_read_with_three_filters(stage: Stage) -> None:
    """AWS-136."""
    interruptions = stage.adapter.interruptions

    assert await interruptions.troubles() == ()
    asked = [call["input"]["Filters"][0]["Name"] for call in stage.calls("DescribeInstanceStatus")]
    assert asked == ["instance-status.status", "system-status.status", "event.code"]


@pytest.mark.parametrize(
    ("status", "reasons"),
    [
        ({"InstanceStatus": {"Details": [FAILED]}}, ["instance_status"]),
        ({"SystemStatus": {"Details": [FAILED]}}, ["system_status"]),
        ({"Events": [{"Code": "instance-stop"}]}, ["event_status"]),
        ({"SystemStatus": {"Details": [{**FAILED, "Name": "volume"}]}}, []),
        ({"SystemStatus": {"Details": [{**FAILED, "Status": "passed"}]}}, []),
    ],
)
def test_what_the_checks_of_an_instance_say_is_of_three_kinds(status: Json, reasons: list[str]) -> None:
    """AWS-136."""
    assert [each.reason for each in read_status({"InstanceId": FIRST, **status}, IMPAIRED + 120.0)] == reasons
