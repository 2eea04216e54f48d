"""A cluster whose past is kept, and caches that show it late, each kind of object as late as it likes.

As with the API server's watches, a cache sees every change in order, but those of nodes and those of claims come by
streams of their own.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.messages.writes import Write
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import NotSeenYet
from worlds.disruption import CLASS, TYPES
from worlds.fakes import World

State = Mapping[str, Any]
KINDS = ("NodeClaim", "Node", "NodePool")


@dataclass(slots=True)
class Cluster(World):
    """The world of the steps' tests, with its pools and its past: kind -> (version, all objects), oldest first."""

    pools: dict[str, NodePool] = field(default_factory=dict)
    past: dict[str, list[tuple[int, State]]] = field(default_factory=lambda: {kind: [(0, {})] for kind in KINDS})

    def now_of(self, kind: str) -> dict[str, Any]:
        objects: dict[str, dict[str, Any]] = {"NodeClaim": self.claims, "Node": self.nodes, "NodePool": self.pools}
        return objects[kind]

    def keep(self) -> None:
        """After every write, and after everything that others do."""
        for kind, known in self.past.items():
            if known[-1][1] != self.now_of(kind):
                self.versions += 1  # a deletion has a version too
                known.append((self.versions, dict(self.now_of(kind))))


class Cache:
    """Both ports of the view, over what one worker has heard so far."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.heard = dict.fromkeys(KINDS, 0)  # index into the past
        self.listeners: list[asyncio.Future[None]] = []

    def hear(self, kind: str, count: int) -> None:
        """The next changes of that kind arrive."""
        newest = len(self.cluster.past[kind]) - 1
        if self.heard[kind] < newest:
            self.heard[kind] = min(newest, self.heard[kind] + count)
            for listener in self.listeners:
                if not listener.done():
                    listener.set_result(None)

    def state(self, kind: str) -> State:
        return self.cluster.past[kind][self.heard[kind]][1]

    def seen(self, kind: str) -> int:
        return self.cluster.past[kind][self.heard[kind]][0]

    def revision(self) -> int:
        return sum(self.heard.values())

    def revision_of(self, kinds: Kinds) -> int:
        return self.revision()

    def stale(self) -> dict[str, str]:
        return {}

    def silent_for(self, kind: str) -> float:
        return 0.0

    def snapshot(self, reads: object = None) -> Snapshot:
        return Snapshot(
            now=self.cluster.clock,
            seen={kind: self.seen(kind) for kind in KINDS},
            claims=self.state("NodeClaim"),
            nodes=self.state("Node"),
            pods=dict(self.cluster.pods),
            pools=self.state("NodePool"),
        )

    async def changed(self, after: int) -> int:
        while self.revision() <= after:
            listener = asyncio.get_running_loop().create_future()
            self.listeners.append(listener)
            try:
                await listener
            finally:
                self.listeners.remove(listener)
        return self.revision()

    async def catch_up(self, writes: Sequence[Write]) -> None:
        try:
            async with asyncio.timeout(10.0):
                while not all(self._has_seen(write) for write in writes):
                    await self.changed(self.revision())
        except TimeoutError:
            raise NotSeenYet("cache", "not seen within 10 s") from None

    def _has_seen(self, write: Write) -> bool:
        """As dovetail/adapters/kubernetes_json/cache.py has it."""
        if write.version == 0:
            held = self.state(write.kind).get(write.name)
            return held is None or held.uid != write.uid
        return self.seen(write.kind) >= write.version

    def unreadable(self) -> tuple[Unreadable, ...]:
        return ()

    def claim(self, name: str) -> NodeClaim | None:
        found: NodeClaim | None = self.state("NodeClaim").get(name)
        return found

    def node(self, name: str) -> Node | None:
        found: Node | None = self.state("Node").get(name)
        return found

    def nodes_of(self, provider_id: str) -> tuple[Node, ...]:
        return tuple(n for n in self.state("Node").values() if provider_id and n.provider_id == provider_id)


class Deciding(Cache):
    """The same cache as a planner asks it: what it showed last is what was decided on."""

    def __init__(self, cache: Cache) -> None:
        self.__dict__ = cache.__dict__
        self.last: list[Snapshot] = []

    def snapshot(self, reads: object = None) -> Snapshot:
        self.last[:] = [super().snapshot()]
        return self.last[0]


class Catalogues:
    """One kind of class, the same types for every pool."""

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return frozenset({(CLASS.group, CLASS.kind)})

    async def catalogue(self, pool: NodePool) -> Catalogue:
        return Catalogue(types=TYPES)
