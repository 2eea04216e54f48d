"""How much does an answer cost once all its pods run?

Nodes come up in a random order, a few at a time; the kube-scheduler binds what fits in the order in which the pods
came. Pods that are left when all nodes are up get further nodes, as another pass decides, and so on until none waits.
Each pod may be nominated to the node that was meant for it, from the moment that node is up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from acceptance.binding.nodes import Catalogue, Node, Raw
from acceptance.binding.pods import Kinds
from acceptance.binding.scheduler import Cluster

_ROUNDS = 6
Answer = Callable[[Raw], Raw]  # what the engine answers for an input


@dataclass(frozen=True)
class Coming:
    """How nodes come up: in so many groups, in an order by chance; 0: each on its own."""

    groups: int = 0
    seed: int = 1


@dataclass(frozen=True)
class Bound:
    """What came of an answer."""

    cost: float
    left: tuple[int, ...]  # pods without a node after each round
    nodes: int
    where: dict[str, str]  # pod to node


class _Story:
    """One cluster over its rounds."""

    def __init__(self, given: Raw, coming: Coming, nominates: bool) -> None:
        self._given = given
        self._coming = coming
        self._nominates = nominates
        self._chance = np.random.default_rng(coming.seed)
        self._catalogue = Catalogue(given)
        self.kinds = Kinds()
        self._pods = [pod for pod in given["pods"] if not pod["spec"].get("nodeName")]
        self._pods.sort(
            key=lambda pod: (-(pod["spec"].get("priority") or 0), pod["metadata"].get("creationTimestamp") or "")
        )
        for pod in given["pods"]:
            self.kinds.of(pod)
        self.nodes: list[Node] = []
        self.where: dict[str, str] = {}

    def play(self, claims: Sequence[Raw]) -> list[Raw]:
        """The nodes of these claims come up; the pods that are left."""
        old = len(self.nodes)
        self.nodes += [self._catalogue.node(claim, f"node-{old + n:05d}") for n, claim in enumerate(claims)]
        cluster = Cluster(self.nodes, self.kinds, self._chance)
        at = {node.name: number for number, node in enumerate(self.nodes)}
        cluster.up[:old] = True
        for pod in self._pods:
            if pod["metadata"]["name"] in self.where:
                cluster.bind(pod["metadata"]["name"], self.kinds.of(pod), at[self.where[pod["metadata"]["name"]]])
        waiting = [pod for pod in self._pods if pod["metadata"]["name"] not in self.where]
        wanted = {name: old + n for n, claim in enumerate(claims) for name in claim["pods"] if self._nominates}
        order = old + self._chance.permutation(len(self.nodes) - old)
        step = 1 if not self._coming.groups else max(1, ceil(len(order) / self._coming.groups))
        for first in range(0, len(order), step):
            cluster.up[order[first : first + step]] = True
            waiting = cluster.bind_what_fits(waiting, wanted)
            if not waiting:
                break
        self.where = {name: self.nodes[number].name for name, number in cluster.bound.items()}
        return waiting

    def now(self) -> Raw:
        """The input as it is after the nodes came up."""
        pods = [
            {**pod, "spec": {**pod["spec"], "nodeName": self.where[pod["metadata"]["name"]]}}
            if pod["metadata"]["name"] in self.where
            else pod
            for pod in self._pods
        ]
        return {**self._given, "pods": pods, "nodes": [_raw(node) for node in self.nodes]}


def _raw(node: Node) -> Raw:
    room = {name: str(float(amount)) if name == "cpu" else str(int(amount)) for name, amount in node.room.items()}
    return {
        "metadata": {"name": node.name, "uid": node.name, "labels": dict(node.labels)},
        "spec": {"providerID": f"made://{node.name}", "taints": list(node.taints)},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def after_binding(given: Raw, answer: Raw, answer_again: Answer, coming: Coming, nominates: bool = False) -> Bound:
    """What an answer for an input without nodes comes to. `nominates`: each pod to the node that was meant for it."""
    story = _Story(given, coming, nominates)
    refused = set(answer.get("errors") or ())
    claims, left = list(answer["newNodeClaims"]), []
    for _ in range(_ROUNDS):
        waiting = story.play(claims)
        left.append(sum(pod["metadata"]["name"] not in refused for pod in waiting))
        if not left[-1]:
            break
        claims = list(answer_again(story.now())["newNodeClaims"])
        if not claims:
            break
    return Bound(sum(node.price for node in story.nodes), tuple(left), len(story.nodes), story.where)
