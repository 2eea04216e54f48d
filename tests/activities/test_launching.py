"""launch_instance: one claim, one instance, whatever breaks (LIF-10 to LIF-14, LIF-41, DUR-1, DUR-3)."""

from dataclasses import dataclass, replace
from typing import Literal

import pytest

from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.lifecycle.launch_requests import LaunchRequest, frozen_request
from dovetail.messages.outcomes import LaunchOutcome
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import GONE, STABLE, Pin, memory_of, with_memory
from dovetail.model.own.stable_images import StableImage
from dovetail.ports.cloud import ClassNotReady, LaunchRefused, LaunchWarning, NoCapacity, Prepared
from dovetail.ports.failures import Conflict, Forbidden, NotSeenYet, Retryable, Throttled, Unreachable
from dovetail.ports.objects import MetadataChange
from tests.lifecycle.objects import a_joined_claim, a_web_pod
from worlds.disruption import a_claim
from worlds.fakes import FakeCatalogues, FakeClaims, FakeCloud, FakeLookups, FakeNotices, World

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")


@dataclass(slots=True)
class Stage:
    """A world with one new claim, and the step."""

    world: World
    cloud: FakeCloud
    step: LaunchInstance

    async def launch(self) -> LaunchOutcome:
        return await self.step.launch_instance(REF)

    def launches(self) -> int:
        return sum(line.startswith("instance for") for line in self.world.ledger)


def known(world: World, claims: FakeClaims) -> KnownClaims:
    return KnownClaims(FakeLookups(world), claims)


def new_stage() -> Stage:
    world = World()
    world.put(a_claim())
    cloud = FakeCloud(world)
    return Stage(
        world,
        cloud,
        LaunchInstance(
            known(world, FakeClaims(world)), cloud, FakeNotices(world), world.now, catalogues=FakeCatalogues()
        ),
    )


@pytest.fixture
def stage() -> Stage:
    return new_stage()


async def test_a_launch_writes_down_what_was_launched(stage: Stage) -> None:
    """LIF-12, LIF-13, BEH-50."""
    outcome = await stage.launch()

    claim = stage.world.claims["pool-1"]
    (instance,) = stage.world.instances.values()
    assert (outcome.kind, outcome.provider_id, claim.provider_id) == (
        "launched",
        claim.provider_id,
        instance.provider_id,
    )
    assert (claim.image_id, claim.capacity, claim.allocatable) == ("ami-1", stage.cloud.size, stage.cloud.size)
    assert claim.labels["node.kubernetes.io/instance-type"] == "m5.xlarge"
    assert claim.is_true(names.LAUNCHED)
    registered = claim.condition(names.REGISTERED_CONDITION)
    assert registered is not None
    assert (registered.status, registered.reason) == ("Unknown", "NodeNotFound")
    assert [write.version for write in outcome.writes] == [int(claim.resource_version)]


async def test_a_launch_costs_three_requests_to_the_api_server(stage: Stage) -> None:
    """Freeze, labels, status; what is read is read from the cache."""
    await stage.launch()

    lines = [
        line.split()[0] + " " + line.split()[1] for line in stage.world.ledger if " claim" in line or " status" in line
    ]
    assert lines == ["patch claim", "patch claim", "patch status"]


async def test_the_request_is_frozen_and_the_finalizer_set_before_the_call(stage: Stage) -> None:
    """LIF-7, DUR-4: no instance exists for a claim that never had the finalizer."""
    stage.world.put(a_claim(finalizers=()))
    stage.cloud.before = Unreachable("ec2:CreateFleet", "no answer")

    with pytest.raises(Retryable):
        await stage.launch()

    claim = stage.world.claims["pool-1"]
    assert names.TERMINATION_FINALIZER in claim.finalizers
    assert frozen_request(claim).request.startswith("request-")


async def test_a_lost_answer_launches_nothing_twice(stage: Stage) -> None:
    """DUR-1: the same token again, even while the look-up by tag lags."""
    stage.cloud.blind = True
    stage.cloud.after = Unreachable("ec2:CreateFleet", "the connection broke")
    with pytest.raises(Retryable):
        await stage.launch()
    stage.cloud.after = None

    outcome = await stage.launch()

    assert (outcome.kind, stage.launches()) == ("launched", 1)


async def test_an_instance_that_carries_the_claims_uid_is_adopted(stage: Stage) -> None:
    """DUR-1: without asking the cloud to launch again."""
    stage.cloud.after = Unreachable("ec2:CreateFleet", "the worker died")
    with pytest.raises(Retryable):
        await stage.launch()
    launches = sum(line.startswith("launch") for line in stage.world.ledger)

    outcome = await stage.launch()

    assert outcome.kind == "launched"
    assert sum(line.startswith("launch") for line in stage.world.ledger) == launches


