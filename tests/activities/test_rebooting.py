"""GCR-19: a reboot from its beginning to a node that is ready again, or to its replacement, in small steps."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from dovetail.activities.orders.reboot_nodes import BACK_SECONDS, RebootNodes, RebootPorts
from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.evictor import Evictor
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.adapters.aws.catalogues import REBOOTING_POLICIES
from dovetail.messages.orders import RebootNode
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.objects.workloads import Namespace
from dovetail.model.own.claim_memory import memory_of, with_memory
from dovetail.model.own.drain_rules import Blocker, DrainRules, HookRules
from dovetail.model.own.held_drains import NOT_HELD
from dovetail.model.own.policies import Policy
from dovetail.model.pods import Pod
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.failures import Forbidden, NotAsked, Retryable
from tests.placement.builders import a_bound_pod, a_general_pool
from worlds.fakes.cloud import FakeCloud
from worlds.fakes.lookups import FakeLookups
from worlds.fakes.nodes import FakeClaims, FakeNodes
from worlds.fakes.pods import FakePods
from worlds.fakes.ports import FakeNotices, holds
from worlds.fakes.world import World

ORDER: Final = RebootNode(claim=ClaimRef(name="a", uid="u1", pool="gpu"), node="n")
FAULT: Final = Condition(type="AcceleratedHardwareReady", status="False", reason="NvidiaXID48Error", changed=300.0)
WELL: Final = Condition(type=names.READY, status="True")


class Policies:
    """The one question that the step asks of them."""

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return REBOOTING_POLICIES


class Scene:
    """A node with a broken GPU and a pod, at 1,000 s: its fault is due."""

    def __init__(self, *pods: Pod, wanted: bool = True, share: float = 0.25, **of_claim: Any) -> None:
        self.world = World()
        claim = NodeClaim(
            name="a",
            uid="u1",
            finalizers=(names.TERMINATION_FINALIZER,),
            labels={names.NODE_POOL: "gpu"},
            node_class=NodeClassRef(group="g", kind="k", name="c"),
            requests={},
            capacity={},
            allocatable={},
            provider_id="aws:///zone/i-1",
            conditions=(Condition(type=names.INITIALIZED_CONDITION, status="True"),),
        )
        node = Node(
            name="n",
            uid="nu",
            provider_id="aws:///zone/i-1",
            labels={},
            capacity={},
            allocatable={},
            conditions=(WELL, FAULT),
            boot_id="boot-1",
        )
        self.world.put(replace(claim, **of_claim), node, *pods)
        self.cloud = FakeCloud(self.world)
        self.wanted, self.share = wanted, share
        self.restarted()

    def restarted(self) -> None:
        """As another worker knows nothing of what this one did."""
        world, pods = self.world, FakePods(self.world)
        self.notices = FakeNotices(world)
        ports = RebootPorts(
            claims=FakeClaims(world),
            nodes=FakeNodes(world),
            pods=pods,
            notices=self.notices,
            cloud=self.cloud,
            repairs=self.repairs(),
            pauses=FakeLookups(world),
            holds=holds(world),
            turns=OwnerTurns(self.share, world.pods.values, world.now),
        )
        evictor = Evictor(pods, self.notices, EvictionPace(world.now, world.pause), world.now)
        self.steps = RebootNodes(ports, evictor, world.now, pause=world.pause)

    def repairs(self) -> LiveRepairs:
        return LiveRepairs(Policies(), self.world.now, self.wanted)  # type: ignore[arg-type]

    async def step(self, seconds: float = 15.0) -> str:
        world, steps = self.world, self.steps
        steps.ports = replace(steps.ports, repairs=self.repairs())
        why_not = await steps.begin(self.claim)
        message = why_not or (await steps.reboot_node(ORDER)).message
        await world.pause(seconds)
        return message

    async def until(self, *words: str) -> None:
        for _ in range(200):
            if await self.step() in words:
                return
        raise AssertionError(f"never said {words}; at the end {self.said}")

    def booted(self, **fields: Any) -> None:
        """The machine has started anew, and its monitor finds nothing."""
        self.world.put(replace(self.node, **{"boot_id": "boot-2", "conditions": (WELL,), **fields}))

    @property
    def node(self) -> Node:
        return self.world.nodes["n"]

    @property
    def claim(self) -> NodeClaim:
        return self.world.claims["a"]

    @property
    def left(self) -> dict[str, str]:
        """What is written on the claim, beside when it was rebooted."""
        return {key: value for key, value in self.claim.annotations.items() if key != names.REMEMBERED}

    @property
    def calls(self) -> list[str]:
        return [entry for entry in self.world.ledger if entry.startswith("reboot")]

    @property
    def said(self) -> tuple[str, str, str]:
        condition = self.claim.condition(names.REBOOTING)
        return ("", "", "") if condition is None else (condition.status, condition.reason, condition.message)


async def test_pods_leave_then_the_instance_is_rebooted_then_the_node_is_open_again() -> None:
    scene = Scene(a_bound_pod("p", "n"))

    await scene.until("the cloud reboots it")

    assert scene.said == ("True", "RebootIssued", "rebooting for AcceleratedHardwareReady/NvidiaXID48Error")
    assert (scene.world.pods, scene.calls) == ({}, ["reboot aws:///zone/i-1"])
    assert [taint.key for taint in scene.node.taints] == [names.REBOOTING_TAINT]
    reason = scene.claim.condition(names.DISRUPTION_REASON)
    assert reason is not None and (reason.status, reason.reason) == ("True", "Unhealthy")
    assert scene.claim.annotations[names.PRE_BOOT_ID] == "boot-1"
    assert await scene.step() == "waiting for the node to come up"

    scene.booted()
    assert await scene.step() == "rebooted"

    assert scene.said[:2] == ("False", "RebootSucceeded")
    assert (scene.node.taints, scene.left, scene.claim.deleting_since) == ((), {}, None)
    assert scene.claim.condition(names.DISRUPTION_REASON) is None
    assert (len(scene.calls), "RebootObserved" in {notice.reason for notice in scene.world.notices}) == (1, True)
    assert await scene.step() == "there is nothing that a reboot would clear"


@pytest.mark.parametrize(("share", "ready", "expected"), [(0.25, True, 3), (0.0, True, 0), (0.25, False, 0)])
async def test_pods_of_one_owner_leave_by_turns_unless_nothing_there_serves_anybody(
    share: float, ready: bool, expected: int
) -> None:
    """As for a drain; the turns are those of all drains, and none is waited for longer than a minute."""
    pods = [replace(a_bound_pod(name, "n"), ready=True) for name in "abcd"]
    scene = Scene(*pods, share=share)
    if not ready:
        scene.world.put(replace(scene.node, conditions=(replace(WELL, status="False"), FAULT)))

    await scene.step(0.0)
    at_first = len(scene.world.pods)
    for _ in range(8):
        await scene.step(0.0)

    assert (at_first, len(scene.world.pods), scene.said[1]) == (expected, 0, "RebootIssued")


async def test_pods_that_may_not_leave_ride_the_reboot_after_five_minutes() -> None:
    """None is deleted by force: that its object is gone does not prove that it has stopped."""
    scene = Scene(a_bound_pod("p", "n", do_not_disrupt="true"))
    began = scene.world.clock

    await scene.until("the cloud reboots it")

    assert 300 <= scene.world.clock - began < 380
    assert next(iter(scene.world.pods.values())).deleting_since is None


async def test_the_claims_own_grace_is_the_bound_where_it_is_shorter() -> None:
    scene = Scene(a_bound_pod("p", "n", do_not_disrupt="true"), termination_grace=60.0)
    began = scene.world.clock

    await scene.until("the cloud reboots it")

    assert 60 <= scene.world.clock - began < 120


async def test_a_node_that_does_not_come_back_is_replaced() -> None:
    scene = Scene()
    await scene.until("the cloud reboots it")
    issued = scene.world.clock

    await scene.until("the node did not come back within twenty minutes")

    assert scene.claim.deleting_since is not None
    assert names.TERMINATION_DEADLINE in scene.claim.annotations
    assert BACK_SECONDS - 20 < scene.world.clock - issued < BACK_SECONDS + 40
    assert scene.claim.annotations[names.ENDED_BECAUSE].startswith("NodeRepaired: rebooted in vain")
    assert "RebootFailed" in {notice.reason for notice in scene.world.notices}


async def test_a_node_that_is_back_before_its_replacement_began_keeps_no_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """GCR-15, GCR-19."""
    scene = Scene()
    await scene.until("the cloud reboots it")
    await scene.world.pause(BACK_SECONDS)

    async def unreachable(*_: object) -> int:
        raise Retryable("NodeClaim/a", "503")

    with monkeypatch.context() as patched, pytest.raises(Retryable):
        patched.setattr(FakeClaims, "delete", unreachable)
        await scene.step()
    scene.booted()

    assert await scene.step() == "rebooted"
    assert names.TERMINATION_DEADLINE not in scene.claim.annotations


async def test_a_node_that_boots_and_is_not_ready_for_pods_is_not_yet_back() -> None:
    """Its devices have to be there again, as on a new one."""
    scene = Scene(requests={"nvidia.com/gpu": 8})
    await scene.until("the cloud reboots it")
    scene.booted()

    assert await scene.step() == "waiting for the node to come up"
    assert scene.node.taints == (), "pods may come as soon as it has booted: the kube-scheduler sees what is there"
    scene.booted(allocatable={"nvidia.com/gpu": 8})
    assert await scene.step() == "rebooted"


async def test_what_the_cloud_refuses_for_good_ends_the_reboot_at_once() -> None:
    """A missing right: the node is replaced within its bound, and not after five minutes."""
    scene = Scene()

    async def refuses(provider_id: str, claim: str = "") -> None:
        raise Forbidden("ec2:RebootInstances", "UnauthorizedOperation")

    scene.cloud.reboot = refuses  # type: ignore[method-assign]
    await scene.until("reboot rejected by the cloud provider: ec2:RebootInstances: UnauthorizedOperation")

    assert scene.claim.deleting_since is not None and scene.claim.annotations[names.TERMINATION_DEADLINE]


async def test_what_the_cloud_does_not_take_is_asked_for_again_and_then_replaced() -> None:
    scene = Scene()

    async def refuses(provider_id: str, claim: str = "") -> None:
        raise Retryable("ec2:RebootInstances", "RequestLimitExceeded")

    scene.cloud.reboot = refuses  # type: ignore[method-assign]
    tries = 0
    for _ in range(100):
        try:
            if await scene.step() == "the cloud did not take the reboot":
                break
        except Retryable:
            tries += 1
            await scene.world.pause(15.0)

    assert tries > 10
    assert scene.claim.deleting_since is not None


@pytest.mark.parametrize("late", [60.0, 610.0, 7200.0])
@pytest.mark.parametrize("by", ["Karpenter", "a call that was not recorded", "us"])
async def test_a_node_that_is_up_again_is_rebooted_however_late_somebody_looks(by: str, late: float) -> None:
    """Temporal or all workers were away meanwhile, or the cluster was given over in the middle."""
    scene = Scene()
    await scene.until("the cloud reboots it")
    if by != "us":
        scene.world.put(replace(scene.claim, annotations=with_memory(scene.claim.annotations, reboot_issued=None)))
    if by == "Karpenter":
        scene.world.put(replace(scene.claim, annotations=with_memory(scene.claim.annotations, reboots=())))
    else:
        reason = "RebootRequested" if by != "us" else "RebootIssued"
        began = scene.claim.condition(names.REBOOTING)
        assert began is not None
        rest = tuple(each for each in scene.claim.conditions if each is not began)
        scene.world.put(replace(scene.claim, conditions=(*rest, replace(began, reason=reason))))
    scene.booted()
    await scene.world.pause(late)

    await scene.until("rebooted")

    assert (len(scene.calls), scene.claim.deleting_since, scene.left) == (1, None, {})


@pytest.mark.parametrize("away", [15.0, 700.0, 7200.0])
async def test_a_reboot_at_which_nobody_looked_begins_anew_and_its_pods_have_their_time_again(away: float) -> None:
    """The cloud was never asked, so nothing has failed."""
    scene = Scene(a_bound_pod("p", "n", do_not_disrupt="true"))
    assert await scene.step() == "its pods are leaving"
    await scene.world.pause(away)
    since = scene.world.clock

    await scene.until("the cloud reboots it")

    assert scene.world.clock - since > 250.0
    assert (len(scene.calls), scene.claim.deleting_since) == (1, None)
    assert len(memory_of(scene.claim.annotations).reboots) == 1
    scene.booted()
    await scene.until("rebooted")


async def test_a_reboot_at_which_nobody_looked_is_called_off_where_the_node_is_well_by_now() -> None:
    scene = Scene(a_bound_pod("p", "n", do_not_disrupt="true"))
    assert await scene.step() == "its pods are leaving"
    await scene.world.pause(700.0)
    scene.world.put(replace(scene.node, conditions=(WELL,)))

    assert await scene.step() == "called off"

    assert (scene.calls, scene.node.taints, scene.claim.deleting_since) == ([], (), None)
    assert (scene.said[:2], scene.claim.annotations) == (("False", "RebootCalledOff"), {})


@pytest.mark.parametrize("shift", [400.0, 3600.0])
@pytest.mark.parametrize("takes", [True, False])
async def test_what_the_cloud_was_not_asked_is_not_what_it_did_not_take(shift: float, takes: bool) -> None:
    """As long as traffic is shifted away from the zone. The five minutes count from the first question on."""
    scene = Scene(a_bound_pod("p", "n", do_not_disrupt="true"))
    end, real, asked = scene.world.now() + shift, scene.cloud.reboot, list[float]()

    async def reboot(provider_id: str, claim: str = "") -> None:
        if scene.world.now() < end:
            raise NotAsked("ec2:RebootInstances", "traffic is shifted away from the zone")
        asked.append(scene.world.now())
        if not takes:
            raise Retryable("ec2:RebootInstances", "RequestLimitExceeded")
        await real(provider_id, claim)

    scene.cloud.reboot = reboot  # type: ignore[method-assign]
    said, deadline = "", end + 1200.0
    while said not in ("the cloud reboots it", "the cloud did not take the reboot") and scene.world.now() < deadline:
        try:
            said = await scene.step()
        except Retryable:
            await scene.world.pause(15.0)

    assert said == ("the cloud reboots it" if takes else "the cloud did not take the reboot")
    assert (scene.claim.deleting_since is None) is takes
    assert takes or len(asked) > 1


@pytest.mark.parametrize("booted", [False, True])
async def test_a_worker_that_dies_between_the_call_and_its_record_reboots_no_machine_twice(booted: bool) -> None:
    """A second call before the first has begun is the same reboot; one after it would be another."""
    scene = Scene()

    async def dies(provider_id: str, claim: str = "") -> None:
        scene.world.ledger.append(f"reboot {provider_id}")
        raise Retryable("worker", "killed")

    kept, scene.cloud.reboot = scene.cloud.reboot, dies  # type: ignore[method-assign]
    with pytest.raises(Retryable):
        await scene.until("never")
    scene.cloud.reboot = kept  # type: ignore[method-assign]
    if booted:
        scene.booted()
    await scene.until("rebooted" if booted else "the cloud reboots it")

    assert len(scene.calls) == (1 if booted else 2)


def cut_after(scene: Scene, writes: int) -> Callable[[], None]:
    """The worker dies with its n-th write answered."""
    patch, status = FakeClaims.patch, FakeClaims.patch_status
    left = [writes]

    def counted(method: Any) -> Any:
        async def wrapped(*args: Any) -> Any:
            answer = await method(*args)
            left[0] -= 1
            if left[0] == 0:
                raise Retryable("worker", "killed")
            return answer

        return wrapped

    FakeClaims.patch, FakeClaims.patch_status = counted(patch), counted(status)  # type: ignore[method-assign]

    def undo() -> None:
        FakeClaims.patch, FakeClaims.patch_status = patch, status  # type: ignore[method-assign]

    return undo


@pytest.mark.parametrize("writes", range(1, 8))
async def test_killed_after_any_write_it_still_ends_with_one_reboot_and_an_open_node(writes: int) -> None:
    scene = Scene(a_bound_pod("p", "n"))
    undo = cut_after(scene, writes)
    try:
        for _ in range(60):
            try:
                await scene.step()
            except Retryable:
                scene.restarted()
            if len(scene.calls) and scene.node.boot_id == "boot-1":
                scene.booted()
            if scene.said[1] == "RebootSucceeded" and not scene.left:
                break
    finally:
        undo()

    assert (scene.said[:2], len(scene.calls)) == (("False", "RebootSucceeded"), 1)
    assert (scene.node.taints, scene.left, scene.claim.deleting_since) == ((), {}, None)


@pytest.mark.parametrize(
    "spoiled",
    ["a node that is well", "another reason", "too young", "being deleted", "do-not-repair"],
)
async def test_a_stranger_who_asks_for_a_reboot_gets_none(spoiled: str) -> None:
    """DUR-3: what the order says is not believed."""
    scene = Scene()
    world = scene.world
    match spoiled:
        case "a node that is well":
            world.put(replace(scene.node, conditions=(WELL,)))
        case "another reason":
            world.put(replace(scene.node, conditions=(WELL, replace(FAULT, reason="NvidiaXID79Error"))))
        case "too young":
            world.put(replace(scene.node, conditions=(WELL, replace(FAULT, changed=900.0))))
        case "being deleted":
            world.put(replace(scene.claim, deleting_since=999.0))
        case "do-not-repair":
            world.put(replace(scene.node, annotations={names.DO_NOT_REPAIR: "true"}))

    for _ in range(5):
        await scene.step()

    assert (scene.calls, scene.node.taints, scene.said) == ([], (), ("", "", ""))


async def test_with_the_gate_closed_none_is_begun() -> None:
    scene = Scene(wanted=False)

    assert await scene.step() == "there is nothing that a reboot would clear"
    assert (scene.calls, scene.node.taints) == ([], ())


PAUSED: Final = Namespace(
    name="kube-system",
    labels={},
    annotations={names.PAUSED: "all,drains", names.PAUSED_BY: "alice", names.PAUSED_REASON: "incident"},
)
HOOK: Final = f"{names.PRE_DRAIN_HOOK}mesh"


@pytest.mark.parametrize("issued", [False, True])
async def test_a_reboot_that_says_nothing_of_the_time_for_its_pods_is_gone_on_with(issued: bool) -> None:
    """As Karpenter leaves it for a policy and a NodeClaim without a bound, and a crash between our own two writes. Once
    its condition has said that it is over, its taint comes off still."""
    reason = "RebootIssued" if issued else "RebootRequested"
    conditions = (
        Condition(type=names.INITIALIZED_CONDITION, status="Unknown" if issued else "True"),
        Condition(type=names.REBOOTING, status="True", reason=reason, changed=990.0),
    )
    before = {names.PRE_BOOT_ID: "boot-0"} if issued else {}
    scene = Scene(a_bound_pod("p", "n"), conditions=conditions, annotations=before, wanted=issued)
    scene.world.put(replace(scene.node, taints=(Taint(key=names.REBOOTING_TAINT, effect="NoSchedule"),)))

    message = (await scene.steps.reboot_node(ORDER)).message

    assert message == ("rebooted" if issued else "called off")
    assert (scene.node.taints, scene.left, scene.calls) == ((), {}, [])
    assert scene.said[0] == "False" and len(scene.world.pods) == 1
    assert memory_of(scene.claim.annotations).reboots == ((990.0,) if issued else ())


@pytest.mark.parametrize("what", ["a pause", "a hook"])
async def test_what_holds_a_drain_holds_a_reboot_and_costs_its_pods_no_second(what: str) -> None:
    """TRM-47: no pod is asked, nor the cloud; afterwards both have all of their time."""
    scene = Scene(a_bound_pod("p", "n"), annotations={HOOK: "mesh-team"} if what == "a hook" else {})
    scene.world.system = PAUSED if what == "a pause" else None
    for _ in range(80):
        await scene.step()
    assert (scene.calls, [line for line in scene.world.ledger if line.startswith("evict")]) == ([], [])
    assert scene.claim.deleting_since is None and scene.claim.is_rebooting

    scene.world.system = None
    claim = scene.claim
    scene.world.put(replace(claim, annotations={key: text for key, text in claim.annotations.items() if key != HOOK}))
    await scene.until("the cloud reboots it")
    scene.booted()
    await scene.until("rebooted")

    assert [line.split()[:2] for line in scene.world.ledger if line.startswith("evict")] == [["evict", "p"]]
    assert len(scene.calls) == 1 and scene.left == {}


async def test_a_pause_that_comes_as_its_pods_leave_holds_the_rest_of_them() -> None:
    scene = Scene(a_bound_pod("p", "n"))

    def paused() -> None:
        scene.world.system = PAUSED
        scene.world.put(a_bound_pod("q", "n"))

    scene.world.at(scene.world.clock + 2.0, paused)

    for _ in range(80):
        await scene.step()

    done = [line.split()[:2] for line in scene.world.ledger if line.startswith(("evict", "reboot"))]
    assert done == [["evict", "p"]]


@pytest.mark.parametrize("own", [None, 7200.0])
async def test_a_person_is_asked_about_a_hook_that_holds_a_reboot_as_one_that_holds_a_drain(own: float | None) -> None:
    """TRM-47. It holds it for no longer than the claim gives its node; then its pods have their time."""
    scene = Scene(a_bound_pod("p", "n"), annotations={HOOK: "mesh-team"}, termination_grace=own)
    began = scene.world.clock
    while scene.world.clock < began + 3500.0:
        assert await scene.step() == "waiting for hook mesh (mesh-team)"
    assert "DrainAsks" not in scene.world.said()
    while scene.world.clock < began + 7100.0:
        assert await scene.step() == "waiting for hook mesh (mesh-team)"
    assert "DrainAsks" in scene.world.said() and scene.calls == []
    assert [(clock.blocker, clock.asks) for clock in memory_of(scene.claim.annotations).held.clocks] == [
        (Blocker.HOOK_WAITS, True)
    ]

    if own is None:
        claim = scene.claim
        scene.world.put(replace(claim, annotations={**claim.annotations, names.DECISION: "force"}))
    await scene.until("the cloud reboots it")
    decided = [notice.message for notice in scene.world.notices if notice.reason == "DrainDecided"]
    assert len(decided) == (own is None)
    assert all("holds its reboot" in message and "pods will be deleted" not in message for message in decided)
    assert 7100.0 <= scene.world.clock - began < 7400.0
    assert memory_of(scene.claim.annotations).held == NOT_HELD
    scene.booted()
    await scene.until("rebooted")

    assert scene.left == {HOOK: "mesh-team"}
    assert [line.split()[:2] for line in scene.world.ledger if line.startswith("evict")] == [["evict", "p"]]


async def test_what_was_asked_about_a_hook_goes_with_a_reboot_that_is_called_off() -> None:
    scene = Scene(a_bound_pod("p", "n"), annotations={HOOK: "mesh-team"})
    for _ in range(8):
        await scene.step()
    assert memory_of(scene.claim.annotations).held.clocks

    scene.world.put(replace(scene.node, conditions=(WELL,)))
    assert await scene.step() == "called off"

    assert memory_of(scene.claim.annotations).held == NOT_HELD


async def test_a_hook_that_a_policy_passes_after_its_time_holds_a_reboot_no_longer() -> None:
    """TRM-47. Also where its pods are asked, though their time begins with that."""
    scene = Scene(a_bound_pod("p", "n"), annotations={HOOK: "mesh-team"})
    passes = Policy(name="passes", drain=DrainRules(hooks=HookRules(timeout=900.0, proceeds=True)))
    scene.world.pools["gpu"] = a_general_pool("gpu")
    scene.world.rules = replace(scene.world.rules, policies={passes.name: passes})
    began = scene.world.clock

    await scene.until("the cloud reboots it")

    assert 900.0 <= scene.world.clock - began < 1100.0
    assert "DrainAsks" not in scene.world.said()
