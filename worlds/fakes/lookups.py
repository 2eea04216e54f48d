"""What the cache shows of the world: everything that is not hidden."""

import asyncio

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.objects.workloads import PodDisruptionBudget, Volume, VolumeAttachment, VolumeClaim
from dovetail.model.own.drain_rules import DrainRules
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.own.policies import policies_of
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.devices import ResourceSlice
from dovetail.model.snapshot import Snapshot
from dovetail.rules.pause.pauses import holding, pause_of_pool, pauses_of_all
from worlds.fakes.world import World


class FakeLookups:
    """The cache."""

    def __init__(self, world: World) -> None:
        self.world = world

    def claim(self, name: str) -> NodeClaim | None:
        return None if name in self.world.hidden | self.world.unreadable else self.world.claims.get(name)

    def node(self, name: str) -> Node | None:
        return None if name in self.world.hidden | self.world.unreadable else self.world.nodes.get(name)

    def has_pool(self, name: str) -> bool:
        return name not in self.world.hidden

    def pool(self, name: str) -> NodePool | None:
        return self.world.pools.get(name)

    def pause_on(self, pool: str, activity: Activity) -> Pause | None:
        now, found = self.world.clock, self.pool(pool)
        own = pause_of_pool(found, now) if found is not None else None
        general = pauses_of_all(self.world.system, self.world.rules.freezes, now)
        return holding((*general, own), activity)

    def drain_rules(self, pool: str) -> tuple[DrainRules, ...]:
        found = self.pool(pool)
        ours = policies_of(self.world.rules.policies, found) if found is not None else ()
        return tuple(policy.drain for policy in ours if policy.drain is not None)

    def snapshot(self, reads: Kinds | None = None) -> Snapshot:
        world = self.world
        shown = world.hidden | world.unreadable
        return Snapshot(
            now=world.clock,
            claims={name: claim for name, claim in world.claims.items() if name not in shown},
            nodes={name: node for name, node in world.nodes.items() if name not in shown},
            pods={uid: pod for uid, pod in world.pods.items() if pod.name not in shown},
            pools=dict(world.pools),
        )

    def revision(self) -> int:
        return self.world.versions

    async def changed(self, after: int) -> int:
        """Nobody tells of changes: what follows them looks as often as its step does."""
        await asyncio.Event().wait()
        return after

    def nodes_of(self, provider_id: str) -> tuple[Node, ...]:
        shown = (
            node for name, node in self.world.nodes.items() if name not in self.world.hidden | self.world.unreadable
        )
        return tuple(node for node in shown if provider_id and node.provider_id == provider_id)

    def slices_on(self, node: str) -> tuple[ResourceSlice, ...] | None:
        return self.world.slices.get(node, ()) if self.world.slices is not None else None

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        shown = (pod for pod in self.world.pods.values() if pod.name not in self.world.hidden)
        return tuple(pod for pod in shown if pod.node_name == node)

    def pod(self, uid: str) -> Pod | None:
        found = self.world.pods.get(uid)
        return None if found is None or found.name in self.world.hidden else found

    def all_pods(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.world.pods.values() if pod.name not in self.world.hidden)

    def budgets_in(self, namespace: str) -> tuple[PodDisruptionBudget, ...]:
        return tuple(budget for budget in self.world.budgets if budget.namespace == namespace)

    def attachments_on(self, node: str) -> tuple[VolumeAttachment, ...]:
        return tuple(one for one in self.world.attachments.values() if one.node_name == node)

    def volume_claim(self, key: str) -> VolumeClaim | None:
        return self.world.volume_claims.get(key)

    def volume(self, name: str) -> Volume | None:
        return self.world.volumes.get(name)
