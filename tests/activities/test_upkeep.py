"""What upkeep writes on pools and publishes about claims: one writer for a pool, one notice for a change."""

from dataclasses import replace
from typing import Literal

import pytest

from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.activities.upkeep.consistency import ConsistencyUpkeep
from dovetail.activities.upkeep.keep_up import UpkeepTask
from dovetail.activities.upkeep.notices import NoticeUpkeep
from dovetail.activities.upkeep.pools import PoolUpkeep
from dovetail.lifecycle.pool_health import RESULTS
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim, NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.pools import Catalogue, InstanceType, NodePool, Offering
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.ports.cloud import NodeClassState
from dovetail.ports.failures import Conflict, Unreachable
from dovetail.ports.objects import MetadataChange, PoolStatus
from dovetail.settings.providers import provider_named
from tests.activities.test_ordering import FakeClasses
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, a_quiet_pool, a_web_pod, is_now
from tests.placement.builders import one_of
from worlds.disruption import EC2_CLASS, a_claim
from worlds.fakes import FakeClaims, FakeNotices, World

SUPPORTED = frozenset({(EC2_CLASS.group, EC2_CLASS.kind)})


class Pools:
    """Pools with versions: a write at another version than the last one's is a conflict."""

    def __init__(self, *pools: NodePool) -> None:
        self.pools = {pool.name: pool for pool in pools}
        self.calls: list[str] = []

    async def read(self, name: str) -> NodePool | None:
        return self.pools.get(name)

    def _write(self, what: str, pool: NodePool, changed: NodePool) -> NodePool:
        live = self.pools[pool.name]
        if live.resource_version != pool.resource_version:
            raise Conflict(pool.name, "the object has been modified")
        self.calls.append(what)
        self.pools[pool.name] = replace(changed, resource_version=str(int(live.resource_version) + 1))
        return self.pools[pool.name]

    async def patch(self, pool: NodePool, change: MetadataChange) -> NodePool | None:
        kept = {key: value for key, value in {**pool.annotations, **change.annotations}.items() if value is not None}
        return self._write("metadata", pool, replace(pool, annotations=kept))

    async def patch_status(self, pool: NodePool, status: PoolStatus) -> NodePool | None:
        usage = pool.usage if status.usage is None else status.usage
        conditions = pool.conditions if status.conditions is None else status.conditions
        return self._write("status", pool, replace(pool, usage=usage, conditions=conditions))


class ReadyClass(FakeClasses):
    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        return NodeClassState(found=True, ready="True", generation=1)

    async def drift(self, claim: NodeClaim) -> str:
        return ""


def seen(world: World, *pools: NodePool) -> Snapshot:
    return Snapshot(
        now=world.clock,
        claims=dict(world.claims),
        nodes=dict(world.nodes),
        pools={pool.name: pool for pool in pools},
        supported_node_classes=SUPPORTED,
    )


async def test_a_new_pool_gets_its_status_and_its_hash_without_a_conflict() -> None:
    """NPL-1, NPL-10: two writers of one pool answered each other with conflicts."""
    world, pool = World(), a_new_pool(hash="123")
    pools = Pools(pool)
    task = PoolUpkeep(pools, FakeClaims(world), ReadyClass(), world.now)

    writes = (await task.look(seen(world, pool))).due
    for write in writes:
        await write()

    written = pools.pools["pool"]
    assert pools.calls == ["status", "metadata"]
    assert written.annotations[names.NODE_POOL_HASH] == "123"
    assert RESULTS in written.annotations or written.is_true(names.READY)