async def test_an_instance_is_adopted_although_the_launch_is_overdue(stage: Stage) -> None:
    stage.cloud.after = Unreachable("ec2:CreateFleet", "the worker died")
    with pytest.raises(Retryable):
        await stage.launch()
    stage.world.clock += 3600

    assert (await stage.launch()).kind == "launched"


@pytest.mark.parametrize("left", [True, False])
async def test_an_instance_that_was_terminated_by_hand_is_not_taken_for_the_claims(stage: Stage, left: bool) -> None:
    """The cloud gives back what a token launched, also once it has ended: another generation is asked for."""
    stage.cloud.after = Unreachable("ec2:CreateFleet", "the connection broke")
    with pytest.raises(Retryable):
        await stage.launch()
    stage.cloud.after = None
    (dead,) = stage.world.instances.values()
    stage.world.instances = {dead.provider_id: replace(dead, state="terminating")} if left else {}

    with pytest.raises(Retryable, match="InstanceEnded"):
        await stage.launch()
    outcome = await stage.launch()

    assert (outcome.kind, outcome.provider_id != dead.provider_id) == ("launched", True)


async def test_no_capacity_is_an_outcome_with_a_notice(stage: Stage) -> None:
    """LIF-12, BEH-51, EVT-6."""
    stage.cloud.answer = NoCapacity(message="nothing to be had")

    outcome = await stage.launch()

    assert outcome == LaunchOutcome(kind="no_capacity", message="nothing to be had")
    (notice,) = stage.world.notices
    assert (notice.reason, notice.message) == (
        "InsufficientCapacityError",
        "NodeClaim pool-1 event: nothing to be had",
    )


async def test_the_pods_that_still_wait_for_the_claim_are_said_to_as_well(stage: Stage) -> None:
    """EVT-6: since 1.15; not one that has a node by now, has ended or is being deleted, nor any other's."""
    stage.cloud.answer = NoCapacity(message="nothing to be had")
    waiting, other = (
        a_web_pod("waiting", node_name="", phase="Pending"),
        a_web_pod("other", node_name="", phase="Pending"),
    )
    bound, leaving = a_web_pod("bound"), a_web_pod("leaving", node_name="", phase="Pending", deleting_since=900.0)
    stage.world.put(waiting, bound, leaving, other)
    claim = stage.world.claims["pool-1"]
    planned = ",".join(pod.uid for pod in (waiting, bound, leaving))
    stage.world.put(replace(claim, annotations={**claim.annotations, names.PLANNED_PODS: planned}))

    await stage.launch()

    _, notice = stage.world.notices
    assert (notice.kind, notice.namespace, notice.name) == ("Pod", "apps", "waiting")
    assert (notice.reason, notice.message) == (
        "InsufficientCapacityError",
        "NodeClaim pool-1 nominated for this pod failed to launch: nothing to be had",
    )


async def test_what_the_cloud_says_of_a_launch_is_an_event_whatever_came_of_it(stage: Stage) -> None:
    """AWS-75, AWS-89."""
    warning = LaunchWarning(reason="SpotSLRCreationFailed", message="spot is left out")
    stage.cloud.answer = NoCapacity(message="nothing to be had", warnings=(warning,))

    await stage.launch()

    assert [(notice.type, notice.kind, notice.reason, notice.message) for notice in stage.world.notices] == [
        ("Warning", "NodeClaim", "SpotSLRCreationFailed", "spot is left out"),
        ("Warning", "NodeClaim", "InsufficientCapacityError", "NodeClaim pool-1 event: nothing to be had"),
    ]


async def test_a_class_that_is_not_ready_is_an_outcome_without_a_notice(stage: Stage) -> None:
    """LIF-12, BEH-51."""
    stage.cloud.prepared = ClassNotReady(message="no such class")

    assert await stage.launch() == LaunchOutcome(kind="class_not_ready", message="no such class")
    assert stage.world.notices == []


async def test_a_refusal_is_written_on_the_claim_and_tried_again_under_another_token(stage: Stage) -> None:
    """LIF-12, BEH-52: known to have made nothing, so the next try may ask for something else."""
    stage.cloud.answer = LaunchRefused(reason="BadImage", message="no such image")

    with pytest.raises(Retryable, match="BadImage"):
        await stage.launch()

    claim = stage.world.claims["pool-1"]
    launched = claim.condition(names.LAUNCHED)
    assert launched is not None
    assert (launched.status, launched.reason, launched.message) == ("Unknown", "BadImage", "no such image")
    assert frozen_request(claim) == LaunchRequest(generation=2)
    stage.cloud.answer = None
    assert (await stage.launch()).kind == "launched"


