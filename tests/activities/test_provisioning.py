"""await_provisioning_plan over a simulated world: what it waits for before it plans."""

import asyncio
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.provisioning.await_provisioning_plan import AwaitProvisioningPlan, ProvisioningSettings
from dovetail.activities.provisioning.placement_publisher import PlacementPublisher
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.lifecycle.conditions import claim_conditions_with, true
from dovetail.messages.outcomes import ProvisioningAnswer
from dovetail.messages.plans import ProvisioningPlan
from dovetail.messages.requests import ProvisioningRequest
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.places.placements import Placement
from dovetail.model.values.resources import parse_resources
from dovetail.notices.notice import Notice
from dovetail.placement.settings import PlacementSettings
from dovetail.placement.triggers import asking
from dovetail.ports.failures import Forbidden
from dovetail.ports.objects import ClaimStatus, NewClaim, NodeClaims, Notices
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.telemetry.metrics.karpenters.provisioning import Decisions
from dovetail.telemetry.metrics.ours.faults import Faults
from dovetail.wiring.simulated import SimulatedAdapter
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_deployment, a_new_claim, a_node_class
from tests.waiting import until
from worlds.fakes import FakeClaims, World, followers, on_duty
from worlds.manifests import pod_manifest, pool_manifest

ROOM = parse_resources({"cpu": "4", "memory": "8Gi", "pods": "16"})

READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


class Noticed(Decisions):
    """Says when something was decided; what comes of it is returned without a further wait, where anything does."""

    def __init__(self) -> None:
        super().__init__(PodTimes(duties=on_duty()), Faults())
        self.decided = asyncio.Event()

    def record(self, placement: Placement, took: float, now: float) -> None:
        super().record(placement, took, now)
        self.decided.set()


@dataclass
class Stage:
    world: SimulatedWorld
    adapter: SimulatedAdapter
    decisions: Noticed = field(default_factory=Noticed)

    def planning(self, notices: Notices | None = None) -> "asyncio.Task[ProvisioningAnswer]":
        """The step, under way."""
        request = ProvisioningRequest(must_see=(), launching=(), launching_since=0.0)
        return asyncio.create_task(ActivityEnvironment().run(self.step(notices).await_provisioning_plan, request))

    def step(self, notices: Notices | None = None, claims: NodeClaims | None = None) -> AwaitProvisioningPlan:
        a = self.adapter
        settings = ProvisioningSettings(
            placement=PlacementSettings(),
            idle=0.2,
            longest=10.0,
            claims=claims or FakeClaims(World()),
            seconds=math.inf,
        )
        publisher = PlacementPublisher(notices or a.notices, a.buffers, time.time)
        return AwaitProvisioningPlan(
            Snapshots(a.view, a.catalogues), publisher, settings, time.time, followers(decisions=self.decisions)
        )

    def sees(self, pools: tuple[str, ...]) -> bool:
        """Whether the view has a pending pod and just these NodePools, ready."""
        found = self.adapter.view.snapshot()
        ready = {name for name, pool in found.pools.items() if pool.is_true("Ready")}
        return bool(asking(found).pods) and ready == set(found.pools) == set(pools)

    def deployed(self) -> str:
        """The pod of the deployment."""
        [name] = [p["metadata"]["name"] for p in self.world.objects("Pod") if p["metadata"]["name"] != "other"]
        return str(name)

    async def launch(self, claim: NodeClaim) -> None:
        """What a launch writes down."""
        launched = {names.INSTANCE_TYPE: "c-4x-amd64-linux", names.ARCH: "amd64", names.OS: "linux"}
        self.world.patch("NodeClaim", claim.name, {"metadata": {"labels": launched}})
        live = await self.adapter.claims.read(claim.name)
        assert live is not None
        status = ClaimStatus(
            provider_id="embedded:///test-zone-a/i-1",
            capacity=ROOM,
            allocatable=ROOM,
            conditions=claim_conditions_with(live, true(names.LAUNCHED, live.created)),
        )
        await self.adapter.claims.patch_status(live, status)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    file = tmp_path / "world.sqlite"
    world = SimulatedWorld.create(file)
    world.apply(a_node_class())
    world.apply({**pool_manifest(), "status": {"conditions": [READY]}})
    world.apply(a_deployment(1, cpu="1"))
    with world.playing():
        adapter = SimulatedAdapter.open(file, "dovetail/test")
        yield Stage(world, adapter)
        adapter.close()
    world.close()


