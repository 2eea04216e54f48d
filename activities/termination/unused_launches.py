"""Writes on a NodePool that one of its claims has ended without the pods, or the room, that it was made for.

That is the last thing done before the claim is gone, since only the claim names those pods; what only its node shows is
written as it begins to leave. An error is only logged: no claim is kept for it.
"""

import logging
from collections.abc import Callable, Sequence

from dovetail.activities.shared.writes.pool_revisions import Annotations, changed, revise_pool
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.places.kept_places import planned_pods
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.earlier_claims import in_vain_for_buffers, launch_in_vain
from dovetail.ports.failures import Failure
from dovetail.ports.objects import NodePools
from dovetail.ports.view import ClusterView
from dovetail.rules.brake.unused_launches import BRAKE, UnusedLaunch, with_unused_launch

_log = logging.getLogger(__name__)


class UnusedLaunches:
    """The memory of launches that came to nothing."""

    def __init__(self, view: ClusterView, pools: NodePools, now: Callable[[], float]) -> None:
        self.view, self.pools, self.now = view, pools, now

    async def remember(self, claim: NodeClaim) -> None:
        """Remember the launch where it was made within the hour and was of no use."""
        await self._remember(claim, planned_pods(claim))

    async def remember_for_buffers(self, claim: NodeClaim) -> None:
        """The same of CapacityBuffers alone, as the claim begins to leave: its node shows whether their pods fit."""
        await self._remember(claim, ())

    async def _remember(self, claim: NodeClaim, pods: Sequence[str]) -> None:
        buffers = claim.annotations.get(names.PLANNED_BUFFERS)
        if not claim.provider_id or not (pods or buffers) or self.now() - claim.created > BRAKE.window:
            return
        try:
            snapshot = self.view.snapshot()
            here = {uid: pod for uid in pods if (pod := snapshot.pods.get(uid)) is not None}
            in_vain = in_vain_for_buffers(claim, snapshot) if buffers else {}
            if launch := launch_in_vain(claim, here, self.now(), in_vain):
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
            return changed(found, with_unused_launch(found, launch, self.now()))

        await revise_pool(self.pools, pool, change_of)
