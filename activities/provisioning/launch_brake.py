"""Stops launches for NodePools whose launches keep failing, and publishes that.

The stop is an annotation of the NodePool, written before the plan is made. The plan respects it even if it could not be
written; then it is judged again with the next plan.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.shared.writes.pool_revisions import Annotations, revise_pool
from dovetail.model import names
from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.notices.launch_stops import launches_stopped
from dovetail.placement.launch_brake import PoolStop, pools_to_resume, pools_to_stop
from dovetail.placement.settings import BrakeSettings
from dovetail.ports.failures import Failure
from dovetail.ports.objects import NodePools, Notices
from dovetail.rules.brake.unused_launches import resumed_annotations, stop_text
from dovetail.telemetry.metrics.ours.launch_brake import pool_stopped

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrakedSnapshots(Snapshots):
    """Snapshots in which every NodePool that must be stopped is stopped."""

    brake: "LaunchBrake"

    async def whole(self, reads: Kinds) -> Snapshot:
        """Everything that provisioning needs, as it is now."""
        return await self.brake.apply(await Snapshots.whole(self, reads))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchBrake:
    """What a pass asks before it plans."""

    pools: NodePools
    notices: Notices
    settings: BrakeSettings
    well_known: frozenset[str]
    now: Callable[[], float]

    async def apply(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, with the pools stopped that must be."""
        resumed = {name: await self._resume(snapshot.pools[name]) for name in pools_to_resume(snapshot)}
        if resumed:
            snapshot = replace(snapshot, pools={**snapshot.pools, **resumed})
        stops = pools_to_stop(snapshot, self.settings, self.well_known)
        if not stops:
            return snapshot
        stopped = {stop.pool: await self._stop(snapshot.pools[stop.pool], stop) for stop in stops}
        return replace(snapshot, pools={**snapshot.pools, **stopped})

    async def _resume(self, pool: NodePool) -> NodePool:
        """Lift the stop where the one node that was tried has come up."""
        changed = resumed_annotations(self.now())
        try:
            await revise_pool(self.pools, pool, lambda _: changed)
            _log.info("NodePool %s: launches resume, since the node that was tried runs pods", pool.name)
        except Failure as failure:
            _log.warning(
                "NodePool %s: launches resume for this plan only, since that could not be written: %s",
                pool.name,
                failure,
            )
        merged = {**pool.annotations, **changed}
        return replace(pool, annotations={key: text for key, text in merged.items() if text is not None})

    async def _stop(self, pool: NodePool, stop: PoolStop) -> NodePool:
        text = stop_text(self.now(), stop.why)

        def change_of(found: NodePool) -> Annotations:
            return {} if names.LAUNCHES_STOPPED in found.annotations else {names.LAUNCHES_STOPPED: text}

        try:
            await revise_pool(self.pools, pool, change_of)
            pool_stopped(pool.name)
            await self.notices.publish(launches_stopped(pool, stop.why))
        except Failure as failure:
            _log.warning(
                "NodePool %s: launches stop for this plan only, since that could not be written: %s", pool.name, failure
            )
        return replace(pool, annotations={**pool.annotations, names.LAUNCHES_STOPPED: text})
