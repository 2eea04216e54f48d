"""Runs beside Karpenter, decides on the same cluster, and keeps its results only in memory.

Two loops, as in a worker that acts: one for waiting pods, one for nodes that may leave. A batch of pods is placed on
the cluster as it was before Karpenter made a claim for it, and compared when its pods run. There is no Scheduler:
nothing is nominated, and a plan that needs a second look counts once it has lasted that long.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.activities.shared.looks.decision_thread import DecisionThread, rest_after
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.shared.waits.cluster_changes import ClusterSleep
from dovetail.answers.shadow.comparing import Comparing, GoneClaim, LaunchedNode, ShadowReport, compared_launch
from dovetail.disruption.choose import Decision, decide
from dovetail.disruption.decision_snapshot import for_disruption
from dovetail.disruption.nodes.costs import claim_price
from dovetail.disruption.nodes.pod_movements import Movements
from dovetail.disruption.simulation.pricing import PriceBook
from dovetail.lifecycle.unplanned_claims import with_unplanned_as_nodes
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_terminal
from dovetail.model.objects.watched_kinds import PLACEMENT
from dovetail.model.places.placements import NewNode, Placement
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.placement.batching import BatchWindow
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.triggers import pending_uids
from dovetail.ports.failures import Failure
from dovetail.settings.deciding import disruption_settings, placement_settings
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

LOOK_SECONDS: Final = 0.2  # between two looks for waiting pods, while a batch is open
QUIET_SECONDS: Final = 0.1  # changes come in bursts
LONGEST_SECONDS: Final = 60.0  # between two looks, at most
TROUBLE_SECONDS: Final = 10.0  # after a failed look
BATCH_SECONDS: Final = 900.0  # after this long a batch is compared even if not all of its pods run
NOTE: Final = "kept in this worker's memory: it begins anew with the worker"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Waiting pods, and what Dovetail would have made for them. `known`: the claims that existed before."""

    at: float
    pods: frozenset[str]
    known: frozenset[str]
    names: tuple[str, ...]
    nodes: tuple[LaunchedNode, ...]


