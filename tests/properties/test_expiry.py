"""A node that expires with five pods on it: one other node, and no fewer pods than their budget asks for (BEH-125).

The decisions are the product's; the cloud, the kubelets, the kube-scheduler and the Deployment are played.
"""

from dataclasses import dataclass, replace

import pytest

from dovetail.lifecycle.unfinished import expired
from dovetail.model.objects.workloads import PodDisruptionBudget
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.placement.pdbs import PdbIndex
from dovetail.termination.evictions import plan_evictions
from dovetail.termination.leaving import LEAVING_TAINT
from tests.placement.builders import a_bound_pod, a_shape, selecting
from tests.properties.wrong_worlds import STEP, Wrong, WrongWorld

PODS = 5
LIFETIME = 600.0
APP = {"app": "x"}


@dataclass(slots=True)
class ExpiringWorld(WrongWorld):
    """An honest world whose nodes grow old. `least`: how many pods their budget keeps running; 0: there is none."""

    least: int = 0
    made: int = 0
    running: int = PODS  # the fewest that ever ran at once, since all of them did

    def snapshot(self) -> Snapshot:
        found = WrongWorld.snapshot(self)
        return replace(found, pdbs={"default/x": self.budget()} if self.least else {})

    def budget(self) -> PodDisruptionBudget:
        """As the API server sees it now."""
        spare = max(sum(bool(pod.node_name) for pod in self.pods.values()) - self.least, 0)
        return PodDisruptionBudget(
            name="x", namespace="default", selector=selecting(**APP), disruptions_allowed=spare, max_unavailable=None
        )

    def step(self) -> None:
        """What a Caretaker, provisioning, the cloud, the scheduler and a drain do within five seconds."""
        for order in expired(self.snapshot()):
            self._begin(order.claim.name)
        self._plan()
        self._boot()
        self._bind()
        for name, claim in list(self.claims.items()):
            if claim.deleting_since is not None:
                self._drain(name)
        self.now += STEP

    def _begin(self, name: str) -> None:
        self.claims[name] = replace(self.claims[name], deleting_since=self.now)
        node = self.nodes[name]
        self.nodes[name] = replace(node, deleting_since=self.now, taints=(LEAVING_TAINT,))

    def _drain(self, name: str) -> None:
        on_node = tuple(pod for pod in self.pods.values() if pod.node_name == name)
        for pod in plan_evictions(on_node, None, self.now).evict:
            if self.least and PdbIndex([self.budget()], self.now).blocking(pod):
                continue
            self._replace(pod)
        self.running = min(self.running, sum(bool(pod.node_name) for pod in self.pods.values()))
        if not any(pod.node_name == name for pod in self.pods.values()):
            del self.claims[name], self.nodes[name]

    def _replace(self, pod: Pod) -> None:
        """The Deployment makes another one."""
        self.made += 1
        del self.pods[pod.uid]
        successor = replace(
            pod, name=f"s{self.made}", uid=f"uid-s{self.made}", node_name="", phase="Pending", unschedulable=True
        )
        self.pods[successor.uid] = successor


def a_world(least: int) -> ExpiringWorld:
    """Five pods that are bound to a node which lives for ten minutes."""
    shape = a_shape(APP)
    pods = [replace(a_bound_pod(f"p{n}", "", shape=shape), phase="Pending", unschedulable=True) for n in range(PODS)]
    world = ExpiringWorld(wrong=Wrong(), pods={pod.uid: pod for pod in pods}, least=least)
    while world.pending():
        world.step()
    [(name, claim)] = world.claims.items()
    world.claims[name] = replace(claim, expire_after=LIFETIME)
    return world


@pytest.mark.parametrize("least", [0, 4])
def test_a_node_that_expires_with_five_pods_is_followed_by_one_other(least: int) -> None:
    """BEH-125, LIF-60: nothing is launched before its time; its successor does not expire."""
    world = a_world(least)
    [old] = world.claims

    while world.now < world.claims[old].created + LIFETIME:
        assert (list(world.claims), world.running) == ([old], PODS)
        world.step()
    for _ in range(60):
        world.step()

    assert (world.launches, old in world.claims, old in world.nodes) == (2, False, False)
    assert (world.pending(), len(world.pods), world.made) == ([], PODS, PODS)
    assert world.running >= least
    assert {pod.node_name for pod in world.pods.values()} == set(world.nodes)
