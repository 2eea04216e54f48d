"""Launches of several claims by one call: the real steps and the real adapter, over HTTP, with IAM and token buckets.

A worker that dies does nothing more: whatever it asks for after that moment is never answered. Another takes its steps
over. All facts are the cloud's own and the claims'.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from dovetail.activities.launch import launch_groups
from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.adapters.aws.adapter import AwsAdapter
from dovetail.lifecycle.launch_requests import GroupShare, LaunchRequest, frozen_request, request_text
from dovetail.messages.outcomes import LaunchOutcome
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Failure, Unreachable
from dovetail.ports.objects import ClaimStatus, MetadataChange
from testbed.cloud.control.buckets import ORDINARY_ACCOUNT
from tests.adapters.aws.conftest import Stage
from tests.waiting import until
from worlds.aws import Notices, a_claim_of_ec2, amd64, family, one_of, open_adapter
from worlds.fakes import FakeCatalogues, FakeClaims, FakeLookups, World

T = TypeVar("T")


@dataclass(slots=True)
class Death:
    """A moment of one worker: before or after something that others see. At it, the worker dies."""

    at: int = -1  # the number of the moment; negative: it lives
    moments: list[str] = field(default_factory=list)
    dead: asyncio.Event = field(default_factory=asyncio.Event)

    async def around(self, what: str, act: Callable[[], Awaitable[T]]) -> T:
        await self._moment(f"before {what}")
        found = await act()
        await self._moment(f"after {what}")
        return found

    async def _moment(self, what: str) -> None:
        self.moments.append(what)
        if len(self.moments) == self.at + 1:
            self.dead.set()
        if self.dead.is_set():
            await asyncio.Event().wait()


class MortalClaims(FakeClaims):
    def __init__(self, world: World, death: Death) -> None:
        super().__init__(world)
        self.death = death
        self.unanswered: int | None = None  # the number of a patch that is not answered
        self.arrives = False  # though it is carried out

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        if self.unanswered is not None:
            self.unanswered -= 1
            if self.unanswered < 0:
                self.unanswered = None
                if self.arrives:
                    await super().patch(claim, change)
                raise Unreachable(f"NodeClaim/{claim.name}", "no answer")
        return await self.death.around("a patch", lambda: super(MortalClaims, self).patch(claim, change))

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        return await self.death.around("a status", lambda: super(MortalClaims, self).patch_status(claim, status))


class MortalCloud:
    """The adapter, behind the death of its worker."""

    def __init__(self, adapter: AwsAdapter, death: Death) -> None:
        self._cloud, self._death = adapter.cloud, death

    async def launch(self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None) -> Any:
        return await self._death.around("a launch", lambda: self._cloud.launch(claim, request, token, share))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cloud, name)


@dataclass(slots=True)
class Worker:
    """One process that launches: its steps, its adapter, and when it dies."""

    world: World
    step: LaunchInstance
    claims: MortalClaims
    death: Death

    async def launch(self, *claims: NodeClaim) -> list[LaunchOutcome]:
        """The steps of all of them side by side, each as often as it takes, until the worker is dead."""
        steps = asyncio.gather(*[self._launch(claim) for claim in claims])
        dying = asyncio.create_task(self.death.dead.wait())
        try:
            await asyncio.wait((steps, dying), return_when=asyncio.FIRST_COMPLETED)
            return [] if self.death.dead.is_set() else await steps
        finally:
            dying.cancel()
            steps.cancel()
            await asyncio.gather(steps, dying, return_exceptions=True)

    async def launch_together(self, claims: list[NodeClaim]) -> list[LaunchOutcome]:
        """The same, as one group: none goes before all wait."""
        with pytest.MonkeyPatch.context() as held:
            held.setattr(launch_groups, "UNDER_WAY", 0)
            launching = asyncio.create_task(self.launch(*claims))
            queues = self.step.groups._queues
            await until(lambda: any(len(queue.waiting) == len(claims) for queue in queues.values()))
        for queue in queues.values():
            queue.stirred.set()
        return await launching

    async def _launch(self, claim: NodeClaim) -> LaunchOutcome:
        for _ in range(40):
            try:
                return await self.step.launch_instance(ClaimRef(name=claim.name, uid=claim.uid, pool="default"))
            except Failure:
                await asyncio.sleep(0.1)
        raise AssertionError(f"the launch of {claim.name} never ends")


@dataclass(slots=True)
class Scene:
    """A class, claims, and the workers that launch them."""

    stage: Stage
    world: World

    @asynccontextmanager
    async def worker(self, dies_at: int = -1, *, groups: bool = True) -> AsyncIterator[Worker]:
        server, shared = self.stage.server, self.stage.adapter.calls
        adapter = open_adapter(server, self.stage.classes, shared, launch_groups=groups)
        death = Death(at=dies_at)
        claims = MortalClaims(self.world, death)
        known = KnownClaims(FakeLookups(self.world), claims)
        cloud: Any = MortalCloud(adapter, death)
        step = LaunchInstance(known, cloud, Notices(), self.world.now, catalogues=FakeCatalogues())
        try:
            yield Worker(self.world, step, claims, death)
        finally:
            await adapter.close()

    def new_claims(self, number: int, *requirements: Any) -> list[NodeClaim]:
        made = [replace(a_claim_of_ec2(*requirements), created=self.world.clock) for _ in range(number)]
        self.world.put(*made)
        return made

    def of(self, claims: list[NodeClaim]) -> list[str]:
        """The instances that the claims name."""
        return [self.world.claims[claim.name].provider_id for claim in claims]

    def launched(self) -> list[str]:
        return [
            each for call in self.stage.calls("CreateFleet") if not call.get("replayed") for each in call["instances"]
        ]

    def fleets(self) -> list[int]:
        """The sizes of the fleets that were asked for, repeats and refused ones left out."""
        calls = [call for call in self.stage.calls("CreateFleet") if not call.get("replayed") and not call["error"]]
        return [call["input"]["TargetCapacitySpecification"]["TotalTargetCapacity"] for call in calls]

    def count(self) -> None:
        self.stage.since = self.stage.server.control("GET", "ledger/last")

    def balanced(self, claims: list[NodeClaim]) -> None:
        """Each claim has an instance of its own, and nothing else was launched."""
        named = [each.rpartition("/")[2] for each in self.of(claims)]
        assert all(named) and len(set(named)) == len(claims), named
        assert sorted(named) == sorted(self.launched())


@pytest.fixture
async def scene(stage: Stage) -> Scene:
    await stage.with_class()
    made = Scene(stage=stage, world=World())
    made.count()
    return made


async def test_claims_that_ask_for_the_same_are_launched_by_few_calls(scene: Scene) -> None:
    claims = scene.new_claims(30)
    async with scene.worker() as worker:
        outcomes = await worker.launch(*claims)

    assert {each.kind for each in outcomes} == {"launched"}
    scene.balanced(claims)
    assert len(scene.fleets()) < 6
    assert max(scene.fleets()) > 10


async def test_an_instance_of_a_group_carries_its_group_instead_of_a_claim(scene: Scene) -> None:
    """The policies that ship bind creation to the cluster's tags, which are the same for a group."""
    async with scene.worker() as worker:
        await worker.launch_together(scene.new_claims(5))

    (call,) = scene.stage.calls("CreateFleet")
    tags = {tag["Key"]: tag["Value"] for tag in call["input"]["TagSpecifications"][0]["Tags"]}
    (group,) = {
        share.group for claim in scene.world.claims.values() if (share := frozen_request(claim).share) is not None
    }
    assert tags[names.LAUNCH_GROUP_TAG] == group
    assert not {names.CLAIM_UID_TAG, "karpenter.sh/nodeclaim"} & tags.keys()
    assert tags["kubernetes.io/cluster/dovetail"] == "owned"
    assert {each.group for each in await scene.stage.adapter.cloud.list_instances()} == {group}


