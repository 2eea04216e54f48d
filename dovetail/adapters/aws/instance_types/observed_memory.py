"""How much memory nodes of a type really have (AWS-55).

The API-based estimate is slightly off for every type; the smallest amount that a registered node has shown is exact for
the image that it runs. It is read from the process's own watch-fed cache, so every process learns it for itself, also
after a restart.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.model import names as core
from dovetail.model.nodes import Node, NodeClaim

ClaimsWithNodes = Callable[[], Iterable[tuple[NodeClaim, Node]]]

_KEEP_SECONDS: Final = 60 * 24 * 3600.0
_LOOK_SECONDS: Final = 10.0  # between two looks over all nodes


class ObservedMemory:
    """The least memory by type and image."""

    def __init__(self, claims_with_nodes: ClaimsWithNodes, clock: Callable[[], float]) -> None:
        self._claims_with_nodes, self._clock = claims_with_nodes, clock
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}  # (type, image) → until when, how much
        self._looked = float("-inf")

    def of_class(self, node_class: NodeClass) -> Mapping[str, int]:
        """By type, for the class's current images."""
        now = self._clock()
        if now - self._looked >= _LOOK_SECONDS:
            self._look(now)
        images = {image.id for image in node_class.images}
        found: dict[str, int] = {}
        for (name, image), (until, least) in self._seen.items():
            if image in images and until > now:
                found[name] = min(least, found.get(name, least))
        return found

    def _look(self, now: float) -> None:
        self._looked = now
        for claim, node in self._claims_with_nodes():
            memory, name = node.capacity.get("memory", 0), claim.labels.get(core.INSTANCE_TYPE, "")
            if memory and name and claim.image_id and claim.is_true(core.REGISTERED_CONDITION):
                self._learn(name, claim.image_id, memory)

    def _learn(self, name: str, image: str, memory: int) -> None:
        until, least = self._seen.get((name, image), (0.0, memory))
        now = self._clock()
        self._seen[name, image] = (now + _KEEP_SECONDS, memory if until < now else min(memory, least))
