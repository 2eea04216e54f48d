"""await_registered and await_initialized: a launched instance becomes a node that takes pods (LIF-20 to LIF-43)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dovetail.activities.launch.await_registered_and_initialized import AwaitRegisteredAndInitialized
from dovetail.lifecycle.node_checks import CONSISTENT
from dovetail.messages.outcomes import JoinOutcome
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.scheduling.taints import Taint
from tests.lifecycle.objects import a_joined_claim, a_joined_node, is_now
from worlds.disruption import UNREGISTERED, a_claim, a_node
from worlds.fakes import FakeClaims, FakeLookups, FakeNodes, World, join_ports

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")
NOT_READY = (Condition(type=names.READY, status="False"),)


def a_launched_claim() -> NodeClaim:
    return a_claim(
        provider_id="aws:///zone/i-1",
        conditions=(
            is_now(names.LAUNCHED),
            is_now(names.REGISTERED_CONDITION, "Unknown", reason="NodeNotFound"),
            is_now(names.INITIALIZED_CONDITION, "Unknown"),
        ),
    )


def a_registered_claim() -> NodeClaim:
    conditions = [c for c in a_joined_claim().conditions if c.type in (names.LAUNCHED, names.REGISTERED_CONDITION)]
    return a_joined_claim(conditions=(*conditions, is_now(names.INITIALIZED_CONDITION, "Unknown")))


@dataclass(slots=True)
class Stage:
    world: World
    step: AwaitRegisteredAndInitialized

    async def register(self) -> JoinOutcome:
        return await self.step.await_registered(REF)

    async def initialize(self) -> JoinOutcome:
        return await self.step.await_initialized(REF)

    async def join(self) -> JoinOutcome:
        return await self.step.await_joined(REF)

    def status_of(self, kind: str) -> tuple[str, str]:
        condition = self.world.claims["pool-1"].condition(kind)
        assert condition is not None
        return condition.status, condition.reason

    def writes(self) -> list[str]:
        return [line for line in self.world.ledger if line.startswith(("patch", "delete"))]


def stage_over(world: World) -> Stage:
    return Stage(
        world,
        AwaitRegisteredAndInitialized(
            join_ports(world),
            world.now,
            world.pause,
        ),
    )


@pytest.fixture
def stage() -> Stage:
    return stage_over(World(clock=1010.0))


async def test_a_node_that_appears_is_registered(stage: Stage) -> None:
    """LIF-23 to LIF-27, BEH-53, BEH-54."""
    stage.world.put(a_launched_claim())
    stage.world.at(1013.0, lambda: stage.world.put(a_node()))

    outcome = await stage.register()

    node, claim = stage.world.nodes["node-1"], stage.world.claims["pool-1"]
    assert (outcome.kind, outcome.node, claim.node_name) == ("done", "node-1", "node-1")
    assert node.labels[names.REGISTERED] == "true"
    assert UNREGISTERED not in node.taints
    assert names.TERMINATION_FINALIZER in node.finalizers
    assert [owner.uid for owner in node.owners] == [claim.uid]
    assert stage.status_of(names.REGISTERED_CONDITION) == ("True", "Registered")
    assert {write.version for write in outcome.writes} == {int(node.resource_version), int(claim.resource_version)}


async def test_a_node_waits_for_what_the_cloud_still_has_to_say_and_is_registered_then(stage: Stage) -> None:
    """AWS-95: the claim's mark says whom its registration waits for."""
    claim = a_launched_claim()
    marked = replace(claim, annotations={**claim.annotations, names.REGISTRATION_HOOK: "the-hook"})
    stage.world.put(marked)
    stage.world.put(a_node())
    seen = []

    def say() -> None:
        seen.append(stage.status_of(names.REGISTERED_CONDITION))
        found = stage.world.claims["pool-1"]
        kept = {key: value for key, value in found.annotations.items() if key != names.REGISTRATION_HOOK}
        stage.world.put(replace(found, annotations=kept))

    stage.world.at(1013.0, say)

    outcome = await stage.register()

    assert seen == [("Unknown", "RegistrationHookPending")]
    assert outcome.kind == "done"
    assert names.REGISTRATION_HOOK not in stage.world.nodes["node-1"].annotations


