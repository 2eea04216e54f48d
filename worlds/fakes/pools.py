"""NodePools, and what people pause and declare beside them; each as the world has it now."""

from dataclasses import replace

from dovetail.model import names
from dovetail.model.objects.workloads import Namespace
from dovetail.model.own.policies import TimeRules
from dovetail.model.pools import NodePool
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import MetadataChange, PoolStatus
from worlds.fakes.world import World


class FakePools:
    """NodePools."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def read(self, name: str) -> NodePool | None:
        return self.world.pools.get(name)

    async def patch(self, pool: NodePool, change: MetadataChange) -> NodePool | None:
        live = self.world.pools.get(pool.name)
        if live is None or live.uid != pool.uid:
            return None
        if live.resource_version != pool.resource_version:
            raise Conflict(pool.name, "the object has been modified")
        annotations = {key: value for key, value in {**live.annotations, **change.annotations}.items() if value}
        changed = replace(live, annotations=annotations, resource_version=self.world.version())
        self.world.pools[pool.name] = changed
        return changed

    async def patch_status(self, pool: NodePool, status: PoolStatus) -> NodePool | None:
        raise NotImplementedError


class FakeNamespaces:
    """kube-system, with what is paused for all."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def read(self, name: str) -> Namespace | None:
        return self.world.system if name == names.SYSTEM_NAMESPACE else None


class FakeRules:
    """Policies, Freezes and roll-outs."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def read(self, _: str) -> TimeRules:
        return self.world.rules