@dataclass(slots=True)
class Shadow:
    """Decides beside Karpenter, and compares."""

    settings: Settings
    world: World
    now: Callable[[], float] = time.time
    comparing: Comparing = field(init=False)
    _snapshots: Snapshots = field(init=False)
    _thread: DecisionThread = field(init=False)
    _movements: Movements = field(default_factory=Movements)
    _batches: list[_Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.comparing = Comparing(since=self.now())
        self._snapshots = Snapshots(self.world.view, self.world.catalogues)
        self._thread = DecisionThread(self.settings.search_limit)

    def listen(self) -> None:
        """Follow every claim that begins to leave. The calls come from the watch's thread."""
        loop = asyncio.get_running_loop()

        def heard(before: NodeClaim | None, after: NodeClaim | None) -> None:
            loop.call_soon_threadsafe(self._heard, before, after)

        self.world.view.cache.listen("NodeClaim", heard)

    def report(self) -> ShadowReport:
        return self.comparing.report(self.now(), (NOTE,))

    def close(self) -> None:
        self._thread.close()

    async def watch_nodes(self) -> None:
        """Decide about disruption, until cancelled."""
        sleep = ClusterSleep(self.world.view)
        while True:
            revision, began = self.world.view.revision(), self.now()
            try:
                next_due = await self._decide()
            except Failure as error:
                _log.warning("beside Karpenter: no decision could be made: %s", error)
                next_due = began + TROUBLE_SECONDS
            await asyncio.sleep(rest_after(self.now() - began))
            await sleep.until_changed(revision, min(next_due - self.now(), LONGEST_SECONDS), QUIET_SECONDS)

    async def _decide(self) -> float:
        """One decision; returns when to look again even if nothing has changed."""
        whole = self._movements.seen(await self._snapshots.whole(PLACEMENT))
        snapshot, settings = for_disruption(whole, {}, frozenset()), disruption_settings(self.settings)
        decision: Decision = await self._thread.run(lambda stop: decide(snapshot, settings, stop))
        now, choice = self.now(), decision.choice
        if isinstance(choice, DisruptionPlan):
            self.comparing.decided(choice.commands, choice.validate_after, now)
            return now + LONGEST_SECONDS
        self.comparing.decided((), 0.0, now)
        return choice.next_due if choice.next_due is not None else now + LONGEST_SECONDS

    async def watch_pods(self) -> None:
        """Place each batch of waiting pods, and compare it with what they got, until cancelled."""
        sleep = ClusterSleep(self.world.view)
        while True:
            revision = self.world.view.revision()
            try:
                await self._look_at_pods()
            except Failure as error:
                _log.warning("beside Karpenter: waiting pods could not be placed: %s", error)
                await asyncio.sleep(TROUBLE_SECONDS)
            await sleep.until_changed(revision, LONGEST_SECONDS, LOOK_SECONDS)

    async def _look_at_pods(self) -> None:
        snapshot = self._snapshots.objects(PLACEMENT)
        if any(self._is_over(batch, snapshot) for batch in self._batches):
            self._close(await self._snapshots.whole(PLACEMENT))
        if not self._new_pods(snapshot):
            return
        known, window = frozenset(snapshot.claims), BatchWindow(self.settings.batch_idle, self.settings.batch_max)
        while True:
            window.add(self._new_pods(self._snapshots.objects(PLACEMENT)), self.now())
            closes = window.closes()
            if closes is None or self.now() >= closes:
                break
            await asyncio.sleep(min(LOOK_SECONDS, closes - self.now()))
        await self._open(frozenset(window.seen), known)

    def _new_pods(self, snapshot: Snapshot) -> frozenset[str]:
        """The waiting pods that were in no batch yet, including those for which a claim is on its way."""
        seen = frozenset[str]().union(*[batch.pods for batch in self._batches])
        return pending_uids(replace(snapshot, claims={})) - seen

    async def _open(self, pods: frozenset[str], known: frozenset[str]) -> None:
        """What Dovetail would make for them, on the cluster without the claims made meanwhile."""
        whole = without_claims(await self._snapshots.whole(PLACEMENT), known)
        snapshot, settings = with_unplanned_as_nodes(whole), placement_settings(self.settings)

        def placed(should_stop: Callable[[], bool]) -> Placement:
            return plan_provisioning(snapshot, settings, should_stop)[1]

        placement = await self._thread.run(placed)
        prices = PriceBook(settings.well_known)
        made = [node for node in placement.new if any(pod.uid in pods for pod in node.pods)]
        self._batches.append(
            _Batch(
                at=self.now(),
                pods=pods,
                known=known,
                names=tuple(sorted(whole.pods[uid].key for uid in pods if uid in whole.pods)),
                nodes=tuple(_of_plan(node, prices) for node in made),
            )
        )

    def _close(self, snapshot: Snapshot) -> None:
        """Compare the batches whose pods have their nodes or have waited long enough."""
        for batch in [batch for batch in self._batches if self._is_over(batch, snapshot)]:
            self._batches.remove(batch)
            self.comparing.launched(compared_launch(batch.at, batch.names, batch.nodes, _made_for(batch, snapshot)))

    def _is_over(self, batch: _Batch, snapshot: Snapshot) -> bool:
        here = [snapshot.pods[uid] for uid in batch.pods if uid in snapshot.pods]
        waits = any(not pod.node_name and not is_terminal(pod) for pod in here)
        return not waits or self.now() - batch.at >= BATCH_SECONDS

    def _heard(self, before: NodeClaim | None, after: NodeClaim | None) -> None:
        """A claim has changed; `after` is None once it is gone."""
        claim = after or before
        if claim is None or (before is not None and before.deleting_since is not None):
            return
        if after is not None and (after.deleting_since is None or before is None):
            return
        mark = claim.condition(names.DISRUPTION_REASON)
        reason = mark.reason if mark is not None and mark.status == "True" else ""
        if not reason and claim.expires_at is not None and self.now() >= claim.expires_at:
            reason = DisruptionReason.EXPIRED.value
        pool = claim.labels.get(names.NODE_POOL, "")
        self.comparing.left(GoneClaim(claim=claim.name, node=claim.node_name, pool=pool, reason=reason), self.now())


def _made_for(batch: _Batch, snapshot: Snapshot) -> tuple[LaunchedNode, ...]:
    """The claims made since the batch began whose nodes have pods of it."""
    hosts = {snapshot.pods[uid].node_name for uid in batch.pods if uid in snapshot.pods}
    nodes = [snapshot.nodes[name] for name in sorted(hosts) if name in snapshot.nodes]
    types = {pool: {each.name: each for each in catalogue.types} for pool, catalogue in snapshot.catalogues.items()}
    return tuple(
        LaunchedNode(
            pool=claim.labels.get(names.NODE_POOL, ""),
            type=claim.labels.get(names.INSTANCE_TYPE, ""),
            price=claim_price(claim, types),
        )
        for node in nodes
        if (claim := snapshot.pairing.claim_of(node)) is not None and claim.name not in batch.known
    )


def without_claims(snapshot: Snapshot, known: frozenset[str]) -> Snapshot:
    """The cluster without any claims but these, and without the others' nodes."""
    late = [claim for claim in snapshot.claims.values() if claim.name not in known]
    nodes = {node.name for claim in late if (node := snapshot.pairing.node_of(claim)) is not None}
    return replace(
        snapshot,
        claims={name: claim for name, claim in snapshot.claims.items() if name in known},
        nodes={name: node for name, node in snapshot.nodes.items() if name not in nodes},
    )


def _of_plan(node: NewNode, prices: PriceBook) -> LaunchedNode:
    first = node.types[0].name if node.types else ""
    return LaunchedNode(pool=node.pool, type=first, price=prices.first_price(node.types, node.requirements) or None)