class LateLookups(FakeLookups):
    """A cache in which a claim is still what it was, until a moment."""

    def __init__(self, world: World, before: NodeClaim, until: float) -> None:
        super().__init__(world)
        self.before, self.until = before, until

    def claim(self, name: str) -> NodeClaim | None:
        return self.before if self.world.clock < self.until else super().claim(name)


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        (a_launched_claim(), names.REGISTERED_CONDITION),
        (a_registered_claim(), names.INITIALIZED_CONDITION),
    ],
)
async def test_an_attempt_that_is_late_takes_nothing_back(before: NodeClaim, kind: str) -> None:
    """DUR-30: another attempt has done the work, and the node has had a bad moment since."""
    world = World(clock=1010.0)
    world.put(a_joined_claim())
    if kind == names.INITIALIZED_CONDITION:
        world.put(a_joined_node(conditions=NOT_READY))
    claims, nodes = FakeClaims(world), FakeNodes(world)
    stale = replace(before, resource_version="7")
    step = AwaitRegisteredAndInitialized(
        join_ports(world, lookups=LateLookups(world, stale, until=1030.0), claims=claims, nodes=nodes),
        world.now,
        world.pause,
    )

    outcome = await (step.await_registered(REF) if kind == names.REGISTERED_CONDITION else step.await_initialized(REF))

    assert "conflict pool-1" in world.ledger
    assert outcome.kind == "done"
    assert [c.status for c in world.claims["pool-1"].conditions if c.type == kind] == ["True"]


async def test_registration_costs_one_write_to_each_object(stage: Stage) -> None:
    stage.world.put(a_launched_claim(), a_node())

    await stage.register()

    assert stage.writes() == ["patch node node-1", "patch status pool-1"]


async def test_a_node_that_is_ready_when_it_joins_is_registered_and_initialised_by_the_same_writes(
    stage: Stage,
) -> None:
    stage.world.put(a_launched_claim(), a_node())

    outcome = await stage.join()

    assert (outcome.kind, outcome.node) == ("done", "node-1")
    assert stage.writes() == ["patch node node-1", "patch status pool-1"]
    assert stage.world.nodes["node-1"].labels[names.INITIALIZED] == "true"
    for kind in (names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION, CONSISTENT):
        assert stage.status_of(kind)[0] == "True"


async def test_of_a_node_smaller_than_what_was_launched_the_upkeep_tells(stage: Stage) -> None:
    claim = a_launched_claim()
    launched = {resource: 2 * amount for resource, amount in a_node().capacity.items()}
    stage.world.put(replace(claim, requests={"cpu": 10**9}, capacity=launched), a_node())

    await stage.join()

    assert stage.status_of(names.INITIALIZED_CONDITION)[0] == "True"
    assert stage.world.claims[claim.name].condition(CONSISTENT) is None


def becomes_ready(world: World) -> None:
    world.put(replace(world.nodes["node-1"], conditions=a_node().conditions))


async def test_of_a_node_that_is_ready_a_moment_after_it_joined_the_claim_says_both_in_one_write(stage: Stage) -> None:
    stage.world.put(a_launched_claim(), a_node(conditions=NOT_READY))
    stage.world.at(1013.0, lambda: becomes_ready(stage.world))

    outcome = await stage.join()

    assert (outcome.kind, outcome.node) == ("done", "node-1")
    assert stage.writes() == ["patch node node-1", "patch node node-1", "patch status pool-1"]
    said = {c.type: (c.status, c.changed) for c in stage.world.claims["pool-1"].conditions}
    assert said[names.REGISTERED_CONDITION] == ("True", 1010.0)
    status, since = said[names.INITIALIZED_CONDITION]
    assert status == "True"
    assert since >= 1013.0


async def test_a_claim_that_is_deleted_while_its_node_becomes_ready_says_that_the_node_has_joined(stage: Stage) -> None:
    stage.world.put(a_launched_claim(), a_node(conditions=NOT_READY))
    stage.world.at(1012.0, lambda: stage.world.put(replace(stage.world.claims["pool-1"], deleting_since=1012.0)))
    stage.world.at(1012.5, lambda: becomes_ready(stage.world))

    outcome = await stage.join()

    assert (outcome.kind, outcome.node) == ("deleting", "node-1")
    assert stage.world.clock < 1013.0
    assert stage.status_of(names.REGISTERED_CONDITION)[0] == "True"
    assert names.INITIALIZED not in stage.world.nodes["node-1"].labels


