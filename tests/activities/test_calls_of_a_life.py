"""What a node's life asks of the API server, counted at the ports: a call that comes back is seen here.

A port's method is one request; reads and lists are counted like writes. `python -m acceptance.bench.live.calls` counts
the same on a real control plane, with what upkeep and Events add.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import iscoroutinefunction
from typing import Any, cast
from unittest.mock import Mock

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.launch.await_registered_and_initialized import AwaitRegisteredAndInitialized
from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.await_detached import AwaitDetached
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.messages.plans import DisruptionCommand, Seen
from dovetail.messages.requests import DeletesRequest, MarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.ports.cloud import Instance
from dovetail.ports.failures import Refused, Unreachable
from tests.activities.test_upkeep import ReadyClass, seen
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, a_quiet_pool, a_web_pod, target_of
from worlds.disruption import a_claim, a_node
from worlds.fakes import (
    FakeCatalogues,
    FakeClaims,
    FakeCloud,
    FakeLookups,
    FakeNodes,
    FakeNotices,
    FakePods,
    World,
    deleting,
    departure_ports,
    detach_ports,
    drain_ports,
    join_ports,
    mark_ports,
    unlimited,
)

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")
OWNER = "c/disrupt/0199"
NOT_READY = (Condition(type=names.READY, status="False"),)


class Counted:
    """A port whose calls are counted."""

    def __init__(self, name: str, port: object, calls: Counter[str]) -> None:
        self._name, self._port, self._calls = name, port, calls

    def __getattr__(self, method: str) -> Any:
        act = getattr(self._port, method)

        if not iscoroutinefunction(act):
            return act  # no request

        async def call(*given: Any, **named: Any) -> Any:
            self._calls[f"{self._name} {method}"] += 1
            return await act(*given, **named)

        return call


@dataclass(slots=True)
class Life:
    """The steps of one node over counted ports."""

    world: World = field(default_factory=World)
    calls: Counter[str] = field(default_factory=Counter)
    cloud: FakeCloud = field(init=False)
    claims: Any = field(init=False)
    nodes: Any = field(init=False)
    pods: Any = field(init=False)

    def __post_init__(self) -> None:
        self.cloud = FakeCloud(self.world)
        self.claims = Counted("claims", FakeClaims(self.world), self.calls)
        self.nodes = Counted("nodes", FakeNodes(self.world), self.calls)
        self.pods = Counted("pods", FakePods(self.world), self.calls)

    @property
    def known(self) -> KnownClaims:
        return KnownClaims(FakeLookups(self.world), self.claims)

    async def launch(self) -> None:
        """LaunchNode's steps, of an instance whose node joins before it is ready."""
        world, notices = self.world, FakeNotices(self.world)
        launch = LaunchInstance(self.known, self.cloud, notices, world.now, catalogues=FakeCatalogues())
        assert (await launch.launch_instance(REF)).kind == "launched"
        node = a_node(provider_id=world.claims["pool-1"].provider_id, conditions=NOT_READY)
        world.at(world.clock + 5.0, lambda: world.put(node))
        ready = a_node().conditions
        world.at(world.clock + 20.0, lambda: world.put(replace(world.nodes["node-1"], conditions=ready)))
        ports = join_ports(world, claims=self.claims, nodes=self.nodes)
        join = AwaitRegisteredAndInitialized(ports, world.now, world.pause)
        assert (await join.await_joined(REF)).kind == "done"

    async def delete(self, *, waits: bool) -> None:
        """DisruptNodes' steps up to the delete; `waits`: something is waited for before it."""
        world = self.world
        target = replace(target_of(world.claims["pool-1"], world.nodes["node-1"]), pods=tuple(world.pods))
        reason = DisruptionReason.DRIFTED if waits else DisruptionReason.EMPTY
        command = DisruptionCommand(reason=reason, method="", targets=(target,), drain_first=waits)
        seen = Seen(taken_at=world.now(), versions=()).ready(world.now())
        ports = mark_ports(world, claims=self.claims, nodes=self.nodes, pods=self.pods)
        mark = MarkAndUnmarkNodes(ports, world.now)
        request = MarkRequest(owner=OWNER, command=command, seen=seen)
        assert (await ActivityEnvironment().run(mark.mark_nodes, request)).marked == ("pool-1",)
        deletion = deleting(world, claims=self.claims)
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, workflow_id=OWNER)
        await environment.run(deletion.delete_claims, DeletesRequest(targets=(target,), reason=command.reason))

    def let_go(self) -> None:
        """The owners of hooks have done their work."""
        claim = self.world.claims["pool-1"]
        hooks = [key for key in claim.annotations if key.startswith(names.PRE_TERMINATE_HOOK)]
        self.world.put(replace(claim, annotations={k: v for k, v in claim.annotations.items() if k not in hooks}))

    async def terminate(self) -> list[str]:
        """TerminateNode's steps, as the workflow hands one to the next; the steps that there were."""
        world, lookups, notices = self.world, FakeLookups(self.world), FakeNotices(self.world)
        begin = BeginAndEndDeparture(
            departure_ports(world, known=self.known, nodes=self.nodes, cloud=self.cloud), world.now
        )
        detach = AwaitDetached(detach_ports(world, claims=self.claims, nodes=self.nodes), world.now, world.pause)
        ports = drain_ports(
            world,
            lookups=lookups,
            claims=self.claims,
            nodes=self.nodes,
            pods=self.pods,
            notices=notices,
            cloud=self.cloud,
            detaching=detach,
        )
        drain = DrainNode(ports, unlimited(EvictionPace(world.now, world.pause)), world.now, world.pause)
        departure = await begin.begin_departure(REF)
        drained = await drain.drain_node(replace(departure, hands_over=True))
        assert drained.unwritten
        end = TerminateInstance(self.known, self.cloud, world.now, begin, world.pause)
        ended = await end.terminate_instance(replace(departure, emptied=True))
        return [drained.message, ended.message]


