"""Pods that are evicted, and what becomes of them."""

from dataclasses import replace
from typing import Literal

from dovetail.model.pods import Pod
from dovetail.ports.failures import Conflict, Failure
from dovetail.ports.objects import Eviction
from worlds.fakes.world import World


class FakePods:
    """Pods. `answers` holds the answer to a pod's eviction; `leave` is what happens to an evicted one."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers: dict[str, Literal["blocked", "unsupported", "gone", "replaced"]] = {}
        self.fails: dict[str, Failure] = {}
        self.lasts = 1.0  # seconds from eviction to end
        self.lingers = False  # a kubelet that stops nothing: pods stay past the end of their grace

    async def list_on(self, node: str) -> tuple[Pod, ...]:
        self.world.ledger.append(f"list pods {node}")
        return tuple(pod for pod in self.world.pods.values() if pod.node_name == node)

    async def evict(self, pod: Pod) -> Eviction:
        self.world.ledger.append(f"evict {pod.name} {self.world.clock:.1f}")
        if pod.uid in self.fails:
            raise self.fails[pod.uid]
        answer = self.answers.get(pod.uid)
        if answer is not None:
            codes = {"blocked": 429, "unsupported": 500, "gone": 404, "replaced": 409}
            return Eviction(outcome=answer, code=codes[answer])
        self._end(pod, self.lasts)
        return Eviction(outcome="evicted", code=201)

    async def read(self, pod: Pod) -> Pod | None:
        self.world.ledger.append(f"get pod {pod.name}")
        return self.world.pods.get(pod.uid)

    async def nominate(self, pod: Pod, node: str) -> None:
        self.world.ledger.append(f"nominate {pod.name} {node or 'nowhere'}")
        if pod.uid in self.fails:
            raise self.fails[pod.uid]
        live = self.world.pods.get(pod.uid)
        if live is None:
            return
        if live.resource_version != pod.resource_version:
            raise Conflict(pod.key, "the object has been modified")
        self.world.pods[pod.uid] = replace(live, nominated_node=node, resource_version=self.world.version())

    async def annotate(self, pod: Pod, key: str, value: str | None) -> None:
        self.world.ledger.append(f"annotate {pod.name} {value}")
        if pod.uid in self.fails:
            raise self.fails[pod.uid]

    async def delete(self, pod: Pod, grace_seconds: int) -> None:
        self.world.ledger.append(f"force {pod.name} {grace_seconds} {self.world.clock:.1f}")
        self._end(pod, float(grace_seconds))

    def _end(self, pod: Pod, after: float) -> None:
        self.world.pods[pod.uid] = replace(pod, deleting_since=self.world.clock + after)
        if not self.lingers:
            self.world.at(self.world.clock + after, lambda: self.world.kill(pod))


class PodsMadeAnew(FakePods):
    """Pods whose template names their node: their ReplicaSet makes another there as soon as one leaves, until then."""

    def __init__(self, world: World, until: float) -> None:
        super().__init__(world)
        self.until = until

    def _end(self, pod: Pod, after: float) -> None:
        super()._end(pod, after)
        if self.world.clock > self.until:
            return
        made = self.world.version()
        self.world.put(replace(pod, name=f"{pod.name}-{made}", uid=f"{pod.uid}-{made}", created=self.world.clock))
