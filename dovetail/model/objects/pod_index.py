"""The pods of a snapshot by their node, as a view keeps them, so that no look goes through all pods to find a few."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from dovetail.model.pods import Pod

T = TypeVar("T")


class NodePods(tuple[Pod, ...]):
    """The pods of one node, and what was worked out about them. A view gives the same object until one of them changes:
    of five thousand nodes a look asks only those again on which a pod has changed."""

    _answers: dict[object, object] | None = None  # until something is asked: most are made from a snapshot and dropped

    def kept(self, question: Callable[["NodePods"], T]) -> T:
        """The answer to a module's question, which must depend on these pods alone, not on the time."""
        answers = self._answers
        if answers is None:
            answers = self._answers = {}
        found = answers.get(question, self)
        if found is self:
            found = answers[question] = question(self)
        return cast(T, found)


NO_PODS: Final = NodePods()


def by_key(pods: NodePods) -> NodePods:
    """By namespace and name."""
    return NodePods(sorted(pods, key=lambda pod: pod.key))


def asking_to_stay(pods: NodePods) -> tuple[Pod, ...]:
    """Those with an annotation that may keep the node; few of very many."""
    return tuple([pod for pod in pods if pod.asks_to_stay])


@dataclass(frozen=True, slots=True)
class PodIndex:
    """An index of exactly these `pods`, not of any other mapping. `unbound`: those without a node."""

    pods: Mapping[str, Pod]
    by_node: Mapping[str, NodePods]
    unbound: Collection[Pod]

    def without(self, uids: Collection[str], left: Mapping[str, Pod]) -> "PodIndex":
        """The index of the pods left without these; what is known about other nodes is kept."""
        nodes = {self.pods[uid].node_name for uid in uids if uid in self.pods}
        changed = {
            node: NodePods([pod for pod in self.by_node[node] if pod.uid not in uids])
            for node in nodes & self.by_node.keys()
        }
        unbound = [pod for pod in self.unbound if pod.uid not in uids] if "" in nodes else self.unbound
        return PodIndex(left, {**self.by_node, **changed}, unbound)