async def test_claims_that_ask_for_something_else_are_launched_apart(scene: Scene) -> None:
    zones = [one_of("topology.kubernetes.io/zone", f"us-west-2{letter}") for letter in "ab"]
    claims = [each for zone in zones for each in scene.new_claims(4, family("m5"), amd64(), zone)]
    async with scene.worker() as worker:
        await worker.launch(*claims)

    scene.balanced(claims)
    assert [each.split("/")[3] for each in scene.of(claims)] == ["us-west-2a"] * 4 + ["us-west-2b"] * 4


@pytest.mark.parametrize("groups", [False, True], ids=["alone", "groups"])
async def test_an_ordinary_accounts_rates(scene: Scene, groups: bool) -> None:
    """One call for each claim is more than EC2 takes; by groups nothing is refused."""
    scene.stage.patch(rateLimits=ORDINARY_ACCOUNT)
    claims = scene.new_claims(80)
    async with scene.worker(groups=groups) as worker:
        await worker.launch(*claims)

    scene.balanced(claims)
    calls = Counter(call["error"] or "taken" for call in scene.stage.calls("CreateFleet"))
    if groups:
        assert calls["taken"] < 15 and not calls["RequestLimitExceeded"]
    else:
        assert calls["taken"] == 80 and calls["RequestLimitExceeded"] > 0


