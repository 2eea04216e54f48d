"""The answer to a warning: whose claim goes, what is remembered first, which notices are published."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any, get_args

import pytest
from pytest import MonkeyPatch
from temporalio.testing import ActivityEnvironment

from dovetail.activities.interruptions.answer_interruptions import AnswerInterruptions
from dovetail.activities.interruptions.tell_interruptions import InterruptionNotices
from dovetail.activities.interruptions.watch_interruptions import InstanceChecks
from dovetail.background.supervised import stop, supervised, task_troubles
from dovetail.messages.interruptions import Answered, Interruption, InterruptionReason, Warned
from dovetail.messages.writes import Write
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef
from dovetail.model.reasons.endings import OF_REASONS
from dovetail.model.snapshot import Snapshot
from dovetail.notices.notice import Notice
from dovetail.ports.failures import NotSeenYet, Postponed
from dovetail.ports.interruptions import Message
from dovetail.ports.objects import ClaimStatus, MetadataChange, NewClaim

NOW = 1_000_000.0
CLASS = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")


class World:
    """A claim with its node, and everything that the steps ask."""

    def __init__(self, **change: object) -> None:
        self.claim = replace(
            NodeClaim(
                name="default-a",
                uid="u1",
                labels={names.CAPACITY_TYPE: names.CAPACITY_SPOT},
                node_class=CLASS,
                requests={},
                capacity={},
                allocatable={},
                provider_id="aws:///us-west-2a/i-0a",
                node_name="node-a",
            ),
            **change,  # type: ignore[arg-type]
        )
        node = Node(name="node-a", uid="n1", labels={}, capacity={}, allocatable={})
        self.snapshot_now = replace(Snapshot(now=NOW), claims={self.claim.name: self.claim}, nodes={node.name: node})
        self.done: list[str] = []
        self.asked: list[list[Warned]] = []
        self.truth: frozenset[Warned] = frozenset(("i-0a", reason) for reason in get_args(InterruptionReason))
        self.said: list[Notice] = []
        self.texts: list[str | None] = []

    def snapshot(self, reads: object = None) -> Snapshot:
        return self.snapshot_now

    async def borne_out(self, warned: Collection[Warned]) -> frozenset[Warned]:
        self.asked.append(sorted(warned))
        return self.truth & frozenset(warned)

    async def learn_from(self, interruption: Interruption, claim: NodeClaim) -> None:
        self.done.append("remembered")

    async def delete(self, name: str, uid: str) -> int:
        self.done.append(f"deleted {name} {uid}")
        return 1

    async def read(self, name: str) -> NodeClaim | None:
        return self.claim

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        self.done.append(f"annotated {sorted(change.annotations)}")
        self.texts = [*self.texts, *change.annotations.values()]
        return claim

    async def publish(self, *notices: Notice) -> None:
        self.said += notices

    # what the ports have beside, and no step here asks for
    async def create(self, claim: NewClaim) -> NodeClaim:
        raise AssertionError("not asked for")

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        raise AssertionError("not asked for")

    async def receive(self) -> tuple[Message, ...]:
        raise AssertionError("not asked for")

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        raise AssertionError("not asked for")

    async def troubles(self) -> tuple[Interruption, ...]:
        raise AssertionError("not asked for")


def a_warning(reason: InterruptionReason, instance: str = "i-0a") -> Interruption:
    return Interruption(id="e1", reason=reason, instances=(instance,), at=NOW)


async def answered(world: World, warning: Interruption) -> list[str]:
    """What was done, and the reasons of what was said."""
    result = await AnswerInterruptions(world, world, world, lambda: NOW).answer_interruptions((warning,))  # type: ignore[arg-type]
    await InterruptionNotices(world, world).tell_interruptions(result)  # type: ignore[arg-type]
    return world.done + sorted(f"{notice.kind} {notice.reason}" for notice in world.said)


async def test_a_spot_warning_is_remembered_and_then_deletes_the_claim() -> None:
    """AWS-129, AWS-130, AWS-133."""
    assert await answered(World(), a_warning("spot_interrupted")) == [
        "remembered",
        "annotated ['dovetail.sh/ended-because']",
        "deleted default-a u1",
        "Node SpotInterrupted",
        "Node TerminatingOnInterruption",
        "NodeClaim SpotInterrupted",
        "NodeClaim TerminatingOnInterruption",
    ]


@pytest.mark.parametrize("reason", get_args(InterruptionReason))
async def test_every_warning_that_deletes_a_claim_writes_why(reason: InterruptionReason) -> None:
    """NodeClaims are gone one day, and a deletion does not say who asked for it."""
    world, warning = World(), a_warning(reason)

    await answered(world, warning)

    assert (OF_REASONS[reason] in world.texts) if warning.ends_instances else not world.texts


@pytest.mark.parametrize(("leaving", "deleted"), [(None, ["deleted default-a u1"]), (5.0, [])])
async def test_a_disruption_under_way_learns_that_the_instance_ends(leaving: float | None, deleted: list[str]) -> None:
    """Its pods do not wait for others any more, also where the claim is being deleted already."""
    marked = (Condition(type="DisruptionReason", status="True", reason="Drifted"),)
    world = World(conditions=marked, deleting_since=leaving)

    done = await answered(world, a_warning("spot_interrupted"))

    assert done[: 2 + len(deleted)] == ["remembered", "annotated ['dovetail.sh/interrupted']", *deleted]


async def test_a_node_that_is_rebooted_is_none_that_leaves_already() -> None:
    """Its condition says why, as that of a disruption does; that its instance ends is written as for any that stays."""
    conditions = tuple(Condition(type=kind, status="True") for kind in ("DisruptionReason", names.REBOOTING))
    world = World(conditions=conditions, annotations={names.REBOOT_GRACE: "300s"})

    done = await answered(world, a_warning("spot_interrupted"))

    assert "annotated ['dovetail.sh/interrupted']" not in done and "deleted default-a u1" in done
    assert OF_REASONS["spot_interrupted"] in world.texts


@pytest.mark.parametrize("reason", get_args(InterruptionReason))
async def test_a_disruption_under_way_hurries_for_nothing_that_the_cloud_does_not_confirm(
    reason: InterruptionReason,
) -> None:
    """AWS-191: pods that wait for others and hooks would be cut short by a message."""
    marked = (Condition(type="DisruptionReason", status="True", reason="Drifted"),)
    world = World(conditions=marked, deleting_since=5.0, labels={names.CAPACITY_TYPE: names.CAPACITY_ON_DEMAND})
    true, world.truth = world.truth, frozenset()
    of_another_day = reason in ("rebalance_recommendation", "scheduled_change", "event_status", "no_op")

    with nullcontext() if of_another_day else pytest.raises(Postponed):
        await answered(world, a_warning(reason))
    assert world.texts == []
    world.truth = true
    await answered(world, a_warning(reason))

    assert len(world.texts) == (not of_another_day)


def of_this_cluster(world: World, *instances: str) -> list[str]:
    """Of warnings about these instances, those that are answered."""
    warnings = [a_warning("instance_terminated", instance) for instance in instances]
    answering = AnswerInterruptions(world, world, world, lambda: NOW)  # type: ignore[arg-type]
    return [instance for each in answering.ours(warnings) for instance in each.instances]


def test_what_happens_to_the_instances_of_others_in_the_account_starts_nothing() -> None:
    """One message about an outage may name nine thousand of them: ninety workflows with nothing to do."""
    assert of_this_cluster(World(), "i-0b", "i-0a", "i-0c") == ["i-0a"]


def test_all_warnings_are_answered_while_a_claim_does_not_name_its_instance_yet() -> None:
    assert of_this_cluster(World(provider_id=""), "i-0b") == ["i-0b"]


def test_all_warnings_are_answered_while_the_claims_cannot_be_seen(monkeypatch: MonkeyPatch) -> None:
    def unseen(world: World, reads: object = None) -> Snapshot:
        raise NotSeenYet("nodeclaims", "the watch is broken")

    monkeypatch.setattr(World, "snapshot", unseen)

    assert of_this_cluster(World(), "i-0b") == ["i-0b"]


class Fleet(World):
    """Claims of one capacity type, by the names of their instances; a delete is seen at once."""

    def __init__(self, size: int, capacity: str = names.CAPACITY_SPOT) -> None:
        super().__init__(labels={names.CAPACITY_TYPE: capacity})
        self.truth, self.moment, self.version = frozenset(), NOW, 100
        claims = {
            f"c-{n:03}": replace(self.claim, name=f"c-{n:03}", uid=f"u{n}", provider_id=f"aws:///z/i-{n:03}")
            for n in range(size)
        }
        self.snapshot_now = replace(self.snapshot_now, claims=claims)

    def _change(self, name: str, **change: Any) -> NodeClaim:
        self.version += 1
        changed = replace(self.snapshot_now.claims[name], resource_version=str(self.version), **change)
        self.snapshot_now = replace(self.snapshot_now, claims={**self.snapshot_now.claims, name: changed})
        return changed

    async def read(self, name: str) -> NodeClaim | None:
        return self.snapshot_now.claims[name]

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        kept = {key: text for key, text in {**claim.annotations, **change.annotations}.items() if text is not None}
        return self._change(claim.name, annotations=kept)

    async def catch_up(self, writes: Sequence[Write]) -> None:
        assert all(write.version <= self.version for write in writes)

    async def delete(self, name: str, uid: str) -> int:
        self._change(name, deleting_since=self.moment)
        self.done.append(name)
        return 1

    async def answer(self, reason: InterruptionReason, instances: int, at: float = NOW, attempt: int = 1) -> Answered:
        """One warning for each, as the step is given them; the first answer."""
        given = tuple(Interruption(id=str(n), reason=reason, instances=(f"i-{n:03}",), at=at) for n in range(instances))
        answering = AnswerInterruptions(self, self, self, lambda: self.moment)  # type: ignore[arg-type]
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, attempt=attempt)
        return (await environment.run(answering.answer_interruptions, given))[0]


@pytest.mark.parametrize("reason", [each for each in get_args(InterruptionReason) if each != "no_op"])
async def test_the_cloud_is_asked_before_anything_but_capacity_taken_back_deletes_a_claim(
    reason: InterruptionReason,
) -> None:
    """AWS-191."""
    world = Fleet(1)

    if reason in ("spot_interrupted", "rebalance_recommendation"):
        await world.answer(reason, 1)
        assert (world.asked, world.done) == ([], ["remembered", "c-000"][: 1 + (reason == "spot_interrupted")])
        return
    with pytest.raises(Postponed, match=f"c-000 .{reason.replace('_', ' ')}"):
        await world.answer(reason, 1)
    assert (world.asked, world.done) == ([[("i-000", reason)]], [])
    world.truth = frozenset({("i-000", reason)})
    await world.answer(reason, 1, attempt=2)
    assert world.done == ["remembered", "c-000"]


async def test_what_the_cloud_does_not_bear_out_is_dropped_after_five_minutes_counted_and_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: MonkeyPatch
) -> None:
    """AWS-191: and no notice speaks of it."""
    counted: list[str] = []
    monkeypatch.setattr("dovetail.activities.interruptions.answer_interruptions.not_borne_out", counted.append)
    world = Fleet(2)
    for seconds in (1.0, 299.0):
        world.moment = NOW + seconds
        with pytest.raises(Postponed):
            await world.answer("instance_stopped", 2)
    world.moment = NOW + 300

    answered = await world.answer("instance_stopped", 2)

    assert (answered.claims, answered.deleted, world.done) == ((), (), [])
    assert counted == ["instance_stopped"] * 2
    assert caplog.text.count("NodeClaim c-000 (instance stopped), NodeClaim c-001 (instance stopped)") == 1


@pytest.mark.parametrize("at", [0.0, NOW - 300, NOW + 300])
async def test_capacity_taken_back_is_not_believed_at_another_time(at: float) -> None:
    """AWS-191: two minutes after a true one its instance is gone, which the cloud says."""
    world = Fleet(1)

    await world.answer("spot_interrupted", 1, at)

    assert (world.asked, world.done) == ([[("i-000", "spot_interrupted")]], [])


async def test_an_instance_that_is_not_spot_is_not_taken_back() -> None:
    """AWS-191."""
    world = Fleet(1, names.CAPACITY_ON_DEMAND)

    with pytest.raises(Postponed):
        await world.answer("spot_interrupted", 1)

    assert world.done == []


async def test_a_claim_that_is_leaving_already_is_not_asked_about() -> None:
    """AWS-191: its instance is stopped by ourselves, and the news of that comes by the same queue."""
    world = Fleet(1)
    world._change("c-000", deleting_since=NOW)

    await world.answer("instance_terminated", 1)

    assert (world.asked, world.done) == ([], ["remembered"])


@pytest.mark.parametrize(("size", "turns"), [(3, [3]), (10, [3, 3, 3, 1]), (50, [10] * 5)])
async def test_more_of_the_fleet_than_a_fifth_is_taken_back_in_turns(size: int, turns: list[int]) -> None:
    """AWS-192: the last of them within two minutes, whatever the number of messages."""
    world, seen = Fleet(size), list[int]()

    for turn in range(len(turns)):
        for attempt in (1, 2):
            world.moment = NOW + 20.0 * turn + attempt
            before = len(deleted_of(world))
            with suppress(Postponed):
                await world.answer("spot_interrupted", size, attempt=attempt)
            seen += [len(deleted_of(world)) - before] if attempt == 1 else []
        assert len(deleted_of(world)) == sum(turns[: turn + 1])

    assert seen == turns
    assert 20.0 * (len(turns) - 1) <= 80.0


async def test_answers_side_by_side_take_back_no_more_than_one_nor_do_claims_that_are_gone_make_room() -> None:
    """AWS-192."""
    world = Fleet(60)
    answering = AnswerInterruptions(world, world, world, lambda: world.moment)  # type: ignore[arg-type]
    warnings = [a_warning("spot_interrupted", f"i-{n:03}") for n in range(60)]

    async def all_of_them() -> int:
        parts = [tuple(warnings[n : n + 3]) for n in range(0, 60, 3)]
        await asyncio.gather(*map(answering.answer_interruptions, parts), return_exceptions=True)
        return len(deleted_of(world))

    assert await all_of_them() == 12
    left = {name: claim for name, claim in world.snapshot_now.claims.items() if claim.deleting_since is None}
    world.snapshot_now = replace(world.snapshot_now, claims=left)
    world.moment = NOW + 19
    assert await all_of_them() == 12
    world.moment = NOW + 20
    assert await all_of_them() == 12 + 48 // 5


class Behind:
    """The view of one worker, which shows what others have done once it has seen a write of its own; or never."""

    def __init__(self, world: Fleet, broken: bool = False) -> None:
        self.world, self.seen, self.broken = world, world.snapshot_now, broken

    def snapshot(self, reads: object = None) -> Snapshot:
        return self.seen

    async def catch_up(self, writes: Sequence[Write]) -> None:
        await asyncio.sleep(0.001)
        if self.broken:
            raise NotSeenYet("cluster view", "not seen within 10 s")
        self.seen = self.world.snapshot_now


@pytest.mark.parametrize(("broken", "go"), [(False, 12), (True, 24)])
async def test_workers_that_do_not_see_each_other_yet_take_back_no_more_than_one_would(broken: bool, go: int) -> None:
    """AWS-192: unless a cache does not come: two minutes are all that there is."""
    world = Fleet(60)
    warnings = [a_warning("spot_interrupted", f"i-{n:03}") for n in range(60)]
    workers = [AnswerInterruptions(Behind(world, broken), world, world, lambda: world.moment) for _ in range(2)]  # type: ignore[arg-type]

    await asyncio.gather(
        workers[0].answer_interruptions(tuple(warnings[:30])),
        workers[1].answer_interruptions(tuple(warnings[30:])),
        return_exceptions=True,
    )

    assert len(deleted_of(world)) == go
    stays = [claim for claim in world.snapshot_now.claims.values() if claim.deleting_since is None]
    assert not any(names.ENDED_BECAUSE in claim.annotations for claim in stays)  # nor is anything left on the others


async def test_a_mass_that_the_cloud_bears_out_goes_at_once() -> None:
    """AWS-192."""
    world = Fleet(20)
    world.truth = frozenset((f"i-{n:03}", "spot_interrupted") for n in range(20))

    await world.answer("spot_interrupted", 20)

    assert len(deleted_of(world)) == 20


async def test_what_is_believed_does_not_wait_for_the_cloud_s_word_and_is_told_at_the_end() -> None:
    """AWS-191: the notices and the termination are of the try that ends the step."""
    world = Fleet(1)
    world.moment = NOW + 1
    doubted = Interruption(id="d", reason="instance_stopped", instances=("i-000",), at=NOW)
    spot = a_warning("spot_interrupted", "i-000")
    answering = AnswerInterruptions(world, world, world, lambda: world.moment)  # type: ignore[arg-type]

    with pytest.raises(Postponed):
        await answering.answer_interruptions((doubted, spot))
    assert deleted_of(world) == ["c-000"]
    again = await world.answer("spot_interrupted", 1, attempt=2)

    assert (again.deleted, deleted_of(world)) == (("c-000",), ["c-000"])


def deleted_of(world: World) -> list[str]:
    return [each for each in world.done if each.startswith("c-")]


async def test_a_rebalance_recommendation_is_only_published() -> None:
    """AWS-134."""
    assert await answered(World(), a_warning("rebalance_recommendation")) == [
        "remembered",
        "Node SpotRebalanceRecommendation",
        "NodeClaim SpotRebalanceRecommendation",
    ]


async def test_a_claim_that_is_leaving_already_is_not_deleted_again() -> None:
    """AWS-133: the offering is remembered all the same, and no notice speaks of a termination."""
    assert await answered(World(deleting_since=NOW), a_warning("spot_interrupted")) == [
        "remembered",
        "annotated ['dovetail.sh/interrupted']",
        "Node SpotInterrupted",
        "NodeClaim SpotInterrupted",
    ]


async def test_a_broken_instance_is_not_drained_patiently() -> None:
    """AWS-138: the deadline is now, after the delete: where that fails, the next departure is patient."""
    done = await answered(World(), a_warning("system_status"))

    assert done[:4] == [
        "remembered",
        f"annotated {[names.ENDED_BECAUSE]}",
        "deleted default-a u1",
        f"annotated {[names.TERMINATION_DEADLINE]}",
    ]
    assert "NodeClaim InstanceUnhealthy" in done


async def test_a_scheduled_event_is_an_ordinary_delete() -> None:
    """AWS-138: its drain has all the time that the pool gives."""
    done = await answered(World(), a_warning("event_status"))

    assert done[:3] == ["remembered", f"annotated {[names.ENDED_BECAUSE]}", "deleted default-a u1"]


async def test_a_protected_claim_is_deleted_all_the_same() -> None:
    """AWS-131: the instance ends whatever its claim says."""
    protected = World(annotations={names.DO_NOT_DISRUPT: "true"})

    assert (await answered(protected, a_warning("spot_interrupted")))[2] == "deleted default-a u1"


async def test_a_warning_about_an_instance_without_a_claim_does_nothing() -> None:
    """AWS-128."""
    assert await answered(World(), a_warning("spot_interrupted", "i-0b")) == []


class Checks:
    """A cloud whose checks fail in ways that nobody foresaw, and then find an impaired instance."""

    def __init__(self) -> None:
        self.asked, self.done = 0, asyncio.Event()

    async def troubles(self) -> tuple[Interruption, ...]:
        self.asked += 1
        if self.asked == 6:
            self.done.set()
        if self.asked in (1, 3):
            raise KeyError("InstanceId")
        return (a_warning("instance_status"),)


async def test_checks_that_fail_unexpectedly_go_on_and_answer_each_trouble_once(monkeypatch: MonkeyPatch) -> None:
    """AWS-136, AWS-139: a failure that nobody foresaw is no reason never to look again."""
    monkeypatch.setattr("dovetail.activities.interruptions.watch_interruptions.CHECK_SECONDS", 0)
    cloud, answered = Checks(), list[Interruption]()

    async def answer(found: Sequence[Interruption]) -> None:
        answered.extend(found)

    async def no_pause(seconds: float) -> None:
        await asyncio.sleep(0)

    checks = supervised("checks", InstanceChecks(cloud, answer).run, no_pause)  # type: ignore[arg-type]
    await cloud.done.wait()
    troubles = task_troubles()
    await stop(checks)

    assert answered == [a_warning("instance_status")]
    assert [line for line in troubles if line.startswith("checks has failed 2 times")] != []
