"""Waits for pending pods and plans nodes for them.

One long step: wait until the cache shows our own writes and the last plan's claims are launched, gather a batch, take a
snapshot, place the pods, and return only a plan that has something to carry out. Pods that cannot be placed get a
notice, and are tried again with the next new pod or after ten seconds (PLC-1).
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from temporalio import activity

from dovetail.activities.provisioning.choosy_pods import ChoosyPods
from dovetail.activities.provisioning.placement_publisher import PlacementPublisher
from dovetail.activities.provisioning.refused_claims import Asks, RefusedClaims, Trial
from dovetail.activities.shared.every_step.heartbeats import report
from dovetail.activities.shared.looks.decision_thread import DecisionThread
from dovetail.activities.shared.looks.flights import DecisionFollowers
from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.shared.waits.cluster_changes import ClusterSleep, quiet_after, until_seen
from dovetail.activities.shared.waits.sight import Sight
from dovetail.lifecycle.unplanned_claims import unplanned_claims, with_unplanned_as_nodes
from dovetail.messages.outcomes import NothingPlanned, ProvisioningAnswer
from dovetail.messages.plans import ProvisioningPlan, nomination_seconds
from dovetail.messages.requests import ProvisioningRequest
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.watched_kinds import CLAIMS, PLACEMENT, SELECTORS
from dovetail.model.snapshot import Snapshot
from dovetail.placement.batching import BatchWindow
from dovetail.placement.buffers.verdicts import for_real_pods
from dovetail.placement.held_pools import with_refused_pools
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import PlacementSettings
from dovetail.placement.triggers import STANDING_ON, Tried, asking, room_of, standing, unpromised
from dovetail.ports.objects import NodeClaims
from dovetail.telemetry.log import arrivals

READS = PLACEMENT
NONE: Final[Mapping[str, str]] = MappingProxyType({})

RETURN_SECONDS = 3600.0  # after this the Scheduler asks again, and may go on with a new version of the worker
LAUNCH_SECONDS = 10.0  # a plan waits this long for the last plan's claims, and for unplanned claims
LOOK_SECONDS = 0.1  # between two looks at changes, at least; longer where one takes long


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisioningSettings:
    """How batches are gathered and pods are placed."""

    placement: PlacementSettings
    idle: float
    longest: float
    claims: NodeClaims  # asked whether they would take what they refused
    seconds: float  # how long a pass may take


class AwaitProvisioningPlan:
    """The step that the provisioning loop waits for."""

    def __init__(
        self,
        snapshots: Snapshots,
        publisher: PlacementPublisher,
        settings: ProvisioningSettings,
        now: Callable[[], float],
        followers: DecisionFollowers,
    ) -> None:
        self.snapshots = snapshots
        self.view, self.catalogues = snapshots.view, snapshots.catalogues
        self.publisher = publisher
        self.settings = settings
        self.now = now
        # The selectors of Services and the like are read for the default spread of pods alone.
        self.reads = READS | SELECTORS if settings.placement.default_spread else READS
        self.thread = DecisionThread(settings.seconds)
        self.decisions, self.flights = followers.decisions, followers.flights
        self.choosy = ChoosyPods()
        self.refused = RefusedClaims(settings.claims, now)
        self.standing = LastAnswer(STANDING_ON, standing)
        self.took = 0.0  # seconds, by the last pass
        self.late: frozenset[str] = frozenset()  # pods that the last pass had no time for: the next begins with them

    @activity.defn
    async def await_provisioning_plan(self, request: ProvisioningRequest) -> ProvisioningAnswer:
        """The next plan with something to carry out, or nothing after an hour."""
        until, sight = self.now() + RETURN_SECONDS, Sight(("Pod",))
        self._asking(sight)
        await until_seen(self.view, request.must_see, request.must_see_until, self.now())
        await self._await_launches(request)
        tried = self._tried(request)
        while self.now() < until:
            batch = await self._gather(tried, until, sight)
            if not batch.all:
                break
            sight.works()
            await self._await_unplanned_claims()
            objects = self.snapshots.objects(self.reads)
            room = room_of(objects, self.standing.of(objects))
            if self.settings.placement.respects_preferences:
                self.choosy.say([objects.pods[uid] for uid in batch.pods if uid in objects.pods], self.now())
            plan = await self.without_refused()
            if plan.proposed:
                arrivals.computed(plan.proposed, self.took)
            news = set(plan.nominated) - set(request.nominated) or plan.claim_refusals != request.claim_refusals
            if plan.proposed or news:
                return plan
            sight.answered()
            tried = replace(batch, room=room)
        return NothingPlanned()

    async def without_refused(self) -> ProvisioningPlan:
        """The plan without claims that would be refused. If nothing else is left, a plan for what other pools can
        take."""
        refused = self.refused
        if not (refused.pods or refused.count()):
            return await self.plan()
        whole = with_unplanned_as_nodes(await self.snapshots.whole(self.reads))
        asks = Asks({uid: p for uid, p in whole.pods.items() if not p.node_name}, whole.pools, self._trial(whole))
        await refused.ask_again(asks)
        plan = await self.plan(held=refused.held(asks.pending))
        while await refused.look(plan, asks):
            plan = await self.plan(held=refused.held(asks.pending))
        kept, known = refused.without_doubtful(plan), -1
        while not kept.proposed and refused.count() > known:
            known = refused.count()
            for stopped, held in refused.groups(refused.held(asks.pending)):
                plan = await self.plan(stopped, held)
                await refused.look(plan, asks)
                kept = refused.without_doubtful(plan)
                if kept.proposed:
                    break
        return replace(kept, claim_refusals=refused.remembered())

    def _trial(self, whole: Snapshot) -> Trial:
        """Plan as if these were the only pending pods, without publishing anything."""

        async def trial(only: frozenset[str]) -> ProvisioningPlan:
            pods = {uid: pod for uid, pod in whole.pods.items() if pod.node_name or uid in only}
            alone, settings = replace(whole, pods=pods), self.settings.placement
            plan, _ = await self.thread.run(lambda stop: plan_provisioning(alone, settings, stop))
            return self._handed_out(plan)

        return trial

    def _tried(self, request: ProvisioningRequest) -> Tried:
        """The pods that are tried again only after a pause, because their claims have just been refused; not those for
        which dry runs find the reason."""
        pods = frozenset(request.refused_pods) - self.refused.begin(request)
        if not pods:
            return Tried()
        objects = self.view.snapshot()
        return Tried(pods=pods, room=room_of(objects, standing(objects)))

    async def _await_launches(self, request: ProvisioningRequest) -> None:
        """Wait until the last plan's claims are launched or gone, 10 s at most: once launched, they are capacity."""
        deadline, sleep = request.launching_since + LAUNCH_SECONDS, ClusterSleep(self.view)
        while self.now() < deadline:
            revision = self.view.revision()
            claims = self.view.snapshot(CLAIMS).claims
            if not any(_unlaunched(claims.get(c.name), c.uid) for c in request.launching):
                return
            report("waiting for the last plan's claims to be launched")
            await sleep.until_changed(revision, deadline - self.now())

    async def _await_unplanned_claims(self) -> None:
        """Wait until claims that no plan of ours made are launched or gone, 10 s at most: nothing says which pods they
        are for. Once launched, they are capacity; one that takes longer counts with the room that it requests."""
        deadline, sleep = self.now() + LAUNCH_SECONDS, ClusterSleep(self.view)
        while self.now() < deadline:
            revision = self.view.revision()
            supported = self.catalogues.supported_classes()
            if not unplanned_claims(replace(self.view.snapshot(READS), supported_node_classes=supported)):
                return
            report("waiting for unplanned claims to be launched")
            await sleep.until_changed(revision, deadline - self.now())

    def _asking(self, sight: Sight) -> Tried:
        objects = self.snapshots.objects(self.reads)
        found = asking(objects, self.standing.of(objects))
        sight.sees(unpromised(objects, found.pods | found.leaving), objects.seen)
        return found

    async def _gather(self, tried: Tried, until: float, sight: Sight) -> Tried:
        """A batch of pending pods and buffers. Those that were just tried open a window only after a pause, or if the
        room may have changed: a pool that is ready now, another node, a pod in the room of a buffer."""
        window = BatchWindow(idle=self.settings.idle, longest=self.settings.longest)
        again, sleep = self.now() + tried.again_after(), ClusterSleep(self.view)
        while self.now() < until:
            revision, began = self.view.revision(), time.thread_time()
            found = self._asking(sight)
            rest, now = quiet_after(time.thread_time() - began, LOOK_SECONDS), self.now()
            self.decisions.acknowledge(found.pods, now)
            if now >= again or found.all - tried.all or found.room != tried.room:
                window.add(found.all, now)
            closes = window.closes()
            if closes is not None and now >= closes:
                return replace(found, pods=frozenset(window.seen) - found.buffers - found.leaving)
            if closes is None:
                sight.answered()
            report(f"{len(found.pods)} pods pending, {len(found.leaving)} on leaving nodes")
            wait = min(until, closes if closes is not None else until, again if again > now else until) - now
            await sleep.until_changed(revision, wait)
            await asyncio.sleep(rest if closes is None else min(rest, max(closes - self.now(), 0.0)))
        return Tried()

    async def plan(self, refusals: Mapping[str, str] = NONE, held: Mapping[str, str] = NONE) -> ProvisioningPlan:
        """Snapshot and placement; notices are published beside. `refusals`: pools that get no claims now, `held`: pods
        that get no new node."""
        snapshot = with_refused_pools(with_unplanned_as_nodes(await self.snapshots.whole(self.reads)), refusals)
        snapshot = replace(snapshot, refused_pods=held) if held else snapshot
        settings = self.settings.placement
        began = self.now()
        late = self.late
        with self.decisions.under_way():
            plan, placement = await self.thread.run(lambda stop: plan_provisioning(snapshot, settings, stop, late))
        self.flights.decided("provisioning", snapshot, plan, late)
        self.late = placement.late
        self.took = self.now() - began
        self.decisions.record(for_real_pods(placement), self.took, self.now())
        if refusals in (NONE, self.refused.pools):  # else it is about pods refused alone
            self.publisher.publish_beside(snapshot, placement)
        return self._handed_out(plan)

    def _handed_out(self, plan: ProvisioningPlan) -> ProvisioningPlan:
        nominate_for = nomination_seconds(self.settings.longest)
        return replace(plan, seen=plan.seen.ready(self.now()), nominate_for=nominate_for)


def _unlaunched(claim: NodeClaim | None, uid: str) -> bool:
    return claim is not None and claim.uid == uid and not claim.is_true(names.LAUNCHED) and not claim.deleting_since
