"""await_orders: what must be put in hand is found within a second, and ordered once."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from dovetail.activities.orders.await_orders import AwaitOrders, _Handed
from dovetail.activities.orders.finders import Finder
from dovetail.activities.orders.lost_nodes import LostNodeFinder
from dovetail.activities.orders.repairs import RepairFinder
from dovetail.activities.orders.replicas import ReplicaFinder
from dovetail.activities.orders.vanished_instances import FIRST_LISTS, LostInstanceFinder
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.messages.orders import DeleteClaim, Order, OrdersRequest, StartOwner, TakeOffMark, TerminateOrphan
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import Write
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.pools import Catalogue, InstanceType, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Instance, NodeClassState
from dovetail.termination.leaving import LEAVING_TAINT
from tests.activities.test_departing import an_instance
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_joined_node, a_new_pool, a_web_pod, is_now
from worlds.disruption import EC2_CLASS, a_claim
from worlds.fakes import FakeCloud, FakeNotices, World

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")


class FakeView:
    """Waiting for a change moves the clock by a second, as if nothing had happened."""

    def __init__(self, world: World, pools: dict[str, NodePool]) -> None:
        self.world, self.pools = world, pools

    def stale(self) -> dict[str, str]:
        return {}

    def silent_for(self, kind: str) -> float:
        return 0.0

    def snapshot(self, reads: object = None) -> Snapshot:
        return Snapshot(
            now=self.world.clock,
            claims=dict(self.world.claims),
            nodes=dict(self.world.nodes),
            pods=dict(self.world.pods),
            pools=self.pools,
        )

    def revision(self) -> int:
        return self.world.versions

    def revision_of(self, kinds: Kinds) -> int:
        return self.world.versions

    async def changed(self, after: int) -> int:
        await self.world.pause(1.0)
        return after

    async def catch_up(self, writes: Sequence[Write]) -> None:
        return None

    def unreadable(self) -> tuple[Unreadable, ...]:
        return ()


class FakeClasses:
    """Catalogues, of which only the kinds of NodeClass and the types are asked here."""

    def __init__(self, types: tuple[InstanceType, ...] = ()) -> None:
        self.types = types

    async def catalogue(self, pool: NodePool) -> Catalogue:
        return Catalogue(types=self.types)

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        raise NotImplementedError

    async def drift(self, claim: NodeClaim) -> str:
        raise NotImplementedError

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return ()

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return frozenset({(EC2_CLASS.group, EC2_CLASS.kind)})


@dataclass(slots=True)
class Stage:
    world: World
    cloud: FakeCloud
    workflows: dict[str, str] = field(default_factory=dict)  # id -> type that runs
    pools: dict[str, NodePool] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)  # the ids that Temporal was asked about

    def ordering(self) -> AwaitOrders:
        collecting = LostInstanceFinder(self.cloud, FakeNotices(self.world), self.world.now, self.world.now)
        return AwaitOrders(
            "c",
            Snapshots(FakeView(self.world, self.pools), FakeClasses()),
            [collecting],
            self.world.now,
            self.world.now,
        )

    async def orders(self, ordering: AwaitOrders | None = None) -> tuple[Order, ...]:
        found = await asyncio.wait_for((ordering or self.ordering()).await_orders(None), timeout=60)
        return found.orders


def a_stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Whose waits take no time but the world's."""
    world = World()
    stage = Stage(world, FakeCloud(world))

    async def running(client: object, identity: str) -> str:
        stage.asked.append(identity)
        return stage.workflows.get(identity, "")

    monkeypatch.setattr("dovetail.activities.shared.waits.cluster_changes.SHORTEST_SECONDS", 0.0)
    monkeypatch.setattr("dovetail.activities.orders.await_orders.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("dovetail.activities.orders.await_orders.RETURN_SECONDS", 180.0)
    monkeypatch.setattr("dovetail.activities.orders.await_orders.running_type", running)
    monkeypatch.setattr("dovetail.activities.orders.await_orders.activity.client", lambda: None)
    return stage


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return a_stage(monkeypatch)


async def test_a_new_claim_without_a_workflow_is_ordered_after_a_second(stage: Stage) -> None:
    """Its creator starts its workflow in the next moment; the sweep must not race it."""
    stage.world.put(a_claim())

    assert await stage.orders() == (StartOwner(claim=REF, workflow_type="LaunchNode"),)
    assert 1001.0 <= stage.world.clock <= 1002.0


async def test_a_deleted_claim_without_a_workflow_is_ordered_at_once(stage: Stage) -> None:
    stage.world.put(a_joined_claim(deleting_since=1000.0))

    assert await stage.orders() == (StartOwner(claim=REF, workflow_type="TerminateNode", node="node-1"),)
    assert stage.world.clock == 1000.0


async def test_a_claim_with_its_workflow_is_not_ordered(stage: Stage) -> None:
    stage.world.put(a_claim())
    stage.workflows["c/claim/pool-1"] = "LaunchNode"

    assert await stage.orders() == ()


async def test_a_workflow_that_is_lost_is_missed_within_a_minute(stage: Stage) -> None:
    """A lost Temporal database; a workflow that was terminated by hand."""
    stage.world.put(a_claim())
    stage.workflows["c/claim/pool-1"] = "LaunchNode"
    stage.world.at(1005.0, stage.workflows.clear)

    assert await stage.orders() == (StartOwner(claim=REF, workflow_type="LaunchNode"),)
    assert stage.world.clock <= 1066.0


async def test_a_launch_under_a_deleted_claim_is_left_to_become_its_termination(stage: Stage) -> None:
    """It learns of the deletion from its wait; where it ended instead, the next look finds nothing there."""
    stage.world.put(a_claim(deleting_since=1000.0))
    stage.workflows["c/claim/pool-1"] = "LaunchNode"
    stage.world.at(1010.0, stage.workflows.clear)

    assert await stage.orders() == (StartOwner(claim=REF, workflow_type="TerminateNode"),)
    assert 1010.0 <= stage.world.clock <= 1012.0


async def test_a_claim_that_has_expired_is_ordered(stage: Stage) -> None:
    """LIF-60, DIS-184: what counts the deletion is told why."""
    stage.world.put(a_joined_claim(created=900.0, expire_after=150.0), a_joined_node())

    [order] = await stage.orders()

    assert isinstance(order, DeleteClaim)
    assert (order.reason, stage.world.clock) == ("expired", 1050.0)


async def test_an_empty_node_that_is_never_initialised_is_ordered_to_go(stage: Stage) -> None:
    """LIF-83: its launch, which waits for it, runs."""
    waits = is_now(names.INITIALIZED_CONDITION, "Unknown", reason="ResourceNotRegistered", message="no gpu")
    done = (is_now(names.LAUNCHED), is_now(names.REGISTERED_CONDITION), waits)
    stage.world.put(a_joined_claim(conditions=done, annotations={names.PLANNED_PODS: "gone"}), a_joined_node())
    stage.workflows["c/claim/pool-1"] = "LaunchNode"
    ordering = stage.ordering()

    assert await stage.orders(ordering) == ()
    stage.world.clock = 1000.0 + 900.0
    [order] = await stage.orders(ordering)

    assert isinstance(order, DeleteClaim)
    assert (order.reason, order.message) == ("never_initialized", "no gpu")


async def test_a_mark_whose_owner_does_not_run_is_taken_off(stage: Stage) -> None:
    stage.world.put(a_joined_claim(annotations={names.OWNER: "c/disrupt/1"}), a_joined_node())

    assert await stage.orders() == (TakeOffMark(claim=REF, owner="c/disrupt/1"),)


async def test_a_mark_whose_owner_runs_stays(stage: Stage) -> None:
    stage.world.put(a_joined_claim(annotations={names.OWNER: "c/disrupt/1"}), a_joined_node())
    stage.workflows["c/disrupt/1"] = "DisruptNodes"

    assert await stage.orders() == ()


async def test_a_mark_without_an_owner_is_taken_off(stage: Stage) -> None:
    """Left by Karpenter."""
    stage.world.put(a_joined_claim(), a_joined_node(taints=(LEAVING_TAINT,)))

    assert await stage.orders() == (TakeOffMark(claim=REF, owner=""),)


async def test_an_instance_without_a_claim_is_ordered_at_the_second_list(stage: Stage) -> None:
    """GCR-6."""
    stage.pools = {"pool": a_new_pool()}
    others = [f"aws:///zone/i-{number}" for number in (2, 3)]
    stage.world.put(*[a_joined_claim(one, uid=one, provider_id=one, node_name=one) for one in others])
    stage.world.instances = {one: an_instance(one, one) for one in others} | {"aws:///zone/i-1": an_instance()}

    assert await stage.orders() == (TerminateOrphan(provider_id="aws:///zone/i-1", claim_uid="uid-pool-1"),)
    assert stage.world.clock <= 1011.0


@pytest.mark.parametrize("claimed", [0, 1, 3])
async def test_half_of_all_instances_are_terminated_only_after_every_list_of_a_minute(
    stage: Stage, claimed: int
) -> None:
    """In a cluster of up to three nodes an API server that forgot its claims for a moment cost every node."""
    stage.pools = {"pool": a_new_pool()}
    lost = [f"aws:///zone/lost-{number}" for number in range(max(claimed, 1))]
    kept = [f"aws:///zone/kept-{number}" for number in range(claimed)]
    stage.world.put(*[a_joined_claim(one, uid=one, provider_id=one, node_name=one) for one in kept])
    stage.world.instances = {one: an_instance(one, f"uid-{one}") for one in (*lost, *kept)}

    assert {order.provider_id for order in await stage.orders() if isinstance(order, TerminateOrphan)} == set(lost)
    assert 1060.0 <= stage.world.clock <= 1071.0


async def test_an_api_server_that_forgot_its_claims_for_a_moment_costs_no_instance(stage: Stage) -> None:
    stage.pools = {"pool": a_new_pool()}
    stage.world.instances = {"aws:///zone/i-1": an_instance()}
    stage.world.at(1055.0, lambda: stage.world.put(a_joined_claim(), a_joined_node()))

    assert await stage.orders() == ()


async def test_nothing_is_terminated_in_a_cluster_without_pools_and_claims(stage: Stage) -> None:
    """Another cluster's API server, or an empty one."""
    stage.world.instances = {"aws:///zone/i-1": an_instance()}

    assert await stage.orders() == ()


async def test_many_claims_that_lose_their_instance_at_once_are_deleted_after_a_minute_and_it_is_said(
    stage: Stage,
) -> None:
    """The cloud's list may be empty for a moment; it may be the end of a zone."""
    stage.pools = {"pool": a_new_pool()}
    silent = (Condition(type=names.READY, status="Unknown"),)
    for one in ("a", "b"):
        claim = a_joined_claim(one, uid=one, provider_id=f"aws:///zone/{one}", node_name=one)
        stage.world.put(claim, a_joined_node(one, provider_id=f"aws:///zone/{one}", conditions=silent))

    orders = await stage.orders()

    assert {order.claim.name for order in orders if isinstance(order, DeleteClaim)} == {"a", "b"}
    assert 1060.0 <= stage.world.clock <= 1071.0
    assert {notice.reason for notice in stage.world.notices} == {"ManyInstancesGone"}


async def test_many_orphans_stop_the_collection(stage: Stage) -> None:
    """After a restored backup, say: nothing is terminated then."""
    ids = [f"aws:///zone/i-{number}" for number in range(4)]
    stage.world.instances = {one: an_instance(one, f"uid-{one}") for one in ids}

    assert await stage.orders() == ()


async def test_a_claim_whose_instance_vanished_is_deleted_once_its_node_is_silent(stage: Stage) -> None:
    """GCR-2, GCR-3."""
    stage.world.put(a_joined_claim(), a_joined_node())
    silent = a_joined_node(conditions=(Condition(type=names.READY, status="Unknown"),))
    stage.world.at(1040.0, lambda: stage.world.put(silent))

    expected = DeleteClaim(claim=REF, reason="garbage_collected", message="its instance is gone")
    assert await stage.orders() == (expected,)
    assert 1040.0 <= stage.world.clock <= 1062.0


async def test_more_orders_than_fit_come_with_the_next_look(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.activities.orders.await_orders.ORDERS_AT_ONCE", 2)
    stage.world.put(*[a_claim(f"c{number}", deleting_since=1000.0) for number in range(3)])
    ordering = stage.ordering()

    first = await asyncio.wait_for(ordering.await_orders(None), timeout=60)
    started = [order.claim.name for order in first.orders if isinstance(order, StartOwner)]
    stage.workflows.update({f"c/claim/{name}": "TerminateNode" for name in started})
    second = await asyncio.wait_for(ordering.await_orders(None), timeout=60)

    assert (len(first.orders), first.more, len(second.orders), second.more) == (2, True, 1, False)


async def test_orders_that_cannot_be_carried_out_hold_up_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was ordered last comes last: two that fail for ever leave room for the third."""
    monkeypatch.setattr("dovetail.activities.orders.await_orders.ORDERS_AT_ONCE", 2)
    stage.world.put(*[a_claim(f"c{number}", deleting_since=1000.0) for number in range(3)])
    ordering = stage.ordering()

    looks = [[o.claim.name for o in await stage.orders(ordering) if isinstance(o, StartOwner)] for _ in range(3)]

    assert looks == [["c0", "c1"], ["c2"], ["c0", "c1"]]
    assert stage.world.clock >= 1020.0


async def test_what_was_handed_out_is_asked_about_when_it_may_be_handed_out_again(stage: Stage) -> None:
    """Its owner is being started; and whatever the answer, the order is not repeated before."""
    stage.world.put(a_claim(deleting_since=1000.0))
    ordering = stage.ordering()

    await stage.orders(ordering)
    stage.workflows["c/claim/pool-1"] = "TerminateNode"
    stage.world.at(1005.0, lambda: stage.world.put(a_claim("another", uid="another", deleting_since=1005.0)))
    await stage.orders(ordering)

    assert stage.asked == ["c/claim/pool-1", "c/claim/another"]


async def test_an_order_that_is_never_carried_out_is_repeated_less_and_less_often(stage: Stage) -> None:
    stage.world.put(a_claim(deleting_since=1000.0))
    ordering, at = stage.ordering(), list[float]()
    for _ in range(6):
        await stage.orders(ordering)
        at.append(stage.world.clock)

    assert [later - earlier for earlier, later in pairwise(at)] == [20.0, 20.0, 20.0, 40.0, 80.0]


async def test_a_stopped_collection_is_reported_on_every_pool(stage: Stage) -> None:
    """After a restored backup, say; a log line alone would not be read."""
    ids = [f"aws:///zone/i-{number}" for number in range(4)]
    stage.world.instances = {one: an_instance(one, f"uid-{one}") for one in ids}
    stage.pools = {"pool": a_new_pool()}

    await stage.orders()

    published = {(n.kind, n.name, n.type, n.reason) for n in stage.world.notices}
    assert published == {("NodePool", "pool", "Warning", "InstanceCollectionStopped")}


async def test_the_cloud_is_listed_twice_a_minute_and_more_often_at_first(stage: Stage) -> None:
    """AWS-109."""
    lists: list[float] = []
    found = stage.cloud.list_instances

    async def listed() -> tuple[Instance, ...]:
        lists.append(stage.world.clock)
        return await found()

    stage.cloud.list_instances = listed  # type: ignore[method-assign]
    ordering = stage.ordering()
    for _ in range(2):
        await stage.orders(ordering)

    gaps = [later - earlier for earlier, later in pairwise(lists)]
    assert gaps[:3] == [10.0, 10.0, 10.0]
    assert gaps[FIRST_LISTS - 1 :] == [30.0] * len(gaps[FIRST_LISTS - 1 :])


class SlowCloud(FakeCloud):
    """A cloud whose list does not come until it is let go, as where a zone fails."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.comes = asyncio.Event()
        self.asked = 0

    async def list_instances(self) -> tuple[Instance, ...]:
        self.asked += 1
        await self.comes.wait()
        return await super().list_instances()


class SilentIsSick(FakeClasses):
    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return (RepairPolicy(condition="Ready", status="Unknown", toleration=600.0),)


def ordering_of(stage: Stage, cloud: FakeCloud) -> AwaitOrders:
    """With the finders that a worker has."""
    classes, notices = SilentIsSick(), FakeNotices(stage.world)
    finders: list[Finder] = [
        LostInstanceFinder(cloud, notices, stage.world.now, stage.world.now),
        LostNodeFinder(stage.world.now, stage.world.now),
        RepairFinder(classes, notices, stage.world.now, repairs=True),
        ReplicaFinder(stage.world.now, classes, names.WELL_KNOWN_LABELS),
    ]
    return AwaitOrders(
        "c", Snapshots(FakeView(stage.world, stage.pools), classes), finders, stage.world.now, stage.world.now
    )


async def test_a_claim_whose_node_is_gone_is_deleted_once_no_kubelet_has_made_it_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRM-4: a person deleted it and took its finalizer off; its instance runs. Each time that the Node comes back, the
    five minutes begin anew."""
    monkeypatch.setattr("dovetail.activities.orders.await_orders.RETURN_SECONDS", 3600.0)
    world = stage.world
    world.put(a_joined_claim(), a_joined_node())
    world.instances = {"aws:///zone/i-1": an_instance()}
    world.at(1100.0, world.nodes.clear)
    world.at(1390.0, lambda: world.put(a_joined_node()))
    world.at(1450.0, world.nodes.clear)

    [order] = await stage.orders(ordering_of(stage, stage.cloud))

    assert order == DeleteClaim(claim=REF, reason="node_deleted", message="its Node node-1 is gone")
    assert 1750.0 <= world.clock <= 1752.0


async def test_what_a_worker_saw_long_ago_is_no_proof_that_a_node_has_been_gone_since(stage: Stage) -> None:
    """TRM-4: meanwhile another worker has looked, and the Node may have come back."""
    world, finder = stage.world, LostNodeFinder(stage.world.now, stage.world.now)
    view = FakeView(world, {})
    world.put(a_joined_claim())
    world.clock = 2000.0

    assert (await finder.look(view.snapshot())).again == 2300.0
    world.clock = 3000.0
    assert not (await finder.look(view.snapshot())).due


async def test_a_cloud_that_hangs_holds_up_no_order(stage: Stage) -> None:
    """A zone that fails is when EC2 hangs and when ten warnings come at once, whose nodes have two minutes: their
    terminations waited for the list, three times a minute of it."""
    cloud = SlowCloud(stage.world)
    sick = (Condition(type=names.READY, status="Unknown", changed=300.0),)
    stage.world.put(
        a_joined_claim("warned", uid="warned", node_name="", deleting_since=1000.0),
        a_joined_claim("old", uid="old", node_name="", created=900.0, expire_after=100.0),
        a_joined_claim("sick", uid="sick", provider_id="i-sick", node_name="sick"),
        a_joined_node("sick", provider_id="i-sick", conditions=sick),
    )

    found = await stage.orders(ordering_of(stage, cloud))
    cloud.comes.set()  # so that the list is not left to the collector of garbage

    assert cloud.asked == 1
    assert {(type(order).__name__, getattr(order, "reason", "")) for order in found} == {
        ("StartOwner", ""),
        ("DeleteClaim", "expired"),
        ("DeleteClaim", "unhealthy"),
    }
    assert stage.world.clock == 1000.0


async def test_a_list_that_comes_late_is_judged_when_it_has_come(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the cluster as it was when the list began: what was launched since is in neither."""
    monkeypatch.setattr("dovetail.activities.orders.vanished_instances.PATIENCE_SECONDS", 0.01)
    cloud = SlowCloud(stage.world)
    silent = (Condition(type=names.READY, status="Unknown", changed=1000.0),)
    stage.world.put(a_joined_claim(), a_joined_node(conditions=silent))
    since = a_joined_claim("since", uid="since", provider_id="i-since", node_name="since")
    stage.world.at(1030.0, lambda: stage.world.put(since))
    stage.world.at(1040.0, cloud.comes.set)

    found = await stage.orders(ordering_of(stage, cloud))

    assert found == (DeleteClaim(claim=REF, reason="garbage_collected", message="its instance is gone"),)
    assert cloud.asked == 1, "no second list is asked for while the first is under way"
    assert 1040.0 <= stage.world.clock <= 1042.0


async def test_a_deletion_says_how_many_pods_it_disturbs(stage: Stage) -> None:
    """LIF-63: DaemonSet pods find no other place."""
    stage.world.put(
        a_joined_claim(created=900.0, expire_after=100.0),
        a_joined_node(),
        a_web_pod("one", node_name="node-1"),
        a_web_pod("agent", node_name="node-1", owners=(DAEMON,)),
    )

    assert [order.pods for order in await stage.orders() if isinstance(order, DeleteClaim)] == [1]


async def test_the_next_look_has_seen_what_the_last_orders_wrote(stage: Stage) -> None:
    seen: list[Write] = []
    ordering = stage.ordering()

    async def catch_up(writes: Sequence[Write]) -> None:
        seen.extend(writes)

    ordering.view.catch_up = catch_up  # type: ignore[method-assign]
    write = Write(kind="NodeClaim", name="c", uid="u", version=7)

    await ordering.await_orders(OrdersRequest(must_see=(write,)))

    assert seen == [write]


def test_an_order_that_is_found_again_and_again_is_repeated_less_and_less_often() -> None:
    """What fails then is for a person to mend; each repetition costs six events."""
    repeats = [_Handed(0.0, times).again for times in range(1, 12)]
    assert repeats == [20, 20, 20, 40, 80, 160, 320, 640, 900, 900, 900]


async def test_an_order_is_handed_out_again_soon_after_the_clock_was_set_right(stage: Stage) -> None:
    """It was two hours ahead; what is remembered by the time of day would hold orders back for as long."""
    world, ahead = stage.world, [7200.0]
    stage.world.put(a_joined_claim(deleting_since=900.0))
    snapshots = Snapshots(FakeView(world, {}), FakeClasses())
    ordering = AwaitOrders("c", snapshots, [], lambda: world.clock + ahead[0], world.now)
    first = await stage.orders(ordering)
    ahead[0], began = 0.0, world.clock

    assert await stage.orders(ordering) == first != ()
    assert 20.0 <= world.clock - began < 60.0
