"""Writes on a NodePool that replacements of its nodes were not ready in time, and takes it off once one is.

What cannot be written is logged: an undo is not held up for it.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from dovetail.activities.shared.pool_revisions import Annotations, revise_pool
from dovetail.disruption.choose import METHODS
from dovetail.model import names
from dovetail.model.failed_replacements import failed_text
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.ports.failures import Failure
from dovetail.ports.objects import NodePools
from dovetail.ports.view import ClusterView

_log = logging.getLogger(__name__)

HAD_ITS_TIME: Final = 540.0  # seconds since it was made: a disruption that was called off or failed before says nothing
POOLS: Final = frozenset({"NodePool"})


class FailedReplacements:
    """The memory of replacements that never became ready."""

    def __init__(self, view: ClusterView, pools: NodePools, now: Callable[[], float]) -> None:
        self.view, self.pools, self.now = view, pools, now

    async def given_back(self, claim: NodeClaim, method: str) -> None:
        """A replacement is given back; remembered where its instance had its time and its node is not ready."""
        reason = next((str(each.reason) for each in METHODS if each.name == method), "")
        had_its_time = self.now() - claim.created >= HAD_ITS_TIME
        if not reason or not had_its_time or not claim.provider_id or claim.is_true(names.INITIALIZED_CONDITION):
            return

        def change_of(pool: NodePool) -> Annotations:
            return {names.FAILED_REPLACEMENTS: failed_text(pool, reason, self.now())}

        await self._write(claim.labels.get(names.NODE_POOL, ""), change_of)

    async def ready(self, claims: Iterable[NodeClaim]) -> None:
        """These replacements are: what was wrong is over."""
        for pool in sorted({claim.labels.get(names.NODE_POOL, "") for claim in claims}):
            known = self.view.snapshot(POOLS).pools.get(pool)
            if known is not None and names.FAILED_REPLACEMENTS in known.annotations:
                await self._write(pool, lambda _: {names.FAILED_REPLACEMENTS: None})

    async def _write(self, name: str, change_of: Callable[[NodePool], Annotations]) -> None:
        try:
            pool = await self.pools.read(name)
            if pool is not None:
                await revise_pool(self.pools, pool, change_of)
        except Failure as failure:
            _log.warning("NodePool %s does not remember how its replacements went: %s", name, failure)
