"""Node repair and static pools as the look for orders finds them, behind their gates (GCR-10 to GCR-16, NPL-40 to
NPL-44)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.orders.carry_out_orders import CarryOutOrders, OrderPorts
from dovetail.activities.orders.finders import Again
from dovetail.activities.orders.repairs import RepairFinder
from dovetail.activities.orders.replicas import ReplicaFinder
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.lifecycle.node_checks import class_label
from dovetail.messages.orders import DeleteClaim, FillPool, Order
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, RepairPolicy
from dovetail.model.pods import Expression, Pod
from dovetail.model.pools import InstanceType, NodePool
from dovetail.model.scheduling.taints import Taint
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Failure, Unreachable
from dovetail.ports.objects import MetadataChange, PoolStatus
from tests.activities.test_departing import an_instance
from tests.activities.test_ordering import FakeClasses
from tests.disruption.test_full_reservations import ID, offered
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_joined_node, a_web_pod, is_now
from tests.lifecycle.test_gated import static
from worlds.fakes import (
    FakeClaims,
    FakeCloud,
    FakeNotices,
    World,
    create_ties,
    mark_ports,
)

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")
UNHEALTHY = DeleteClaim(claim=REF, reason="unhealthy", at_once=True, condition="Ready")
NOW = "1970-01-01T00:16:40Z"  # the world's first moment


class Policies(FakeClasses):
    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return (RepairPolicy(condition="Ready", status="Unknown", toleration=600.0),)


class OnePool:
    """The port of pools with one pool in it."""

    def __init__(self, pool: NodePool) -> None:
        self.pool = pool

    async def read(self, name: str) -> NodePool | None:
        return self.pool

    async def patch(self, pool: NodePool, change: MetadataChange) -> NodePool | None:
        raise NotImplementedError

    async def patch_status(self, pool: NodePool, status: PoolStatus) -> NodePool | None:
        raise NotImplementedError


def order_ports(world: World, *pools: NodePool, repairs: bool = True, **others: Any) -> OrderPorts:
    """With the gates of repairs and of static pools open."""
    finder = RepairFinder(Policies(), FakeNotices(world), world.now, repairs=repairs)
    again: dict[str, Again] = {"unhealthy": finder, "static_scale_down": replica_finder(world)}
    made = OrderPorts(claims=FakeClaims(world), cloud=FakeCloud(world), fleet=lambda: seen(world, *pools), again=again)
    return replace(made, **others)


def replica_finder(world: World, *types: InstanceType, label: str = "") -> ReplicaFinder:
    """In a cloud with these instance types, whose own label that is."""
    return ReplicaFinder(world.now, Policies(types), names.WELL_KNOWN_LABELS | {label})


async def carry_out(world: World, order: DeleteClaim, *pools: NodePool, **others: Any) -> str:
    ports = order_ports(world, *pools, **others)
    marking = MarkAndUnmarkNodes(mark_ports(world, claims=ports.claims), world.now)
    caretaking = CarryOutOrders("c", ports, marking, world.now)
    return (await ActivityEnvironment().run(caretaking.delete_claim_for, order)).message


def silent(changed: float) -> Condition:
    return Condition(type=names.READY, status="Unknown", changed=changed)


def seen(world: World, *pools: NodePool) -> Snapshot:
    kinds = frozenset({(p.template.node_class.group, p.template.node_class.kind) for p in pools})
    return Snapshot(
        now=world.clock,
        claims=dict(world.claims),
        nodes=dict(world.nodes),
        pods=dict(world.pods),
        pools={pool.name: pool for pool in pools},
        supported_node_classes=kinds,
    )


async def test_an_unhealthy_node_is_ordered_when_its_toleration_ends() -> None:
    """GCR-13, GCR-16."""
    world = World()
    world.put(a_joined_claim(), a_joined_node(conditions=(silent(500.0),)))
    finder = RepairFinder(Policies(), FakeNotices(world), world.now, repairs=True)

    early = await finder.look(seen(world))
    world.clock = 1100.0
    orders = (await finder.look(seen(world))).due

    assert (early.due, early.again) == ([], 1100.0)
    assert [(o.claim.name, o.reason, o.condition) for o in orders if isinstance(o, DeleteClaim)] == [
        ("pool-1", "unhealthy", "Ready")
    ]


async def test_nodes_that_are_held_back_are_reported() -> None:
    """GCR-14, EVT-12."""
    world = World()
    for number in range(2):
        provider_id = f"i-{number}"
        world.put(
            a_joined_claim(f"c{number}", provider_id=provider_id, labels={}),
            a_joined_node(f"n{number}", provider_id=provider_id, conditions=(silent(0.0),)),
        )

    look = await RepairFinder(Policies(), FakeNotices(world), world.now, repairs=True).look(seen(world))

    assert (look.due, look.again) == ([], 1300.0)
    assert [(n.name, n.reason, n.window) for n in world.notices] == [
        ("n0", "NodeRepairBlocked", 900.0),
        ("n1", "NodeRepairBlocked", 900.0),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, NOW), ("1970-01-01T01:00:00Z", NOW), ("1970-01-01T00:10:00Z", "1970-01-01T00:10:00Z"), ("nonsense", NOW)],
)
async def test_a_repair_is_due_now_and_a_deadline_that_has_passed_stays(before: str | None, after: str) -> None:
    """GCR-15, BEH-42."""
    world = World()
    annotations = {} if before is None else {names.TERMINATION_DEADLINE: before}
    world.put(a_joined_claim(annotations=annotations), a_joined_node(conditions=(silent(0.0),)))

    await carry_out(world, UNHEALTHY)

    claim = world.claims["pool-1"]
    assert (claim.annotations[names.TERMINATION_DEADLINE], claim.deleting_since) == (after, 1000.0)


class OnceUnreachable(FakeClaims):
    """Fails the first delete."""

    async def delete(self, name: str, uid: str) -> int:
        if "failed" not in self.world.ledger:
            self.world.ledger.append("failed")
            raise Unreachable(f"NodeClaim/{name}", "503")
        return await super().delete(name, uid)


async def test_a_repair_whose_delete_fails_leaves_no_deadline_to_a_later_departure() -> None:
    """GCR-15: else the pods of a node that has recovered would be forced by its next disruption."""
    world = World()
    world.put(a_joined_claim(), a_joined_node(conditions=(silent(0.0),)))

    with pytest.raises(Unreachable):
        await carry_out(world, UNHEALTHY, claims=OnceUnreachable(world))
    left = dict(world.claims["pool-1"].annotations)
    await carry_out(world, UNHEALTHY)

    assert names.TERMINATION_DEADLINE not in left
    claim = world.claims["pool-1"]
    assert (claim.annotations[names.TERMINATION_DEADLINE], claim.deleting_since) == (NOW, 1000.0)


@pytest.mark.parametrize(("made", "said"), [(False, None), (True, "NodeRepaired")])
async def test_a_delete_that_fails_leaves_no_reason_unless_it_was_made(made: bool, said: str | None) -> None:
    """A person who deletes the claim later would be named a repair, and its hooks be cut short by a warning."""
    world = World()
    world.put(a_joined_claim(), a_joined_node(conditions=(silent(0.0),)))

    class Failing(FakeClaims):
        async def delete(self, name: str, uid: str) -> int:
            if made:
                await super().delete(name, uid)
            raise Unreachable(f"NodeClaim/{name}", "503")

    with pytest.raises(Unreachable):
        await carry_out(world, UNHEALTHY, claims=Failing(world))

    assert world.claims["pool-1"].annotations.get(names.ENDED_BECAUSE) == said


def ready(status: str, changed: float) -> tuple[Condition, ...]:
    return (Condition(type=names.READY, status=status, changed=changed),)


@pytest.mark.parametrize(
    ("node", "others", "repairs"),
    [
        ({"conditions": ready("True", 0.0)}, 0, True),
        ({"conditions": ready("False", 0.0)}, 0, True),
        ({"conditions": ready("Unknown", 900.0)}, 0, True),
        ({"conditions": ready("Unknown", 0.0), "annotations": {names.DO_NOT_REPAIR: "true"}}, 0, True),
        ({"conditions": ready("Unknown", 0.0)}, 1, True),
        ({"conditions": ready("Unknown", 0.0)}, 0, False),
    ],
)
async def test_a_repair_is_judged_anew_whatever_is_ordered(node: dict[str, Any], others: int, repairs: bool) -> None:
    """GCR-13, GCR-14: well, of no policy, tolerated yet, kept from repair, one of too many, behind a closed gate."""
    world = World()
    world.put(a_joined_claim(), a_joined_node(**node))
    for number in range(others):
        world.put(a_joined_node(f"n{number}", provider_id=f"i-{number}", conditions=node["conditions"]))

    assert await carry_out(world, UNHEALTHY, repairs=repairs) == "its Node is not to be replaced"

    claim = world.claims["pool-1"]
    assert (claim.deleting_since, names.TERMINATION_DEADLINE in claim.annotations) == (None, False)


@pytest.mark.parametrize("deleting", [None, 900.0])
async def test_only_a_repair_does_not_wait_for_pods_whatever_is_ordered(deleting: float | None) -> None:
    """GCR-15: whose Node a person deletes drains as any other."""
    world = World()
    world.put(a_joined_claim(deleting_since=deleting), a_joined_node(deleting_since=950.0))

    await carry_out(world, DeleteClaim(claim=REF, reason="node_deleted", at_once=True))

    claim = world.claims["pool-1"]
    assert claim.deleting_since is not None and names.TERMINATION_DEADLINE not in claim.annotations


@pytest.mark.parametrize(("replicas", "goes"), [(2, False), (1, False), (0, True)])
async def test_a_static_pool_loses_only_what_it_has_too_many_of_by_now(replicas: int, goes: bool) -> None:
    """NPL-44: the order may be of before somebody asked for more."""
    world = World()
    world.put(a_joined_claim(), a_joined_node())

    await carry_out(world, DeleteClaim(claim=REF, reason="static_scale_down"), static(replicas))

    assert (world.claims["pool-1"].deleting_since is not None) == goes


async def test_a_claim_that_is_leaving_gently_gets_the_deadline_of_its_repair() -> None:
    """GCR-15: the annotation is written whether or not the claim is deleted already."""
    world = World()
    world.put(a_joined_claim(deleting_since=900.0), a_joined_node(conditions=(silent(0.0),)))

    orders = (await RepairFinder(Policies(), FakeNotices(world), world.now, repairs=True).look(seen(world))).due
    for order in orders:
        assert isinstance(order, DeleteClaim)
        await carry_out(world, order)
    again = (await RepairFinder(Policies(), FakeNotices(world), world.now, repairs=True).look(seen(world))).due

    assert world.claims["pool-1"].annotations[names.TERMINATION_DEADLINE] == NOW
    assert again == []
    assert "delete claim pool-1" not in world.ledger


async def test_a_claim_whose_instance_the_cloud_knows_after_all_stays() -> None:
    """GCR-1: a list may lag."""
    world = World()
    world.put(a_joined_claim())
    claim = world.claims["pool-1"]
    world.instances = {claim.provider_id: an_instance(claim.provider_id, claim.uid)}

    said = await carry_out(world, DeleteClaim(claim=REF, reason="garbage_collected"))

    assert said == "its instance is there after all"
    assert world.claims["pool-1"].deleting_since is None


def filled(orders: Sequence[Order]) -> list[int]:
    return [number for order in orders if isinstance(order, FillPool) for number in order.request.indexes]


async def create(world: World, pool: NodePool, orders: Sequence[Order]) -> list[str]:
    step = CreateNodeClaims(FakeClaims(world), OnePool(pool), FakeNotices(world), world.now, create_ties(world))
    for order in orders:
        if isinstance(order, FillPool):
            await ActivityEnvironment().run(step.create_node_claims, order.request)
    return sorted(world.claims)


async def test_a_static_pool_is_filled_under_the_lowest_free_numbers() -> None:
    """NPL-43: straight from the template, no instance type is asked for."""
    world, pool = World(), static(3)

    orders = (await replica_finder(world).look(seen(world, pool))).due
    first = await create(world, pool, orders)
    del world.claims[first[1]]
    orders = (await replica_finder(world).look(seen(world, pool))).due

    assert (len(first), filled(orders)) == (3, [1])
    assert await create(world, pool, orders) == first
    made = world.claims[first[0]]
    assert all(requirement.key != names.INSTANCE_TYPE for requirement in made.requirements)
    assert made.owners[0].name == pool.name


async def test_a_claim_of_a_static_pool_is_the_pools_template() -> None:
    """NPL-43: every part of it, with the pool's name and hash and the class's label beside the labels of its own."""
    zone = Expression(key=names.ZONE, operator="In", values=("a", "b"))
    taint, startup = Taint(key="mine", effect="NoSchedule"), Taint(key="cni", effect="NoExecute")
    template = {
        "labels": {"team": "blue"},
        "annotations": {"note": "kept"},
        "requirements": (zone,),
        "taints": (taint,),
        "startup_taints": (startup,),
        "expire_after": 3600.0,
        "termination_grace": 60.0,
    }
    pool = static(1, template=template, annotations={names.NODE_POOL_HASH: "1", "not": "copied"})
    world = World()

    [name] = await create(world, pool, (await replica_finder(world).look(seen(world, pool))).due)

    made = world.claims[name]
    assert made.labels == {"team": "blue", names.NODE_POOL: pool.name, class_label(made): "default"}
    assert {key: made.annotations.get(key) for key in ("note", names.NODE_POOL_HASH, "not")} == {
        "note": "kept",
        names.NODE_POOL_HASH: "1",
        "not": None,
    }
    assert zone in made.requirements
    assert (made.taints, made.startup_taints) == ((taint,), (startup,))
    assert (made.expire_after, made.termination_grace, made.requests) == (3600.0, 60.0, {})
    assert made.node_class == pool.template.node_class


async def test_looking_at_yesterdays_cluster_creates_nothing_twice() -> None:
    """DUR-21: a second worker, a second try, a cache that lags: the same names."""
    world, pool = World(), static(3)
    stale = seen(world, pool)

    once = await create(world, pool, (await replica_finder(world).look(stale)).due)
    twice = await create(world, pool, (await replica_finder(world).look(stale)).due)

    assert twice == once and len(once) == 3


RESERVED: Final = (Expression(key=names.CAPACITY_TYPE, operator="In", values=("reserved",)),)


@pytest.mark.parametrize(
    ("left", "launching", "leaving", "expected"),
    [(0, 0, 0, []), (0, 0, 1, []), (1, 0, 0, [0]), (3, 0, 0, [0, 1]), (1, 1, 0, []), (2, 1, 0, [1]), (1, 0, 1, [0])],
)
async def test_nothing_is_launched_into_a_full_reservation(
    left: int, launching: int, leaving: int, expected: list[int]
) -> None:
    """NPL-45: whoever uses its instances; the place of a node that leaves is free once its instance is gone."""
    world, pool = World(), static(2)
    pool = replace(pool, template=replace(pool.template, requirements=RESERVED))
    for number in range(leaving):
        world.put(a_joined_claim(f"old{number}", deleting_since=1.0, provider_id=f"i-{number}"))
    early = await create(world, pool, (await replica_finder(world).look(seen(world, pool))).due) if launching else []
    for name in early[launching:]:
        del world.claims[name]
    finder = replica_finder(world, offered(("r", left)), label=ID)

    assert filled((await finder.look(seen(world, pool))).due) == expected


async def test_a_pool_that_may_have_other_capacity_is_filled_whatever_is_reserved() -> None:
    """NPL-45: on demand may be short, which its launch finds out."""
    either = Expression(key=names.CAPACITY_TYPE, operator="In", values=("reserved", "on-demand"))
    pool = static(2)
    pool = replace(pool, template=replace(pool.template, requirements=(either,)))
    finder = replica_finder(World(), offered(("r", 0), on_demand=False), label=ID)

    assert filled((await finder.look(seen(World(), pool))).due) == [0, 1]


async def test_a_limit_of_nodes_caps_a_static_pool() -> None:
    """NPL-42, BEH-96."""
    world, pool = World(), static(5, limits={"nodes": 2})

    assert filled((await replica_finder(world).look(seen(world, pool))).due) == [0, 1]


async def test_a_static_pool_that_shrinks_gives_up_what_is_cheapest_to_move() -> None:
    """NPL-44, BEH-97."""
    world, pool = World(), static(3)
    await create(world, pool, (await replica_finder(world).look(seen(world, pool))).due)
    smaller = replace(pool, replicas=1)

    orders = (await replica_finder(world).look(seen(world, smaller))).due
    for order in orders:
        assert isinstance(order, DeleteClaim) and order.reason == "static_scale_down"
        await carry_out(world, order, smaller)

    left = [c for c in world.claims.values() if c.deleting_since is None]
    assert len(left) == 1 and isinstance(left[0], NodeClaim)


@pytest.mark.parametrize(
    ("reason", "because"),
    [
        ("expired", "Expired"),
        ("unhealthy", "NodeRepaired"),
        ("garbage_collected", "InstanceGone"),
        ("static_scale_down", "ScaledDown"),
    ],
)
async def test_a_claim_that_is_ordered_to_go_says_why(reason: str, because: str) -> None:
    world = World()
    silent_node = replace(a_joined_node(), conditions=(silent(0.0),))
    world.put(a_joined_claim(expire_after=0.0), silent_node)
    claim = world.claims["pool-1"]
    order = DeleteClaim(
        claim=ClaimRef(name=claim.name, uid=claim.uid), reason=reason, message="as was seen", condition=names.READY
    )

    await carry_out(world, order, static(0))

    left = world.claims["pool-1"]
    assert (left.deleting_since is None, left.annotations[names.ENDED_BECAUSE]) == (False, f"{because}: as was seen")


async def test_a_node_that_is_never_initialised_goes_unless_it_is_ready_or_runs_a_pod_by_now() -> None:
    """LIF-83: asked of the API server as the claim is deleted."""
    waits = is_now(names.INITIALIZED_CONDITION, "Unknown", reason="ResourceNotRegistered")
    late = a_joined_claim(conditions=(is_now(names.LAUNCHED), is_now(names.REGISTERED_CONDITION), waits))
    order = DeleteClaim(claim=REF, reason="never_initialized", message="no gpu")

    async def left(claim: NodeClaim, *pods: Pod, now: float = 2000.0) -> str:
        world = World(clock=now)
        world.put(claim, a_joined_node(), *pods)
        await carry_out(world, order)
        after = world.claims["pool-1"]
        return after.annotations[names.ENDED_BECAUSE] if after.deleting_since is not None else "stays"

    assert await left(late) == await left(late, a_web_pod(owners=(DAEMON,))) == "NeverInitialized: no gpu"
    assert await left(late, a_web_pod()) == await left(a_joined_claim()) == await left(late, now=1500.0) == "stays"


async def test_a_claim_whose_node_was_deleted_does_not_claim_to_know_by_whom() -> None:
    world = World()
    world.put(a_joined_claim(), replace(a_joined_node(), deleting_since=world.now()))
    ref = ClaimRef(name="pool-1", uid=world.claims["pool-1"].uid)

    await carry_out(world, DeleteClaim(claim=ref, reason="node_deleted", message="its Node node-1 was deleted"))

    said = world.claims["pool-1"].annotations[names.ENDED_BECAUSE]
    assert said == "NodeDeleted: by hand or by another program"


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (None, ""),  # its finalizer was taken off before the order was carried out
        (a_joined_node(deleting_since=1000.0), ""),
        (a_joined_node(), "no Node of it is being deleted"),  # made anew by its kubelet
        (a_joined_node(provider_id=""), "no Node of it is being deleted"),  # likewise, just now
        (a_joined_node(provider_id="aws:///zone/i-2"), ""),  # another instance's, which has the name now
    ],
)
async def test_a_claim_whose_node_was_deleted_goes_unless_the_node_is_there_again(node: Node | None, says: str) -> None:
    """TRM-4: asked of the API server, by the node's name too."""
    world = World()
    world.put(a_joined_claim(), *([] if node is None else [node]))

    said = await carry_out(world, DeleteClaim(claim=REF, reason="node_deleted"))

    assert (said, world.claims["pool-1"].deleting_since is None) == (says, bool(says))


async def test_a_node_that_cannot_be_read_is_not_gone() -> None:
    """TRM-4: nor while the API server does not answer."""
    world = World(unreadable={"node-1"})
    world.put(a_joined_claim(), a_joined_node(provider_id=""))

    with pytest.raises(Failure):
        await carry_out(world, DeleteClaim(claim=REF, reason="node_deleted"))
