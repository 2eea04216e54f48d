"""The port Interruptions over an annotation of Nodes: `kubectl annotate node NODE kwok.dovetail.sh/interrupt=spot`.

The annotation is the queue: it remains until the message is acknowledged, and then under another name, so that any
worker sees what was announced. A spot instance is taken away two minutes later, as a cloud does (upkeep.py).
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.annotated_nodes import AnnotatedNodes
from dovetail.adapters.kwok.instance_types import OfferingKey
from dovetail.adapters.kwok.node_class import KwokShortages
from dovetail.messages.interruptions import Interruption, InterruptionReason, Warned
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.watched_kinds import NODES
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from dovetail.ports.interruptions import Message
from dovetail.ports.raw_objects import RawObjects
from dovetail.ports.view import ClusterView

WAIT_SECONDS: Final = 20.0
SPOT_SECONDS: Final = 120.0
_MOST: Final = 10
_REASONS: Final[Mapping[str, InterruptionReason]] = {
    "spot": "spot_interrupted",
    "rebalance": "rebalance_recommendation",
    "maintenance": "scheduled_change",
    "stopped": "instance_stopped",
}


class KwokInterruptions:
    def __init__(
        self, view: ClusterView, objects: RawObjects, shortages: KwokShortages, clock: Callable[[], float] = time.time
    ) -> None:
        self._view, self._objects, self._shortages, self._clock = view, objects, shortages, clock
        self._announced = AnnotatedNodes(view, own.INTERRUPT)
        self._handed: dict[str, float] = {}  # receipt -> when it is handed out again

    async def receive(self) -> tuple[Message, ...]:
        revision = self._view.revision()
        found = self._messages()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not found:
                    revision = await self._view.changed(revision)
                    found = self._messages()
        except TimeoutError:
            return ()
        self._handed |= {each.receipt: self._clock() + WAIT_SECONDS for each in found}
        return found

    async def try_reading(self) -> None:
        self._messages()

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        for receipt in receipts:
            name, _, said = receipt.partition("/")
            raw = await self._objects.read(name)
            if raw is None or (raw["metadata"].get("annotations") or {}).get(own.INTERRUPT) != said:
                continue
            change: Json = {own.INTERRUPT: None, own.ANNOUNCED: said}
            if _REASONS.get(said) == "spot_interrupted":
                change[own.ENDS_AT] = format_time(self._clock() + SPOT_SECONDS)
            await self._objects.patch(raw, {"metadata": {"annotations": change}})

    async def troubles(self) -> tuple[Interruption, ...]:
        return ()

    async def borne_out(self, warned: Collection[Warned]) -> frozenset[Warned]:
        """What the Node's annotation confirms; a missing Node means an instance that is gone."""
        nodes = self._view.snapshot(NODES).nodes
        said = {
            name: {_REASONS.get(node.annotations.get(key, "")) for key in (own.INTERRUPT, own.ANNOUNCED)}
            for name, node in nodes.items()
        }
        return frozenset(each for each in warned if each[0] not in said or each[1] in said[each[0]])

    async def learn_from(self, interruption: Interruption, claim: NodeClaim) -> None:
        if interruption.reason == "spot_interrupted":
            where = (claim.labels.get(key, "") for key in (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE))
            self._shortages.remember(OfferingKey(*where))

    def _messages(self) -> tuple[Message, ...]:
        now = self._clock()
        self._handed = {receipt: until for receipt, until in self._handed.items() if until > now}
        found: list[Message] = []
        for node in self._announced.now():
            said = node.annotations.get(own.INTERRUPT, "")
            receipt = f"{node.name}/{said}"
            if not said or receipt in self._handed:
                continue
            reason = _REASONS.get(said)
            if reason is None:
                known = ", ".join(_REASONS)
                found.append(Message(receipt=receipt, problem=f"Node {node.name}: {said!r} is none of {known}"))
                continue
            announced = Interruption(id=f"{node.uid}-{said}", reason=reason, instances=(node.name,), at=now)
            found.append(Message(receipt=receipt, interruption=announced))
        return tuple(found[:_MOST])
