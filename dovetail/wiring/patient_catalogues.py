"""The port Catalogues for loops that must not wait for a cloud that hangs.

A call to a cloud that takes a connection and says nothing ends after minutes, and upkeep asks about claim after claim.
Behind these questions stand orders that need no cloud: a disruption that is called off, a Freeze, a status. So a
question is waited for only for a while; what hangs beyond that is answered as a cloud that does not answer, and while
one hangs, all others of its kind are given only the moment that a remembered answer takes. A question that hangs goes
on beside, so that what it learns is known to the next, and is not asked a second time meanwhile. Its answer is given to
nobody: what it was asked about may have changed.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Final, TypeVar

from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.pools import Catalogue, NodePool
from dovetail.ports.cloud import Catalogues, NodeClassState
from dovetail.ports.failures import Unreachable

T = TypeVar("T")

PATIENCE_SECONDS: Final = 5.0  # a scrape of the metrics, which asks too, has ten
MOMENT_SECONDS: Final = 0.01  # while the cloud hangs


class PatientCatalogues:
    def __init__(self, catalogues: Catalogues) -> None:
        self._catalogues = catalogues
        self._of_pools, self._of_claims = _Questions(), _Questions()  # a list of instances that hangs hides no types

    async def catalogue(self, pool: NodePool) -> Catalogue:
        subject = f"instance types of NodePool {pool.name}"
        return await self._of_pools.answer(subject, self._catalogues.catalogue(pool))

    async def drift(self, claim: NodeClaim) -> str:
        return await self._of_claims.answer(f"drift of NodeClaim {claim.name}", self._catalogues.drift(claim))

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        return await self._catalogues.node_class(reference)

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return self._catalogues.supported_classes()

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return await self._catalogues.repair_policies()


class _Questions:
    """Those of one kind."""

    def __init__(self) -> None:
        self._hanging: dict[str, int] = {}  # given up, and going on, by subject

    async def answer(self, subject: str, question: Coroutine[None, None, T]) -> T:
        if subject in self._hanging:
            question.close()
            raise Unreachable(subject, "the cloud still does not answer")
        patience = MOMENT_SECONDS if self._hanging else PATIENCE_SECONDS
        asked = asyncio.create_task(question)
        try:
            await asyncio.wait((asked,), timeout=patience)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        if asked.done():
            return asked.result()
        self._hanging[subject] = self._hanging.get(subject, 0) + 1
        asked.add_done_callback(partial(self._ended, subject))
        raise Unreachable(subject, "the cloud does not answer")

    def _ended(self, subject: str, asked: "asyncio.Task[T]") -> None:
        left = self._hanging.pop(subject) - 1
        if left:
            self._hanging[subject] = left
        if not asked.cancelled():
            asked.exception()  # nobody else asks for it
