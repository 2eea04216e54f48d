"""What the cache shows of the world: everything that is not hidden."""

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.workloads import PodDisruptionBudget, Volume, VolumeAttachment, VolumeClaim
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.devices import ResourceSlice
from testing.fakes.world import World


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
