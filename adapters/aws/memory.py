"""How much memory do nodes of a type really show (W-55)?

Asked by the shelves; told by the keeper when a node has registered with the class's current image. The estimate from
the API is a little off for every type; the smallest amount seen is exact. The trap avoided: an amount seen with one
image says nothing of another.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from adapters.aws.node_class import NodeClass

_KEEP_SECONDS: Final = 60 * 24 * 3600.0


class SeenMemory:
    """The least memory by type and set of images."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, frozenset[str]], tuple[float, int]] = {}

    def learn(self, node_class: NodeClass, instance_type: str, memory: int) -> None:
        """A node of this type, with an image that the class now has, shows this much."""
        key = (instance_type, _images(node_class))
        before = self._seen.get(key)
        least = memory if before is None or before[0] < self._clock() else min(memory, before[1])
        self._seen[key] = (self._clock() + _KEEP_SECONDS, least)

    def of_class(self, node_class: NodeClass) -> Mapping[str, int]:
        """By type, for the class's current images."""
        images, now = _images(node_class), self._clock()
        return {name: least for (name, of), (until, least) in self._seen.items() if of == images and until > now}


def _images(node_class: NodeClass) -> frozenset[str]:
    return frozenset(image.id for image in node_class.images)