async def test_nothing_is_planned_while_an_unplanned_claim_is_not_launched(stage: Stage) -> None:
    """STA-3, DIS-15: a predecessor's claim does not say which pods it is for; it is capacity once it is launched."""
    claim = await stage.adapter.claims.create(a_new_claim("unplanned", annotations={}))
    planning = stage.planning()

    before, _ = await asyncio.wait([planning], timeout=2.0)
    assert before == set() and not stage.decisions.decided.is_set()
    await stage.launch(claim)
    await asyncio.wait_for(stage.decisions.decided.wait(), 60)

    assert not planning.done()  # the pod has its room there: no further node is needed
    planning.cancel()


async def test_a_claim_of_our_own_plan_holds_nothing_up(stage: Stage) -> None:
    """It says itself whose it is."""
    other = stage.world.apply(pod_manifest("other"))["metadata"]["uid"]
    await stage.adapter.claims.create(a_new_claim("ours", annotations={names.PLAN: "p/0", names.PLANNED_PODS: other}))

    plan = await asyncio.wait_for(stage.planning(), 60)

    assert isinstance(plan, ProvisioningPlan)
    assert [[pod.name for pod in proposed.pods] for proposed in plan.proposed] == [[stage.deployed()]]


class Refusing(FakeClaims):
    """An API server whose policy refuses the claims of one pool."""

    def __init__(self, pool: str) -> None:
        super().__init__(World())
        self.pool, self.asked = pool, list[str]()

    async def may_create(self, claim: NewClaim) -> None:
        assert claim.owner is not None
        self.asked.append(claim.owner.name)
        if claim.owner.name == self.pool:
            raise Forbidden("NodeClaim/x", "the policy says no")


@pytest.mark.parametrize("pools", [("preferred", "default"), ("preferred",)])
async def test_pods_of_a_pool_whose_claims_are_refused_get_a_node_of_another(
    stage: Stage, pools: tuple[str, ...]
) -> None:
    """As in a shortage. Where no other pool takes them, their Event names the refusal."""
    stage.world.apply({**pool_manifest("preferred", weight=50), "status": {"conditions": [READY]}})
    if "default" not in pools:
        stage.world.delete("NodePool", "default")
    notices = Noted()
    claims = Refusing("preferred")
    step = stage.step(notices, claims)
    assert step.refused is not None
    [pod] = stage.world.objects("Pod")
    step.refused.begin(ProvisioningRequest(refused_pods=(pod["metadata"]["uid"],)))

    await until(lambda: stage.sees(pools), words="the pod is pending and the pools are there")

    plan = await step.without_refused()

    assert [node.pool for node in plan.proposed] == list(pools[1:])
    assert claims.asked == ["preferred", *pools], "once for the pod, once for no pod"
    if not plan.proposed:
        await asyncio.wait_for(notices.failed.wait(), 60)
        why = "launches are stopped: the API server refuses its NodeClaims: NodeClaim/x: the policy says no"
        assert notices.said == f'Failed to schedule pod, incompatible with nodepool "preferred", {why}'


class ZoneRefused(FakeClaims):
    """An API server whose policy takes no claim for one zone alone."""

    def __init__(self) -> None:
        super().__init__(World())
        self.asked, self.refuses = 0, True

    async def may_create(self, claim: NewClaim) -> None:
        self.asked += 1
        if self.refuses and any(e.key == names.ZONE and e.values == ("test-zone-b",) for e in claim.requirements):
            raise Forbidden("NodeClaim/x", "no claim for test-zone-b")