async def test_a_migration_of_hashes_that_was_half_done_goes_on() -> None:
    """DIS-178, DUR-22: the claims are stamped before the pool, so that a look after a failure finds them again."""
    world, pool = World(), a_new_pool(hash="123", annotations={names.NODE_POOL_HASH_VERSION: "v0"})
    old = {names.NODE_POOL_HASH: "1", names.NODE_POOL_HASH_VERSION: "v0"}
    world.put(a_joined_claim(annotations=old))
    pools = Pools(pool)
    status_of = pools.patch_status

    async def fail(pool: NodePool, status: PoolStatus) -> NodePool | None:
        raise Unreachable("api", "the worker is killed between claims and pool")

    pools.patch_status = fail  # type: ignore[method-assign]
    with pytest.raises(Unreachable):
        for write in (await PoolUpkeep(pools, FakeClaims(world), ReadyClass(), world.now).look(seen(world, pool))).due:
            await write()
    half_done = (world.claims["pool-1"].annotations, pools.pools["pool"].annotations)
    pools.patch_status = status_of  # type: ignore[method-assign]
    for write in (await PoolUpkeep(pools, FakeClaims(world), ReadyClass(), world.now).look(seen(world, pool))).due:
        await write()

    migrated = {names.NODE_POOL_HASH: "123", names.NODE_POOL_HASH_VERSION: NODE_POOL_HASH_ALGORITHM}
    assert half_done == (migrated, {names.NODE_POOL_HASH_VERSION: "v0"})
    assert migrated.items() <= pools.pools["pool"].annotations.items()


async def test_a_pool_is_left_alone_until_the_cache_shows_our_write() -> None:
    """A second write at the version of the first is a sure conflict."""
    world, pool = World(), a_new_pool(hash="123")
    pools = Pools(pool)
    task = PoolUpkeep(pools, FakeClaims(world), ReadyClass(), world.now)
    for write in (await task.look(seen(world, pool))).due:
        await write()

    stale = await task.look(seen(world, pool))
    fresh = (await task.look(seen(world, pools.pools["pool"]))).due

    assert (stale.due, stale.again, fresh) == ([], world.clock + 0.5, [])


async def test_a_pool_of_a_restored_server_is_kept_up_although_its_version_is_lower_than_our_last_write() -> None:
    """NPL-10: it would stand still until the cluster has caught up with its own past."""
    world, pool = World(), replace(a_new_pool(hash="123"), resource_version="5000")
    pools = Pools(pool)
    task = PoolUpkeep(pools, FakeClaims(world), ReadyClass(), world.now)
    for write in (await task.look(seen(world, pool))).due:
        await write()

    restored = replace(pool, resource_version="1000")
    pools.pools["pool"] = restored
    world.clock += 10.0
    for write in (await task.look(seen(world, restored))).due:
        await write()

    assert pools.pools["pool"].annotations[names.NODE_POOL_HASH] == "123"


async def said(task: NoticeUpkeep, world: World, snapshot: Snapshot) -> list[tuple[str, str, str]]:
    before = len(world.notices)
    for write in (await task.look(snapshot)).due:
        await write()
    return [(notice.kind, notice.name, notice.reason) for notice in world.notices[before:]]


def ready(claim: NodeClaim) -> NodeClaim:
    return replace(claim, conditions=(*claim.conditions, is_now(names.READY)))


async def test_a_claim_that_becomes_ready_is_reported_once() -> None:
    """EVT-13, of the root condition; what stood there at the first look is no news."""
    world = World()
    task = NoticeUpkeep(FakeNotices(world))
    world.put(a_claim())

    first = await said(task, world, seen(world))
    world.put(ready(world.claims["pool-1"]))
    second, third = await said(task, world, seen(world)), await said(task, world, seen(world))

    assert (first, second, third) == ([], [("NodeClaim", "pool-1", "Ready")], [])
    assert "Unknown -> True" in world.notices[-1].message


