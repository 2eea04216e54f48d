"""The machines that carry one of these annotations: few of very many, so all are searched only after a Node has
changed."""

from dovetail.adapters.kwok import names as own
from dovetail.model.nodes import Node
from dovetail.model.objects.watched_kinds import NODES
from dovetail.ports.view import ClusterView


class AnnotatedNodes:
    """Found in one view. Only the versions of its Nodes may have become old since."""

    def __init__(self, view: ClusterView, *annotations: str) -> None:
        self._view, self._annotations = view, frozenset(annotations)
        self._last: tuple[int, tuple[Node, ...]] | None = None

    def now(self) -> tuple[Node, ...]:
        """As of now; NotSeenYet while the watch of Nodes is broken."""
        revision = self._view.revision_of(NODES)
        if self._last is None or self._last[0] != revision or self._view.stale().keys() & NODES:
            nodes = self._view.snapshot(NODES).nodes.values()
            self._last = revision, tuple(node for node in nodes if self._is_asked_for(node))
        return self._last[1]

    def _is_asked_for(self, node: Node) -> bool:
        fake = node.labels.get(own.PLAYED) == own.FAKE
        return fake and not self._annotations.isdisjoint(node.annotations)