async def test_a_worker_that_dies_while_a_node_becomes_ready_leaves_its_registration_to_the_next(stage: Stage) -> None:
    """DUR-5: the node says that it has joined, the claim does not yet."""
    stage.world.put(a_launched_claim(), a_node(conditions=NOT_READY))

    def die() -> None:
        raise RuntimeError("killed")

    stage.world.at(1012.0, die)
    with pytest.raises(RuntimeError):
        await stage.join()
    assert stage.world.nodes["node-1"].labels[names.REGISTERED] == "true"
    becomes_ready(stage.world)
    stage.world.ledger.clear()

    outcome = await stage_over(stage.world).join()

    assert outcome.kind == "done"
    assert stage.writes() == ["patch node node-1", "patch status pool-1"]
    assert stage.status_of(names.READY) == ("True", "Ready")


class OlderNodes(FakeLookups):
    """A cache that has a node as it was before, until a moment."""

    def __init__(self, world: World, before: Node, until: float) -> None:
        super().__init__(world)
        self.before, self.until = before, until

    def nodes_of(self, provider_id: str) -> tuple[Node, ...]:
        return (self.before,) if self.world.clock < self.until else super().nodes_of(provider_id)


async def test_a_cache_that_does_not_show_start_up_taints_yet_initialises_nothing() -> None:
    """They come with the registration; the kubelet has said before that it is ready."""
    world = World(clock=1010.0)
    startup = Taint(key="example.com/starting", effect="NoSchedule")
    world.put(replace(a_launched_claim(), startup_taints=(startup,)), a_node())
    lookups = OlderNodes(world, world.nodes["node-1"], until=1013.0)
    step = AwaitRegisteredAndInitialized(join_ports(world, lookups=lookups), world.now, world.pause)
    seen = []

    def lift() -> None:
        seen.append(names.INITIALIZED in world.nodes["node-1"].labels)
        world.put(replace(world.nodes["node-1"], taints=()))

    world.at(1014.0, lift)

    outcome = await step.await_joined(REF)

    assert (outcome.kind, seen) == ("done", [False])


async def test_a_node_that_is_not_ready_for_long_is_initialised_once_it_is(stage: Stage) -> None:
    stage.world.put(a_launched_claim(), a_node(conditions=NOT_READY))
    seen = []

    def become_ready() -> None:
        seen.append((stage.status_of(names.REGISTERED_CONDITION)[0], stage.status_of(names.INITIALIZED_CONDITION)[0]))
        becomes_ready(stage.world)

    stage.world.at(1016.0, become_ready)

    outcome = await stage.join()

    assert seen == [("True", "Unknown")]
    assert (outcome.kind, stage.status_of(names.INITIALIZED_CONDITION)[0]) == ("done", "True")


async def test_a_start_up_taint_keeps_a_ready_node_from_being_initialised_as_it_joins(stage: Stage) -> None:
    startup = Taint(key="example.com/starting", effect="NoSchedule")
    stage.world.put(replace(a_launched_claim(), startup_taints=(startup,)), a_node())
    seen = []

    def lift() -> None:
        seen.append(stage.status_of(names.INITIALIZED_CONDITION)[0])
        stage.world.put(replace(stage.world.nodes["node-1"], taints=()))

    stage.world.at(1013.0, lift)

    outcome = await stage.join()

    assert (outcome.kind, seen) == ("done", ["Unknown"])


async def test_a_node_without_its_taint_is_reported_before_it_is_ready(stage: Stage) -> None:
    """LIF-22: pods may be bound too early, which is worth knowing at once."""
    stage.world.put(a_launched_claim(), a_node(taints=(), conditions=NOT_READY))

    outcome = await stage.join()

    assert (outcome.kind, outcome.unmarked) == ("done", True)
    assert stage.status_of(names.INITIALIZED_CONDITION)[0] == "Unknown"