@pytest.fixture
def life() -> Life:
    return Life()


def standing(life: Life, *pods: str) -> None:
    """A node that has joined, with these pods."""
    life.world.put(a_joined_claim(), a_joined_node(), *[a_web_pod(name) for name in pods])
    life.world.instances["aws:///zone/i-1"] = Instance(
        provider_id="aws:///zone/i-1", claim_uid=REF.uid, labels={}, annotations={}, capacity={}, allocatable={}
    )


async def test_a_launch_asks_for_what_it_writes_and_reads_nothing(life: Life) -> None:
    """Two writes of the Node and three of the status, because it is not ready when it joins."""
    life.world.put(a_claim())

    await life.launch()

    assert life.calls == {"claims patch": 2, "claims patch_status": 3, "nodes patch": 2}


async def test_where_no_quiet_is_asked_for_the_write_that_says_initialised_says_consolidatable(life: Life) -> None:
    """DIS-167: upkeep has nothing left to write, though the pods that the node was made for have come."""
    world = life.world
    world.put(a_claim())
    world.pools["pool"] = a_new_pool()
    world.at(world.clock + 6.0, lambda: world.put(a_web_pod()))

    await life.launch()
    upkeep = ClaimUpkeep(
        life.claims, ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )
    look = await upkeep.look(replace(seen(world, a_new_pool()), pods=dict(world.pods)))

    assert world.claims["pool-1"].is_true(names.CONSOLIDATABLE)
    assert life.calls["claims patch_status"] == 3
    assert look.due == []


async def test_where_quiet_is_asked_for_a_new_node_is_not_consolidatable(life: Life) -> None:
    life.world.put(a_claim())
    life.world.pools["pool"] = a_quiet_pool()

    await life.launch()

    assert life.world.claims["pool-1"].condition(names.CONSOLIDATABLE) is None