@pytest.mark.parametrize(
    "failure", [Throttled("ec2:CreateFleet", "slow down", 7.0), Forbidden("ec2:CreateFleet", "no")]
)
async def test_any_other_failure_is_written_on_the_claim_and_tried_again(stage: Stage, failure: Exception) -> None:
    """LIF-12: rights are given outside, and the launch deadline bounds the tries (LIF-41)."""
    assert isinstance(failure, (Throttled, Forbidden))
    stage.cloud.before = failure

    with pytest.raises(Retryable) as caught:
        await stage.launch()

    launched = stage.world.claims["pool-1"].condition(names.LAUNCHED)
    assert launched is not None
    assert (launched.status, launched.reason) == ("Unknown", "LaunchFailed")
    assert caught.value.after == getattr(failure, "after", None)


async def test_a_failure_with_a_word_of_its_own_is_the_reason_on_the_claim(stage: Stage) -> None:
    """AWS-90: a throttled launch says so, as upstream's does."""
    throttled = Throttled("ec2:CreateFleet", "RequestLimitExceeded: slow down")
    throttled.reason = "RequestLimitExceeded"
    stage.cloud.before = throttled

    with pytest.raises(Retryable):
        await stage.launch()

    launched = stage.world.claims["pool-1"].condition(names.LAUNCHED)
    assert launched is not None
    assert (launched.status, launched.reason) == ("Unknown", "RequestLimitExceeded")


async def test_a_long_message_is_cut(stage: Stage) -> None:
    """LIF-12: 300 bytes and three dots."""
    stage.cloud.answer = NoCapacity(message="é" * 200)

    outcome = await stage.launch()

    assert outcome.message == "é" * 150 + "..."


async def test_a_launch_that_is_overdue_ends(stage: Stage) -> None:
    """LIF-41, BEH-65."""
    stage.world.clock = 1300.0

    outcome = await stage.launch()

    assert (outcome.kind, stage.launches()) == ("timed_out", 0)


async def test_a_launch_that_is_overdue_keeps_what_its_last_try_came_to(stage: Stage) -> None:
    stage.cloud.answer = LaunchRefused(reason="Unauthorized", message="not allowed to perform CreateFleet")
    with pytest.raises(Retryable):
        await stage.launch()
    stage.world.clock = 1300.0

    outcome = await stage.launch()

    assert outcome.message == "not launched within 300 s; at last Unauthorized: not allowed to perform CreateFleet"


async def test_a_claim_that_is_gone_or_another_is_gone(stage: Stage) -> None:
    assert (await stage.step.launch_instance(replace(REF, uid="another"))).kind == "gone"
    assert (await stage.step.launch_instance(replace(REF, name="another"))).kind == "gone"
    assert stage.launches() == 0


async def test_a_deleted_claim_is_not_launched(stage: Stage) -> None:
    stage.world.put(a_claim(deleting_since=999.0))

    assert (await stage.launch()).kind == "deleting"
    assert stage.launches() == 0


async def test_a_launched_claim_is_left_as_it_is(stage: Stage) -> None:
    """LIF-10."""
    stage.world.put(a_joined_claim())

    assert await stage.launch() == LaunchOutcome(kind="launched", provider_id="aws:///zone/i-1")


async def test_a_claim_with_an_instance_and_no_condition_gets_its_condition(stage: Stage) -> None:
    """DUR-2: half of the record is not the record."""
    await stage.launch()
    stage.world.put(replace(stage.world.claims["pool-1"], conditions=()))

    outcome = await stage.launch()

    assert (outcome.kind, stage.launches()) == ("launched", 1)
    assert stage.world.claims["pool-1"].is_true(names.LAUNCHED)


async def test_a_claim_with_the_condition_and_no_instance_is_launched(stage: Stage) -> None:
    """DUR-2: only the providerID proves a launch."""
    await stage.launch()
    written = stage.world.claims["pool-1"]
    stage.world.put(replace(written, provider_id=""))

    outcome = await stage.launch()

    assert (outcome.kind, outcome.provider_id) == ("launched", written.provider_id)
    assert stage.world.claims["pool-1"].provider_id == written.provider_id


async def test_what_was_launched_is_written_down_although_the_claim_was_deleted_meanwhile(stage: Stage) -> None:
    """DUR-3: the termination must find it."""
    stage.cloud.during = lambda: stage.world.put(replace(stage.world.claims["pool-1"], deleting_since=1001.0))

    outcome = await stage.launch()

    (instance,) = stage.world.instances.values()
    assert (outcome.kind, stage.world.claims["pool-1"].provider_id) == ("deleting", instance.provider_id)