async def test_a_worker_that_dies_between_any_two_writes_loses_and_doubles_nothing(scene: Scene) -> None:
    claims = scene.new_claims(4)
    async with scene.worker() as worker:
        await worker.launch_together(claims)
        moments = worker.death.moments
    scene.balanced(claims)
    assert scene.fleets() == [4]

    for number, moment in enumerate(moments):
        scene.count()
        claims = scene.new_claims(4)
        async with scene.worker(dies_at=number) as dying:
            await dying.launch_together(claims)
        async with scene.worker() as another:
            outcomes = await another.launch(*claims)
        assert [each.kind for each in outcomes] == ["launched"] * 4, (number, moment)
        scene.balanced(claims)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(5), *[pytest.param(each, marks=pytest.mark.soak) for each in range(5, 20)]])
async def test_workers_that_die_again_and_again_at_random_moments(scene: Scene, seed: int) -> None:
    """Claims come a few at a time, two workers share them, and each dies until one is left in peace."""
    chance = random.Random(seed)
    claims = scene.new_claims(12)
    pending = list(claims)
    for life in range(6):
        peace = life == 5
        async with AsyncExitStack() as stack:
            moments = [-1 if peace else chance.randrange(30) for _ in range(2)]
            workers = [await stack.enter_async_context(scene.worker(dies_at=at)) for at in moments]
            chance.shuffle(pending)
            parts = pending[::2], pending[1::2]
            await asyncio.gather(*[worker.launch(*part) for worker, part in zip(workers, parts, strict=True)])
    scene.balanced(claims)


@pytest.mark.parametrize("most", range(5))
async def test_a_fleet_that_gives_fewer_than_asked_for_gives_each_once(scene: Scene, most: int) -> None:
    """Whoever gets none is told what EC2 has run out of, which is remembered once."""
    scene.stage.patch(fleetMax=most)
    claims = scene.new_claims(5)
    async with scene.worker() as worker:
        outcomes = await worker.launch_together(claims)

    given = [each for each in scene.of(claims) if each]
    assert len(given) == len(set(given)) == len(scene.launched()) == most
    assert Counter(each.kind for each in outcomes) == Counter({"launched": most, "no_capacity": 5 - most})
    assert scene.fleets() == [5]


@pytest.mark.parametrize("arrives", [False, True], ids=["lost", "carried out"])
@pytest.mark.parametrize("number", range(5))
async def test_a_group_of_which_one_record_is_not_answered_is_launched_anew(
    scene: Scene, number: int, arrives: bool
) -> None:
    """The last record that is written is that of the first claim, which decides."""
    claims = scene.new_claims(5)
    async with scene.worker() as worker:
        worker.claims.unanswered, worker.claims.arrives = number, arrives
        outcomes = await worker.launch_together(claims)

    assert [each.kind for each in outcomes] == ["launched"] * 5
    scene.balanced(claims)
    if number == 4 and arrives:
        assert scene.fleets() == [5]


