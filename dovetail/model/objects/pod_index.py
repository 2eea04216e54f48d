"""The pods of a snapshot by their node, as a view keeps them, so that no look goes through all pods for a few."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from dovetail.model.pods import Pod

T = TypeVar("T")


class NodePods(tuple[Pod, ...]):
    """The pods of one node, and what was worked out about them. A view gives the same object for as long as none of
    them has changed: of five thousand nodes a look asks those again of which one has."""

    _answers: dict[object, object] | None = None  # until something is asked: most are made of a snapshot and dropped

    def kept(self, question: Callable[["NodePods"], T]) -> T:
        """The answer to a question of a module, which must depend on these pods alone: not on the time."""
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
    """Those of which an annotation may keep the node; few of very many."""
    return tuple([pod for pod in pods if pod.asks_to_stay])


@dataclass(frozen=True, slots=True)
class PodIndex:
    """It is of these very `pods`, and says nothing of any other mapping. `unbound`: those of no node."""

    pods: Mapping[str, Pod]
    by_node: Mapping[str, NodePods]
    unbound: Collection[Pod]

    def without(self, uids: Collection[str], left: Mapping[str, Pod]) -> "PodIndex":
        """What it says of those that are left without these; what is known of other nodes stays."""
        nodes = {self.pods[uid].node_name for uid in uids if uid in self.pods}
        changed = {
            node: NodePods([pod for pod in self.by_node[node] if pod.uid not in uids])
            for node in nodes & self.by_node.keys()
        }
        unbound = [pod for pod in self.unbound if pod.uid not in uids] if "" in nodes else self.unbound
        return PodIndex(left, {**self.by_node, **changed}, unbound)