async def test_the_end_of_an_empty_node_asks_for_ten_calls(life: Life) -> None:
    """The pods are listed live twice, before the mark holds and before "drained": nothing saves that."""
    standing(life)

    await life.delete(waits=False)
    await life.terminate()

    assert life.calls == {
        "claims patch": 2,  # the owner, the finalizer
        "claims patch_status": 2,  # why it goes; that it is drained and its instance ends
        "claims delete": 1,
        "nodes patch": 2,  # all that a leaving node carries; the finalizer
        "nodes delete": 1,
        "pods list_on": 2,
    }
    assert (life.world.claims, life.world.nodes, life.world.instances) == ({}, {}, {})


async def test_the_end_of_a_node_with_pods_says_how_far_it_has_come(life: Life) -> None:
    standing(life, "web-1", "web-2")

    await life.delete(waits=True)
    await life.terminate()

    evictions = life.calls.pop("pods evict")
    assert evictions == 2
    assert life.calls == {
        "claims patch": 2,
        "claims patch_status": 3,  # and that its drain has begun
        "claims delete": 1,
        "nodes patch": 3,  # load balancers lose it when it leaves, not when it is marked
        "nodes set_conditions": 3,
        "nodes delete": 1,
        "pods list_on": 2,
    }


async def test_a_claim_whose_instance_cannot_be_ended_says_that_its_node_is_drained(life: Life) -> None:
    """What the drain has left to the step after it is not lost with the cloud."""
    standing(life)
    await life.delete(waits=False)
    end: Callable[[str, str], Any] = life.cloud.terminate

    async def fail(provider_id: str, claim: str = "") -> str:
        raise Unreachable("ec2", "no answer")

    life.cloud.terminate = fail  # type: ignore[assignment,method-assign]
    with pytest.raises(Unreachable):
        await life.terminate()
    said = {each.type: each.status for each in life.world.claims["pool-1"].conditions}
    life.cloud.terminate = cast(Any, end)  # type: ignore[method-assign]
    await life.terminate()

    assert (said[names.DRAINED], said[names.VOLUMES_DETACHED]) == ("True", "True")
    assert names.INSTANCE_TERMINATING not in said
    assert life.world.claims == {}


async def test_an_empty_node_that_somebody_deletes_says_that_it_is_drained(life: Life) -> None:
    """Decision 261: `kubectl wait` may wait for it."""
    standing(life)
    await FakeClaims(life.world).delete("pool-1", REF.uid)

    await life.terminate()

    assert life.calls["nodes set_conditions"] == 1


async def test_an_empty_node_that_a_hook_keeps_says_that_it_is_drained(life: Life) -> None:
    """Decision 261: it may stand for long."""
    standing(life)
    claim = life.world.claims["pool-1"]
    life.world.put(replace(claim, annotations={f"{names.PRE_TERMINATE_HOOK}snapshot": "storage"}))
    life.world.at(life.world.clock + 600.0, life.let_go)

    await life.delete(waits=False)
    await life.terminate()

    assert life.calls["nodes set_conditions"] == 1


async def test_a_deletion_that_the_cache_does_not_show_yet_is_known_by_its_answer(life: Life) -> None:
    """The step that deleted it ran in this process: nothing is read again."""
    standing(life)
    stale = life.world.claims["pool-1"]
    lookups, claims = FakeLookups(life.world), FakeClaims(life.world)
    await claims.delete(stale.name, stale.uid)
    answer = life.world.claims["pool-1"]
    lagging, told = Mock(wraps=lookups), Mock(wraps=claims)
    lagging.claim = lambda _: stale
    told.answered = lambda _: answer

    found = await KnownClaims(lagging, told).leaving(REF)

    assert found is answer
    assert told.read.call_count == 0


@pytest.mark.parametrize("other", ["another claim of that name", "a claim that stays"])
async def test_an_answer_that_shows_no_deletion_of_it_saves_no_look_at_the_server(life: Life, other: str) -> None:
    standing(life)
    live = life.world.claims["pool-1"]
    claims = Mock(wraps=FakeClaims(life.world))
    odd = replace(live, uid="another", deleting_since=1.0) if other == "another claim of that name" else live
    claims.answered = lambda _: odd

    with pytest.raises(Refused):
        await KnownClaims(FakeLookups(life.world), claims).leaving(REF)

    assert claims.read.call_count == 1