async def test_a_pool_whose_class_is_missing_or_leaves_is_named_once_for_each() -> None:
    """AWS-113, AWS-168: without its class a pool has no instance types at all."""
    world = World()
    task = NoticeUpkeep(FakeNotices(world))

    def with_class(reason: str, status: Literal["True", "False"] = "False") -> NodePool:
        condition = Condition(type="NodeClassReady", status=status, reason=reason, message="it is so")
        return replace(a_new_pool(), conditions=(condition,))

    states = [
        with_class("NodeClassReady", "True"),
        with_class("SubnetsNotFound"),
        with_class("NodeClassTerminating"),
        with_class("NodeClassTerminating"),
        with_class("NodeClassNotFound"),
        with_class("NodeClassReady", "True"),
    ]
    published = [await said(task, world, seen(world, state)) for state in states]

    told = [("NodePool", "pool", "FailedResolvingNodeClass")]
    assert published == [[], [], told, [], told, []]
    assert (world.notices[0].type, world.notices[0].message) == ("Warning", "Failed resolving NodeClass: it is so")


OTHER = NodeClassRef(group="karpenter.other.example", kind="OtherNodeClass", name="default")


async def test_pools_and_claims_of_another_provider_are_written_by_nobody_here() -> None:
    """PLM-1: not their hashes, not their conditions, and no Event speaks of them."""
    world = World()
    pool = a_new_pool(hash="123", template={"node_class": OTHER})
    claim = a_joined_claim(node_class=OTHER, conditions=(is_now(names.LAUNCHED),))
    world.put(claim, a_joined_node())
    claims, catalogues = FakeClaims(world), ReadyClass()
    notices = NoticeUpkeep(FakeNotices(world))
    tasks: list[UpkeepTask] = [
        PoolUpkeep(Pools(pool), claims, catalogues, world.now),
        ClaimUpkeep(claims, catalogues, world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS),
        ConsistencyUpkeep(claims, FakeNotices(world), world.now),
        notices,
    ]
    due = [(await task.look(seen(world, pool))).due for task in tasks]
    lost = Condition(type="NodeClassReady", status="False", reason="NodeClassNotFound")
    due.append((await notices.look(seen(world, replace(pool, conditions=(lost,))))).due)

    assert [list(each) for each in due] == [[]] * 5


async def test_what_has_lost_our_finalizer_is_reported() -> None:
    """EVT-14, on claims and nodes alike."""
    world = World()
    task = NoticeUpkeep(FakeNotices(world))
    finalizers = (names.TERMINATION_FINALIZER,)
    world.put(a_joined_claim(finalizers=finalizers), a_joined_node(finalizers=finalizers))
    await said(task, world, seen(world))

    published = await said(task, world, Snapshot(now=world.clock, supported_node_classes=SUPPORTED))

    assert published == [("NodeClaim", "pool-1", "Finalized"), ("Node", "node-1", "Finalized")]


async def test_a_node_is_compared_with_what_was_launched_once_its_start_is_over() -> None:
    """LIF-75: others write the claim in its first seconds."""
    world = World()
    initialised = is_now(names.INITIALIZED_CONDITION, changed=world.clock)
    world.put(a_joined_claim(conditions=(initialised,)), a_joined_node())
    task = ConsistencyUpkeep(FakeClaims(world), FakeNotices(world), world.now)

    early = await task.look(seen(world))
    world.clock += 10.0
    late = (await task.look(seen(world))).due

    assert (early.due, early.again, len(late)) == ([], 1010.0, 1)


async def test_pods_that_come_and_pods_that_go_are_stamped_and_those_within_ten_seconds_are_one() -> None:
    """DIS-163, DIS-165: also a pod that vanishes without a deletionTimestamp; not what stood there at the first
    look."""
    world = World()
    task = ClaimUpkeep(
        FakeClaims(world), ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )
    world.put(a_joined_claim(last_pod_event=world.clock - 60.0), a_joined_node(), a_web_pod("one"))
    stamps = []

    async def look(after: float) -> None:
        world.clock += after
        snapshot = replace(seen(world, a_quiet_pool()), pods=dict(world.pods))
        for write in (await task.look(snapshot)).due:
            await write()
        stamps.append(world.claims["pool-1"].last_pod_event)

    await look(0.0)
    world.put(a_web_pod("two"))
    await look(20.0)
    world.kill(a_web_pod("two"))
    await look(1.0)
    world.kill(a_web_pod("one"))
    await look(20.0)

    began = world.clock - 41.0
    assert stamps == [began - 60.0, began + 20.0, began + 20.0, began + 41.0]