@pytest.mark.parametrize("count", [1, 3])
async def test_a_pod_that_has_its_claim_refused_stands_alone_and_those_beside_it_get_theirs(
    stage: Stage, count: int
) -> None:
    for number in range(29):
        stage.world.apply(pod_manifest(f"good-{number}", cpu="1"))
    pods = [pod_manifest(f"bad-{n}", cpu="1", nodeSelector={names.ZONE: "test-zone-b"}) for n in range(count)]
    bad = {stage.world.apply(pod)["metadata"]["uid"] for pod in pods}
    await until(lambda: len(asking(stage.adapter.view.snapshot()).pods) == 30 + count, words="all pods are pending")
    claims = ZoneRefused()
    step = stage.step(claims=claims)
    asked = tuple(asking(stage.adapter.view.snapshot()).pods)
    request = ProvisioningRequest(refused_pods=asked)

    plan = await asyncio.wait_for(ActivityEnvironment().run(step.await_provisioning_plan, request), 60)

    assert isinstance(plan, ProvisioningPlan)
    assert {pod.uid for node in plan.proposed for pod in node.pods} == set(asked) - bad
    [refusal] = plan.claim_refusals
    assert (refusal.pool, set(refusal.pods), refusal.whole) == ("default", bad, False)
    assert "no claim for test-zone-b" in refusal.why
    assert claims.asked <= 30, "pods that ask for the same are asked for by one of them"

    # The next pass of this worker and of another one ask nothing; and what was refused is told in words.
    for other in (step, stage.step(claims=claims)):
        other.refused.begin(replace(request, refused_pods=(), claim_refusals=plan.claim_refusals))
        other.refused.again, before = time.time() + 60, claims.asked
        assert (await other.without_refused()).claim_refusals == plan.claim_refusals
        assert claims.asked == before

    # Once the policy is gone, a dry run of one of them frees them all.
    claims.refuses, step.refused.again = False, 0.0
    plan = await step.without_refused()
    assert bad <= {pod.uid for node in plan.proposed for pod in node.pods}
    assert plan.claim_refusals == ()


async def test_a_claim_that_is_refused_for_no_pod_alone_is_made_in_parts(stage: Stage) -> None:
    """A policy that takes no claim for more than eight cores."""
    stage.world.apply(a_deployment(12, cpu="1"))
    await until(lambda: len(asking(stage.adapter.view.snapshot()).pods) == 12, words="all pods are pending")
    step = stage.step(claims=AtMostEightCores(World()))
    asked = tuple(asking(stage.adapter.view.snapshot()).pods)
    step.refused.begin(ProvisioningRequest(refused_pods=asked))

    plan = await step.without_refused()

    assert plan.proposed and plan.claim_refusals == ()
    assert all(dict(node.requests)["cpu"] <= 8_000_000_000 for node in plan.proposed)


class AtMostEightCores(FakeClaims):
    async def may_create(self, claim: NewClaim) -> None:
        if claim.requests.get("cpu", 0) > 8_000_000_000:
            raise Forbidden("NodeClaim/x", "too large")


class Noted:
    """Keeps what is said of a pod that finds no place because launches are stopped."""

    def __init__(self) -> None:
        self.said, self.failed = "", asyncio.Event()

    async def publish(self, *notices: Notice) -> None:
        for notice in notices:
            if notice.reason == "FailedScheduling" and "launches are stopped" in notice.message:
                self.said = notice.message
                self.failed.set()


class Silent:
    """An API server that never answers the request for an Event."""

    async def publish(self, *notices: Notice) -> None:
        await asyncio.Event().wait()


async def test_a_plan_waits_for_no_event(stage: Stage) -> None:
    stage.world.apply(a_deployment(3, "too-large", cpu="999"))  # these are refused, and an Event says so

    plan = await asyncio.wait_for(stage.planning(Silent()), 20)

    assert isinstance(plan, ProvisioningPlan)
    assert len(plan.proposed) == 1


async def test_the_room_of_a_pod_that_is_gone_is_taken_by_the_next_one(stage: Stage) -> None:
    """PLQ-32: its successor gets no second node because the first one takes long to launch."""
    await stage.adapter.claims.create(a_new_claim("ours", annotations={names.PLAN: "p/0", names.PLANNED_PODS: "gone"}))
    planning = stage.planning()

    await asyncio.wait_for(stage.decisions.decided.wait(), 60)

    assert not planning.done()  # nothing to launch
    planning.cancel()