async def test_a_registration_that_was_half_done_is_finished(stage: Stage) -> None:
    """DUR-5: the node was written, the claim was not."""
    stage.world.put(a_launched_claim(), a_node())
    await stage.register()
    before = stage.world.nodes["node-1"]
    stage.world.put(a_launched_claim())

    outcome = await stage.register()

    assert (outcome.kind, stage.world.nodes["node-1"]) == ("done", before)


async def test_a_node_that_came_without_its_taint_is_registered_and_reported(stage: Stage) -> None:
    """LIF-22, BEH-55."""
    stage.world.put(a_launched_claim(), a_node(taints=()))

    outcome = await stage.register()

    assert (outcome.kind, outcome.message) == ("done", "the node came without the unregistered taint")
    assert outcome.unmarked


async def test_two_nodes_of_one_instance_are_never_registered(stage: Stage) -> None:
    """LIF-21: terminal, also where one of them goes; the time limit ends it."""
    stage.world.put(a_launched_claim(), a_node("node-1"), a_node("node-2"))
    stage.world.at(1100.0, lambda: stage.world.nodes.clear())
    stage.world.at(1101.0, lambda: stage.world.put(a_node("node-1")))

    outcome = await stage.register()

    assert outcome.kind == "timed_out"
    assert stage.status_of(names.REGISTERED_CONDITION) == ("False", "MultipleNodesFound")
    assert UNREGISTERED in stage.world.nodes["node-1"].taints


async def test_a_registered_claim_stays_registered_whatever_becomes_of_its_node(stage: Stage) -> None:
    """LIF-20: at once, and nothing is written."""
    stage.world.put(a_registered_claim(), a_node("node-1"), a_node("node-2"))

    assert await stage.register() == JoinOutcome(kind="done", node="node-1")
    assert (stage.world.clock, stage.writes()) == (1010.0, [])


async def test_a_node_that_goes_before_it_could_be_registered_is_not_found_again(stage: Stage) -> None:
    """LIF-21: what was waited for before does not stay as the reason."""
    claim = a_launched_claim()
    stage.world.put(replace(claim, annotations={**claim.annotations, names.REGISTRATION_HOOK: "the-hook"}), a_node())
    seen = []
    stage.world.at(1013.0, lambda: seen.append(stage.status_of(names.REGISTERED_CONDITION)))
    stage.world.at(1013.0, stage.world.nodes.clear)
    stage.world.at(1020.0, lambda: seen.append(stage.status_of(names.REGISTERED_CONDITION)))

    await stage.register()

    assert seen == [("Unknown", "RegistrationHookPending"), ("Unknown", "NodeNotFound")]


async def test_without_a_node_the_wait_ends_fifteen_minutes_after_the_creation(stage: Stage) -> None:
    """LIF-43, BEH-64."""
    stage.world.put(a_launched_claim())

    outcome = await stage.register()

    assert outcome.kind == "timed_out"
    assert 1900.0 <= stage.world.clock < 1901.1


@pytest.mark.parametrize(
    "node", [a_node(), a_joined_node()], ids=["joined", "registered, and its claim does not say so"]
)
async def test_a_node_that_joined_while_nobody_looked_is_kept_however_late_it_is_seen(stage: Stage, node: Node) -> None:
    """LIF-43: the limit is one for instances that never join. The second has our finalizer and may run pods (DUR-5)."""
    stage.world.clock = 1000.0 + 4 * 3600
    stage.world.put(a_launched_claim(), node)

    outcome = await stage.join()

    assert (outcome.kind, outcome.node) == ("done", "node-1")
    assert stage.status_of(names.READY) == ("True", "Ready")


@pytest.mark.parametrize(("node", "kind"), [(a_node(), "timed_out"), (a_joined_node(), "done")])
async def test_what_the_cloud_still_has_to_say_is_waited_for_within_the_limit(
    stage: Stage, node: Node, kind: str
) -> None:
    """LIF-43, AWS-95: unless the Node was registered already."""
    claim = a_launched_claim()
    stage.world.clock = 1000.0 + 4 * 3600
    stage.world.put(replace(claim, annotations={**claim.annotations, names.REGISTRATION_HOOK: "the-hook"}), node)

    assert (await stage.register()).kind == kind