async def test_what_was_launched_for_a_claim_that_vanished_is_terminated(stage: Stage) -> None:
    """DUR-3: the finalizer was taken off by hand."""
    stage.cloud.during = stage.world.claims.clear

    outcome = await stage.launch()

    assert (outcome.kind, stage.world.instances) == ("gone", {})


async def test_a_termination_that_fails_for_a_claim_that_vanished_is_tried_again(stage: Stage) -> None:
    """DUR-3: EC2, say, does not know the instance yet."""
    terminate = stage.cloud.terminate

    async def not_yet(provider_id: str, claim: str = "") -> Literal["terminating", "gone"]:
        stage.cloud.terminate = terminate  # type: ignore[method-assign]
        raise Retryable("ec2:TerminateInstances", "InvalidInstanceID.NotFound")

    stage.cloud.terminate = not_yet  # type: ignore[method-assign]
    stage.cloud.during = stage.world.claims.clear
    with pytest.raises(Retryable):
        await stage.launch()

    outcome = await stage.launch()

    assert (outcome.kind, stage.world.instances) == ("gone", {})


async def test_another_attempt_that_has_frozen_a_request_goes_first(stage: Stage) -> None:
    """A slow attempt that is still alive must not be overtaken by another request under the same token."""
    step, world = stage.step, stage.world
    prepare = stage.cloud.prepare

    async def overtaken(claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        annotations = {names.LAUNCH_REQUEST: '{"generation":1,"request":"theirs"}'}
        world.put(replace(world.claims["pool-1"], annotations=annotations))
        return await prepare(world.claims["pool-1"])

    stage.cloud.prepare = overtaken  # type: ignore[method-assign]
    with pytest.raises(Retryable):
        await step.launch_instance(REF)

    assert stage.launches() == 0
    assert frozen_request(world.claims["pool-1"]).request == "theirs"


async def test_a_conflict_with_another_writer_costs_no_try(stage: Stage) -> None:
    """Labels written by another writer between our read and our write."""
    stage.cloud.during = lambda: stage.world.put(
        replace(stage.world.claims["pool-1"], labels={**stage.world.claims["pool-1"].labels, "by": "another"})
    )

    outcome = await stage.launch()

    assert outcome.kind == "launched"
    assert stage.world.claims["pool-1"].labels["by"] == "another"
    assert "conflict pool-1" in stage.world.ledger


async def test_a_request_that_cannot_be_read_is_reported_and_never_guessed(stage: Stage) -> None:
    stage.world.put(a_claim(annotations={names.LAUNCH_REQUEST: "{"}))

    with pytest.raises(Retryable, match="LaunchRequestUnreadable"):
        await stage.launch()

    assert stage.launches() == 0
    stage.world.clock = 1300.0
    assert (await stage.launch()).kind == "timed_out"


async def test_a_launch_goes_on_while_the_cache_cannot_be_used(stage: Stage) -> None:
    class Blind(FakeLookups):
        def claim(self, name: str) -> NodeClaim | None:
            raise NotSeenYet("cluster view", "no watch")

    claims = FakeClaims(stage.world)
    step = LaunchInstance(
        KnownClaims(Blind(stage.world), claims),
        stage.cloud,
        FakeNotices(stage.world),
        stage.world.now,
        catalogues=FakeCatalogues(),
    )

    assert (await step.launch_instance(REF)).kind == "launched"


async def test_writers_that_never_stop_end_the_try(stage: Stage) -> None:
    """Five conflicts in a row: the API server is given a pause."""

    class Busy(FakeClaims):
        async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
            raise Conflict("NodeClaim/pool-1", "modified")

    busy = known(stage.world, Busy(stage.world))
    step = LaunchInstance(busy, stage.cloud, FakeNotices(stage.world), stage.world.now, catalogues=FakeCatalogues())

    with pytest.raises(Conflict):
        await step.launch_instance(REF)


async def test_a_claim_whose_older_image_is_gone_is_launched_and_says_so(stage: Stage) -> None:
    stage.world.put(
        a_claim(
            annotations=with_memory(
                {}, roll_out=Pin(how=STABLE, images=(StableImage(id="ami-0", types=("m5.large",)),))
            )
        )
    )
    stage.cloud.prepared = Prepared(request="request-1", without="no image of before the change can be launched: ami-0")

    assert (await stage.launch()).kind == "launched"

    assert memory_of(stage.world.claims["pool-1"].annotations).roll_out.how == GONE
    assert "StableImageGone" in [notice.reason for notice in stage.world.notices]