async def test_a_claim_that_is_deleted_while_its_group_is_launched_knows_its_instance(scene: Scene) -> None:
    """DUR-3, although the worker dies before it has written down what was answered."""
    claims = scene.new_claims(5)
    async with scene.worker() as worker:
        await worker.launch_together(claims)
        answered = worker.death.moments.index("after a launch")
    scene.count()
    claims = scene.new_claims(5)
    async with scene.worker(dies_at=answered) as dying:
        await dying.launch_together(claims)
    assert len(scene.launched()) == 5 and not any(scene.of(claims))
    for claim in claims:
        scene.world.put(replace(scene.world.claims[claim.name], deleting_since=scene.world.clock))

    async with scene.worker() as another:
        outcomes = await another.launch(*claims)

    assert {each.kind for each in outcomes} == {"deleting"}
    assert [each.provider_id for each in outcomes] == scene.of(claims)
    scene.balanced(claims)


async def test_a_throttled_call_is_one_call_that_waits_and_no_deadline_runs_out(scene: Scene) -> None:
    """LIF-41 bounds launches that nobody has asked for yet."""
    scene.stage.patch(fail=[{"op": "CreateFleet", "code": "RequestLimitExceeded", "status": 503, "times": 7}])
    claims = scene.new_claims(4)
    async with scene.worker() as worker:
        launching = asyncio.create_task(worker.launch_together(claims))
        await until(lambda: any(each.condition(names.LAUNCHED) for each in scene.world.claims.values()))
        scene.world.clock += 3600.0
        outcomes = await launching

    assert [each.kind for each in outcomes] == ["launched"] * 4
    assert Counter(call["error"] for call in scene.stage.calls("CreateFleet")) == {"RequestLimitExceeded": 7, None: 1}
    scene.balanced(claims)


async def test_the_first_of_a_group_that_is_gone_says_nothing_so_the_cloud_is_asked(scene: Scene) -> None:
    claims = scene.new_claims(5)
    async with scene.worker() as worker:
        await worker.launch_together(claims)
    (first,) = {share.first for each in claims if (share := frozen_request(scene.world.claims[each.name]).share)}
    last = next(each for each in claims if each.name != first and frozen_request(scene.world.claims[each.name]).share)
    instance = scene.world.claims[last.name].provider_id
    scene.world.put(replace(scene.world.claims[last.name], provider_id="", conditions=()))
    del scene.world.claims[first]

    async with scene.worker() as another:
        (outcome,) = await another.launch(last)

    assert outcome.provider_id == instance
    assert len(scene.launched()) == 5


async def test_a_share_whose_first_is_gone_and_of_which_the_cloud_knows_nothing_is_launched_anew(scene: Scene) -> None:
    (claim,) = scene.new_claims(1)
    async with scene.worker() as worker:
        await worker.launch(claim)
        request = frozen_request(scene.world.claims[claim.name]).request
        share = GroupShare(group="g", number=1, size=50, first="nobody", first_uid="u", generation=1)
        record = LaunchRequest(generation=1, request=request, share=share)
        (lost,) = scene.new_claims(1)
        annotations = {names.LAUNCH_REQUEST: request_text(record)}
        scene.world.put(replace(lost, annotations=annotations))
        (outcome,) = await worker.launch(lost)

    assert outcome.kind == "launched"
    scene.balanced([claim, lost])


async def test_reservations_are_asked_for_one_at_a_time(scene: Scene) -> None:
    scene.stage.patch(
        reservations=[{"id": "cr-1", "type": "m5.large", "zone": "us-west-2a", "available": 3, "total": 3, "tags": {}}]
    )
    await scene.stage.with_class(capacityReservationSelectorTerms=[{"id": "cr-1"}])
    scene.count()
    reserved = one_of("karpenter.sh/capacity-type", "reserved")
    claims = scene.new_claims(3, family("m5"), amd64(), reserved)
    async with scene.worker() as worker:
        await worker.launch(*claims)

    assert scene.fleets() == [1, 1, 1]
    scene.balanced(claims)
