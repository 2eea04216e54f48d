"""Writes on a NodePool that one of its claims has ended without the pods that it was made for.

That is the last thing done before the claim is gone, since only the claim names those pods. An error is only logged: no
claim is kept for it.
"""

import logging
from collections.abc import Callable

from dovetail.activities.shared.writes.pool_revisions import Annotations, revise_pool
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.places.kept_places import planned_pods
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.earlier_claims import launch_in_vain
from dovetail.ports.failures import Failure
from dovetail.ports.objects import NodePools
from dovetail.ports.view import ClusterView
from dovetail.rules.brake.unused_launches import (
    REMEMBERED_SECONDS,
    UnusedLaunch,
    remembered_launches,
    remembered_text,
)

_log = logging.getLogger(__name__)


class UnusedLaunches:
    """The memory of launches that came to nothing."""

    def __init__(self, view: ClusterView, pools: NodePools, now: Callable[[], float]) -> None:
        self.view, self.pools, self.now = view, pools, now

    async def remember(self, claim: NodeClaim) -> None:
        """Remember the launch where it was made within the hour and was of no use."""
        planned = planned_pods(claim) or names.PLANNED_BUFFERS in claim.annotations
        if not claim.provider_id or not planned or self.now() - claim.created > REMEMBERED_SECONDS:
            return
        try:
            snapshot = self.view.snapshot()
            if launch := launch_in_vain(claim, snapshot.pods, self.now()):
                await self._write(snapshot, claim, launch)
        except Failure as failure:
            _log.warning(
                "NodeClaim %s: its NodePool could not record that its launch was of no use: %s", claim.name, failure
            )

    async def _write(self, snapshot: Snapshot, claim: NodeClaim, launch: UnusedLaunch) -> None:
        pool = snapshot.pools.get(claim.labels.get(names.NODE_POOL, ""))
        if pool is None:
            return

        def change_of(found: NodePool) -> Annotations:
            text = remembered_text(remembered_launches(found, self.now()), launch)
            return {} if text == found.annotations.get(names.UNUSED_LAUNCHES) else {names.UNUSED_LAUNCHES: text}

        await revise_pool(self.pools, pool, change_of)
