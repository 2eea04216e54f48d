"""A model of the kube-scheduler's default profile (1.36): which node does a pod get, if any?

A pod's nominated node is tried before all others, and taken if it passes the filters (`filters`); else those that pass
are scored (`scores`), and of the best one is drawn. From 100 nodes on only a share of those that fit is scored,
beginning where the pod before ended. Nominated pods take the room of their node for pods of no higher priority; a pod
that finds nothing loses its nomination. Volumes, images, preemption and the cluster's default spread are left out.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from acceptance.binding.filters import Filters
from acceptance.binding.lying import Lying
from acceptance.binding.nodes import Node
from acceptance.binding.pods import Kind, Kinds, Raw
from acceptance.binding.scores import Scores
from acceptance.binding.view import Flags, Integers, View

_FEW = 100  # so many nodes are always looked at


class Cluster:
    """Nodes that come up, and the pods that are bound to them."""

    def __init__(self, nodes: Sequence[Node], kinds: Kinds, chance: np.random.Generator) -> None:
        self.nodes = list(nodes)
        self.kinds = kinds
        self.up: Flags = np.zeros(len(nodes), dtype=bool)
        self.bound: dict[str, int] = {}
        self._chance = chance
        self._view = View(nodes, kinds)
        self._running = Lying(self._view)
        self._filters = Filters(self._view, self.up, self._running)
        self._scores = Scores(self._view, self.up, self._running)
        self._nominated: dict[str, tuple[Kind, int]] = {}
        self._by_priority: dict[int, Lying] = {}  # nominated pods
        self._changes = 0  # that may let in a pod that found nothing before
        self._freed = 0  # of them, those that may let in a pod to which only room matters
        self._next = 0

    # --- one pod

    def place(self, kind: Kind, nominated: int = -1) -> int:
        """The node that such a pod gets, if any the one it is nominated to; -1: none."""
        waiting = [each for priority, each in self._by_priority.items() if priority >= kind.priority]
        suits = self._filters.holding(kind, waiting)
        if nominated >= 0 and suits[nominated]:
            return nominated
        if not suits.any():
            return -1
        found = self._looked_at(np.flatnonzero(suits).astype(np.int64))
        if len(found) == 1:
            return int(found[0])
        scores = self._scores.of(kind, found)
        best = found[scores >= scores.max() - 1e-9]
        return int(self._chance.choice(best))

    def _looked_at(self, found: Integers) -> Integers:
        up = int(self.up.sum())
        enough = up if up < _FEW else max(_FEW, up * max(5, 50 - up // 125) // 100)
        if len(found) > enough:
            at = int(np.searchsorted(found, self._next))
            found = np.roll(found, -at)[:enough]
            self._next = (int(found[-1]) + 1) % len(self.nodes)
        return found

    # --- pods on nodes

    def bind(self, name: str, kind: Kind, at: int) -> None:
        """The pod runs there from now on."""
        self.bound[name] = at
        self._running.add(kind, at)
        self._changes += 1

    def release(self, name: str, kind: Kind) -> None:
        """The pod is gone."""
        self._running.add(kind, self.bound.pop(name), -1)
        self._changes += 1
        self._freed += 1

    def nominate(self, name: str, kind: Kind, at: int) -> None:
        """The pod takes room there for all others, until it is tried."""
        if kind.priority not in self._by_priority:
            self._by_priority[kind.priority] = Lying(self._view)
        self._by_priority[kind.priority].add(kind, at)
        self._nominated[name] = (kind, at)

    def _clear(self, name: str) -> int:
        """The pod is nominated no longer; the node that it was nominated to, or -1."""
        found = self._nominated.pop(name, None)
        if found is None:
            return -1
        kind, at = found
        self._by_priority[kind.priority].add(kind, at, -1)
        return at

    # --- all that wait

    def bind_what_fits(self, waiting: Iterable[Raw], wanted: Mapping[str, int] | None = None) -> list[Raw]:
        """Each pod in turn, and those that found nothing again for as long as pods are bound; those that wait on.

        `wanted`: the node that somebody nominates each pod to as soon as the node is up, and again where the pod lost
        its nomination, which is seen when all others had their turn.
        """
        left, before = list(waiting), -1
        failed: dict[int, int] = {}
        while left and len(self.bound) != before:
            before = len(self.bound)
            for pod in left:
                at = (wanted or {}).get(pod["metadata"]["name"], -1)
                if at >= 0 and self.up[at]:
                    self.nominate(pod["metadata"]["name"], self.kinds.of(pod), at)
            left = [pod for pod in left if not self._try(pod, failed)]
        return left

    def _try(self, pod: Raw, failed: dict[int, int]) -> bool:
        """Whether the pod was bound. A kind that found nothing is tried again when something has changed for it."""
        name, kind = pod["metadata"]["name"], self.kinds.of(pod)
        nominated = self._clear(name)
        if nominated < 0 and failed.get(kind.number) == self._seen_by(kind):
            return False
        at = self.place(kind, nominated)
        if at >= 0:
            self.bind(name, kind, at)
        if nominated not in (-1, at):
            self._changes += 1
            self._freed += 1
        if at < 0:
            failed[kind.number] = self._seen_by(kind)
        return at >= 0

    def _seen_by(self, kind: Kind) -> int:
        return self._freed if kind.plain else self._changes


def bound(nodes: Sequence[Node], pods: Sequence[Raw], seed: int = 1) -> dict[str, str]:
    """All nodes up, the pods in turn: pod to node, of those that fit."""
    kinds = Kinds()
    for pod in pods:
        kinds.of(pod)
    cluster = Cluster(nodes, kinds, np.random.default_rng(seed))
    cluster.up[:] = True
    cluster.bind_what_fits(pods)
    return {name: nodes[number].name for name, number in cluster.bound.items()}
