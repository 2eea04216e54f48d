"""What the machines of a cloud do by themselves: they boot, and an announced end comes.

It answers the port NodeClassUpkeep, because there a cloud maintains its own; the classes themselves need nothing. Every
moment is recorded on a Node, so any worker may act on it.
"""

import time
from collections.abc import Callable
from typing import Final

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.annotated_nodes import AnnotatedNodes
from dovetail.model.nodes import Node
from dovetail.model.values.time import time_or_none
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import Nodes
from dovetail.ports.raw_objects import RawObjects
from dovetail.ports.view import ClusterView

_ROUND_SECONDS: Final = 60.0


class KwokUpkeep:
    """Boots and ends instances when their time has come."""

    def __init__(
        self, view: ClusterView, objects: RawObjects, nodes: Nodes, clock: Callable[[], float] = time.time
    ) -> None:
        self._dated = AnnotatedNodes(view, own.BOOTS_AT, own.ENDS_AT)
        self._objects, self._nodes, self._clock = objects, nodes, clock

    async def keep(self) -> float:
        """Look at every instance with a pending moment; returns when the next one boots or ends."""
        now = self._clock()
        again = now + _ROUND_SECONDS
        for node in self._dated.now():
            boots, ends = (time_or_none(node.annotations.get(key, "")) for key in (own.BOOTS_AT, own.ENDS_AT))
            if ends is not None and ends <= now:
                await self._end(node)
            elif boots is not None and boots <= now:
                await self._boot(node)
            again = min([again, *(moment for moment in (boots, ends) if moment is not None and moment > now)])
        return again

    async def _end(self, node: Node) -> None:
        if node.deleting_since is None:
            await self._nodes.delete(node.name, node.uid)

    async def _boot(self, node: Node) -> None:
        """The Node joins: it gets its providerID."""
        raw = await self._objects.read(node.name)
        if raw is None or own.BOOTS_AT not in (raw["metadata"].get("annotations") or {}):
            return
        joined = {"metadata": {"annotations": {own.BOOTS_AT: None}}, "spec": {"providerID": own.SCHEME + node.name}}
        try:
            await self._objects.patch(raw, joined)
        except Conflict:
            return  # its change wakes us again