async def test_pods_of_a_node_that_is_not_initialised_are_stamped_once_it_is() -> None:
    """DIS-163: LaunchNode still writes to that claim; quiet begins with the initialisation at the earliest anyway."""
    world = World()
    task = ClaimUpkeep(
        FakeClaims(world), ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )
    joined = a_joined_claim()
    starting = replace(joined, conditions=tuple(c for c in joined.conditions if c.type != names.INITIALIZED_CONDITION))
    world.put(starting, a_joined_node())
    stamps = []
    for claim, pods in ((starting, ()), (starting, ("one",)), (joined, ("one",)), (joined, ("one",))):
        world.clock += 20.0
        world.put(
            replace(claim, last_pod_event=world.claims["pool-1"].last_pod_event), *(a_web_pod(name) for name in pods)
        )
        snapshot = replace(seen(world, a_quiet_pool()), pods=dict(world.pods))
        for write in (await task.look(snapshot)).due:
            await write()
        stamps.append(world.claims["pool-1"].last_pod_event)

    assert stamps == [None, None, world.clock - 20.0, world.clock - 20.0]


async def test_a_claim_that_cannot_be_judged_keeps_its_conditions_and_the_others_get_theirs() -> None:
    world, quiet = World(), replace(a_new_pool().disruption, consolidate_after=0.0)
    world.put(a_joined_claim("odd", created=None), a_joined_claim("sound"))
    pool = replace(a_new_pool(), disruption=quiet)
    task = ClaimUpkeep(
        FakeClaims(world), ReadyClass(), world.now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
    )

    look = await task.look(seen(world, pool))
    for write in look.due:
        await write()

    assert world.claims["sound"].is_true(names.CONSOLIDATABLE)
    assert world.claims["odd"].condition(names.DRIFTED) is None


async def test_a_reserved_node_whose_reservation_is_gone_from_the_class_does_not_drift_for_its_type() -> None:
    """DIS-174: it runs on as on-demand; the labels that name its reservation do not matter."""
    world = World()
    of_pool = {names.INSTANCE_TYPE: "m5.large", names.ZONE: "zone-a", names.CAPACITY_TYPE: "reserved"}
    labels = {**a_joined_claim().labels, **of_pool, "example.com/reservation-id": "r-1"}
    world.put(replace(a_joined_claim(), labels=labels), a_joined_node())
    world.clock += 7200.0  # older than an hour
    item = Offering(requirements=(one_of(names.ZONE, "zone-a"), one_of(names.CAPACITY_TYPE, "on-demand")), price=1.0)
    absent = Expression(key="example.com/reservation-id", operator="DoesNotExist", values=())
    item = replace(item, requirements=(*item.requirements, absent))
    m5 = InstanceType(name="m5.large", requirements=(), capacity={}, overhead={}, offerings=(item,))
    snapshot = replace(seen(world, a_new_pool()), catalogues={"pool": Catalogue(types=(m5,))})

    async def drifted(reservation_labels: frozenset[str]) -> str:
        own = replace(world, claims=dict(world.claims))
        known = names.WELL_KNOWN_LABELS | {"example.com/reservation-id"}
        task = ClaimUpkeep(FakeClaims(own), ReadyClass(), own.now, known, reservation_labels)
        for write in (await task.look(snapshot)).due:
            await write()
        condition = own.claims["pool-1"].condition(names.DRIFTED)
        return condition.reason if condition is not None else ""

    assert await drifted(frozenset({"example.com/reservation-id"})) == ""
    assert await drifted(frozenset()) == "InstanceTypeNotFound"


def test_the_worker_tells_upkeep_which_labels_name_a_reservation() -> None:
    assert provider_named("aws").reservation_labels == {
        "karpenter.k8s.aws/capacity-reservation-id",
        "karpenter.k8s.aws/capacity-reservation-type",
        "karpenter.k8s.aws/capacity-reservation-interruptible",
    }