@pytest.mark.parametrize("kind", ["register", "initialize"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda world: world.put(replace(world.claims["pool-1"], deleting_since=1012.0)), "deleting"),
        (lambda world: world.claims.clear(), "gone"),
        (lambda world: world.put(replace(world.claims["pool-1"], uid="another")), "gone"),
    ],
)
async def test_a_wait_ends_with_its_claim(
    stage: Stage, kind: str, change: Callable[[World], None], expected: str
) -> None:
    """LaunchNode learns of a deletion from here."""
    stage.world.put(a_launched_claim() if kind == "register" else a_registered_claim())
    stage.world.at(1012.0, lambda: change(stage.world))

    outcome = await (stage.register() if kind == "register" else stage.initialize())

    assert outcome.kind == expected


async def test_a_cache_that_lags_does_not_make_the_claim_gone(stage: Stage) -> None:
    stage.world.put(a_launched_claim(), a_node())
    stage.world.hidden.add("pool-1")

    assert (await stage.register()).kind == "done"


async def test_a_node_that_is_ready_is_initialised(stage: Stage) -> None:
    """LIF-38: and the claim is Ready."""
    stage.world.put(a_registered_claim(), a_joined_node(labels={}))

    outcome = await stage.initialize()

    assert (outcome.kind, outcome.node) == ("done", "node-1")
    assert stage.world.nodes["node-1"].labels == {names.INITIALIZED: "true"}
    assert stage.status_of(names.INITIALIZED_CONDITION) == ("True", "Initialized")
    assert stage.status_of(names.READY) == ("True", "Ready")
    assert stage.writes() == ["patch node node-1", "patch status pool-1"]


async def test_what_is_missing_for_a_moment_is_not_written(stage: Stage) -> None:
    """A start passes through several reasons; writing each costs requests and meets other writers."""
    stage.world.put(a_registered_claim(), a_joined_node(conditions=NOT_READY))
    stage.world.at(1012.0, lambda: stage.world.put(a_joined_node()))

    await stage.initialize()

    assert stage.writes() == ["patch status pool-1"]


async def test_what_is_missing_for_long_is_written_once(stage: Stage) -> None:
    """LIF-32."""
    stage.world.put(a_registered_claim(), a_joined_node(conditions=NOT_READY))
    seen: list[tuple[str, str]] = []
    stage.world.at(1100.0, lambda: seen.append(stage.status_of(names.INITIALIZED_CONDITION)))
    stage.world.at(1200.0, lambda: stage.world.put(a_joined_node()))

    outcome = await stage.initialize()

    assert (outcome.kind, seen) == ("done", [("Unknown", "NodeNotReady")])
    assert stage.writes() == ["patch status pool-1", "patch status pool-1"]


async def test_initialization_has_no_time_limit(stage: Stage) -> None:
    """LIF-39."""
    stage.world.put(a_registered_claim(), a_joined_node(conditions=NOT_READY))
    stage.world.at(20000.0, lambda: stage.world.put(a_joined_node()))

    assert (await stage.initialize()).kind == "done"


async def test_an_initialised_claim_is_done_at_once(stage: Stage) -> None:
    """LIF-30: sticky, whatever the node says now."""
    stage.world.put(a_joined_claim(), a_joined_node(conditions=NOT_READY))

    assert await stage.initialize() == JoinOutcome(kind="done", node="node-1")


async def test_a_kubelet_that_writes_at_the_same_moment_costs_no_try(stage: Stage) -> None:
    stage.world.put(a_launched_claim(), a_node())
    patch = stage.step.nodes.patch

    async def raced(node: Node, *changes: Any) -> object:
        if "conflict node-1" not in stage.world.ledger:
            stage.world.put(replace(stage.world.nodes[node.name], annotations={"kubelet": "wrote"}))
        return await patch(node, *changes)

    stage.step.nodes.patch = raced  # type: ignore[method-assign, assignment]

    assert (await stage.register()).kind == "done"
    assert "conflict node-1" in stage.world.ledger
    assert stage.world.nodes["node-1"].annotations == {"kubelet": "wrote"}
