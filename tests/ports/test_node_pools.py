"""The contract of NodePools."""

import pytest

from dovetail.model.nodes import Condition
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import MetadataChange, PoolStatus
from tests.ports.objects import NODE_CLASS, a_least_pool
from tests.ports.worlds.contract import World, eventually, unique


class TestNodePools:
    async def test_a_pool_is_read_as_it_was_written(self, world: World) -> None:
        name = unique("pool")
        await world.apply(a_least_pool(name, expireAfter="Never"))

        pool = await world.pools.read(name)

        assert pool is not None
        assert (pool.template.node_class, pool.template.expire_after) == (NODE_CLASS, None)
        assert pool == await eventually(lambda: world.view.snapshot().pools.get(name))

    async def test_a_pool_that_is_not_there_is_none(self, world: World) -> None:
        assert await world.pools.read(unique("absent")) is None

    async def test_the_hash_is_kept_in_an_annotation(self, world: World) -> None:
        name = unique("pool")
        await world.apply(a_least_pool(name))
        pool = await world.pools.read(name)
        assert pool is not None

        changed = await world.pools.patch(pool, MetadataChange(annotations={"karpenter.sh/nodepool-hash": pool.hash}))

        assert changed is not None and changed.annotations["karpenter.sh/nodepool-hash"] == pool.hash
        assert (changed.hash, changed.generation) == (pool.hash, pool.generation)

    async def test_status_fields_that_are_not_given_stay_and_a_resource_no_longer_used_goes(self, world: World) -> None:
        name = unique("pool")
        await world.apply(a_least_pool(name))
        pool = await world.pools.read(name)
        assert pool is not None
        ready = Condition(
            type="NodeClassReady", status="True", reason="NodeClassReady", changed=1_700_000_000.0, generation=1
        )

        first = await world.pools.patch_status(
            pool, PoolStatus(usage={"cpu": 3 * 10**9, "gpu": 1}, node_count=2, conditions=(ready,))
        )
        second = await world.pools.patch_status(first or pool, PoolStatus(usage={"cpu": 0}, class_generation=4))

        body = await world.get("NodePool", name)
        assert second is not None and body is not None
        assert (second.usage, second.conditions) == ({"cpu": 0}, (ready,))
        assert body["status"]["nodes"] == 2 and body["status"]["nodeClassObservedGeneration"] == 4

    async def test_a_change_decided_on_an_old_version_is_a_conflict(self, world: World) -> None:
        name = unique("pool")
        await world.apply(a_least_pool(name))
        pool = await world.pools.read(name)
        assert pool is not None
        await world.pools.patch(pool, MetadataChange(annotations={"a": "1"}))

        with pytest.raises(Conflict, match=name):
            await world.pools.patch_status(pool, PoolStatus(node_count=1))

    async def test_a_pool_that_is_gone_is_none(self, world: World) -> None:
        name = unique("pool")
        await world.apply(a_least_pool(name))
        pool = await world.pools.read(name)
        assert pool is not None
        await world.delete("NodePool", name)

        assert await world.pools.patch(pool, MetadataChange(annotations={"a": "1"})) is None
