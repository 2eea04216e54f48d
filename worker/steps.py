"""Which step runs on which queue.

Asked by the worker's entry point. Every step is made here from the ports of a world; what a step is given is all that
it can reach.
"""

import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from activities.awaiting import Awaiting
from activities.caretaking import Caretaking
from activities.collecting import Collecting
from activities.creating import Creating
from activities.deciding_metrics import Decisions
from activities.deleting import Deleting
from activities.departing import Departing
from activities.detaching import Detaching
from activities.disrupting import Disrupting
from activities.draining import Draining
from activities.evicting import Evicting
from activities.giving_back import GivingBack
from activities.interruptions import Answering, TellingOfInterruptions, Watching
from activities.joining import Joining
from activities.keeping_buffers import BufferKeeper
from activities.keeping_claims import ClaimKeeper
from activities.keeping_consistency import ConsistencyKeeper
from activities.keeping_labels import LabelKeeper
from activities.keeping_notices import NoticeKeeper
from activities.keeping_overlays import OverlayKeeper
from activities.keeping_pools import PoolKeeper
from activities.knowing import KnownClaims
from activities.launching import Launching
from activities.lookers import Looker
from activities.marking import Marking
from activities.noticing import Noticing
from activities.ordering import Ordering
from activities.pod_times import PodTimes
from activities.provisioning import Provisioning, ProvisioningSettings
from activities.repairing import Repairing
from activities.replicas import Replicas
from activities.snapshots import Snapshots
from activities.telling import Telling
from activities.terminating import Terminating
from activities.turns import Turns
from activities.upkeep import Keeper, Upkeep
from worker.deciding import disruption_settings, placement_settings
from worker.settings import Role, Settings
from worker.wiring import World

Step = Callable[..., Awaitable[object]]

CONTROL_QUEUES = ("control", "waits", "cloud")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """A world and the steps over it."""

    settings: Settings
    world: World
    now: Callable[[], float] = time.time
    times: PodTimes = field(default_factory=PodTimes)

    def activities(self, roles: Sequence[Role]) -> dict[str, list[Step]]:
        """The steps by queue. Planning has a queue of its own, so that a slow decision never delays a drain."""
        queues: dict[str, list[Step]] = {}
        if "control" in roles:
            control = steps_of(*self._control())
            queues.update(dict.fromkeys(CONTROL_QUEUES, control))
        if "plan" in roles:
            queues["plan"] = steps_of(*self._plan())
        return queues

    def _control(self) -> list[object]:
        """The steps that act, and those that wait on the cluster."""
        w, now = self.world, self.now
        evicting = Evicting(w.pods, w.notices, Turns(now), now)
        marking, known = Marking(w.claims, w.nodes, w.pods, now), KnownClaims(w.view, w.claims)
        return [
            Awaiting(w.view, known, now),
            Caretaking(self.settings.cluster, w.claims, w.cloud, marking, now),
            Creating(w.claims, w.pools, w.notices, now),
            Deleting(w.claims, w.notices, w.view),
            Departing(known, w.nodes, w.cloud, now),
            Detaching(w.view, w.claims, w.notices, now),
            Draining(w.view, evicting, w.cloud, now),
            GivingBack(w.claims, w.pods),
            Joining(w.view, w.claims, w.nodes, now),
            Launching(w.claims, w.cloud, w.notices, now),
            marking,
            Noticing(w.notices, w.view),
            Terminating(known, w.cloud, now),
            *self._of_interruptions(),
        ]

    def _of_interruptions(self) -> list[object]:
        """Reading the cloud's warnings and answering them, where there is a queue."""
        w, queue = self.world, self.world.interruptions
        if queue is None:
            return []
        return [
            Watching(self.settings.cluster, queue, self.now),
            Answering(w.view, w.claims, queue, self.now),
            TellingOfInterruptions(w.notices, w.view),
        ]

    def _plan(self) -> list[object]:
        """The steps that decide, and those that look over everything."""
        w, now, settings = self.world, self.now, self.settings
        snapshots = Snapshots(w.view, w.catalogues)
        placement, disruption = placement_settings(settings), disruption_settings(settings)
        provisioning = ProvisioningSettings(placement=placement, idle=settings.batch_idle, longest=settings.batch_max)
        return [
            Provisioning(snapshots, Telling(w.notices, w.buffers, now), provisioning, now, Decisions(self.times)),
            Disrupting(snapshots, w.notices, disruption, now),
            Upkeep(snapshots, self._keepers, w.classes, now),
            Ordering(settings.cluster, snapshots, self._lookers(), now),
        ]

    def _lookers(self) -> list[Looker]:
        """What the look for orders consists of, beside owners, marks and expiry."""
        w, now, gates = self.world, self.now, self.settings.gates
        lookers: list[Looker] = [Collecting(w.cloud, w.notices, now)]
        if gates["NodeRepair"]:
            lookers.append(Repairing(w.catalogues, w.notices, now))
        if gates["StaticCapacity"]:
            lookers.append(Replicas(now))
        return lookers

    def _keepers(self) -> list[Keeper]:
        """Everything that upkeep looks after."""
        w, now = self.world, self.now
        overlays = [] if w.overlays is None else [OverlayKeeper(w.overlays, now)]
        buffers = [] if w.buffers is None else [BufferKeeper(w.buffers, now)]
        return [
            *overlays,
            *buffers,
            ClaimKeeper(w.claims, w.catalogues, now),
            PoolKeeper(w.pools, w.claims, w.catalogues, now),
            LabelKeeper(w.claims, w.nodes, now),
            ConsistencyKeeper(w.claims, w.notices, now),
            NoticeKeeper(w.notices, now),
        ]


def steps_of(*owners: object) -> list[Step]:
    """Every activity method of these objects."""
    return [
        method
        for owner in owners
        for _, method in inspect.getmembers(owner, inspect.ismethod)
        if hasattr(method, "__temporal_activity_definition")
    ]
