"""Evicts the pods of a node, politely while there is time.

Second step of TerminateNode and ReleaseNode: one long wait that looks at the pods again and again, so that a restart
forgets nothing that matters (DUR-12). Before it answers "drained" it asks the API server itself. It ends early if the
instance is gone, because then its pods would never end (TRM-5). Its progress names what still holds the node.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from temporalio import activity

from dovetail.activities.shared.every_step.heartbeats import report
from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.shared.waits.repeated_looks import one_more_waits
from dovetail.activities.shared.writes.announcements import announce
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.await_detached import AwaitDetached
from dovetail.activities.termination.begin_and_end_departure import FORCEFUL
from dovetail.activities.termination.departing_nodes import nodes_left, nodes_there
from dovetail.activities.termination.drain_memory import DrainMemory
from dovetail.activities.termination.drain_requests import DrainRequests
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.evictor import Evictor
from dovetail.activities.termination.holds import Holds, LeavingClaim
from dovetail.activities.termination.mover import Mover, MoveTerms, NoMoves
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.lifecycle.initialization import is_ready
from dovetail.messages.outcomes import DrainOutcome
from dovetail.messages.subjects import Departure
from dovetail.model.names import DRAINED, PRE_DRAIN_HOOK, PRE_TERMINATE_HOOK
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.judging import Judging
from dovetail.model.own.drain_rules import Blocker
from dovetail.model.own.pauses import Activity
from dovetail.model.pods import Pod
from dovetail.model.reasons.endings import is_interrupted, warned_at
from dovetail.model.values.time import format_time
from dovetail.notices.claims import claim_deadline, unreadable_deadline
from dovetail.notices.faults import unjudged_notices
from dovetail.notices.nodes import failed_draining, node_deadline
from dovetail.notices.notice import Notice
from dovetail.notices.pods import protection_notice
from dovetail.ports.cloud import Cloud
from dovetail.ports.failures import Failure, NotReadable
from dovetail.ports.objects import NodeClaims, Nodes, Notices, Pods
from dovetail.ports.view import ClusterLookups, PauseLookups
from dovetail.termination import announced, timing
from dovetail.termination import deadline as of_node
from dovetail.termination.evictions import Evictions, plan_evictions
from dovetail.termination.forced import Deadlines, after_hooks, beyond_pods, forced_of
from dovetail.termination.hold_clocks import clocks_of
from dovetail.termination.hooks import words_of
from dovetail.termination.ladder import began_at, drain_reason
from dovetail.termination.owner_share import waits_for_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPorts:
    lookups: ClusterLookups
    claims: NodeClaims
    nodes: Nodes
    pods: Pods
    notices: Notices
    cloud: Cloud
    pauses: PauseLookups
    detaching: AwaitDetached
    mover: Mover | NoMoves
    holds: Holds
    repairs: LiveRepairs


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionLimits:
    """What all drains of the process share: how fast pods leave, and how many of one owner at once."""

    pace: EvictionPace
    turns: OwnerTurns


class DrainNode:
    """The wait for pods to leave."""

    def __init__(
        self,
        ports: DrainPorts,
        limits: EvictionLimits,
        now: Callable[[], float],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.lookups, self.nodes, self.pods = ports.lookups, ports.nodes, ports.pods
        self.requests = DrainRequests(
            ports.lookups, KnownClaims(ports.lookups, ports.claims), ports.nodes, ports.repairs
        )
        self.notices, self.cloud, self.pauses = ports.notices, ports.cloud, ports.pauses
        self.detaching, self.mover, self.holds = ports.detaching, ports.mover, ports.holds
        self.evictor = Evictor(ports.pods, ports.notices, limits.pace, now)
        self.turns = limits.turns
        self.now, self.pause = now, pause

    @activity.defn
    async def drain_node(self, departure: Departure) -> DrainOutcome:
        """Drain until nothing waits on any of the departure's nodes."""
        allowed = await self.requests.as_it_is(departure)
        memory = DrainMemory(started=self.now())
        with one_more_waits():
            try:
                return await self._drain(allowed, memory)
            finally:
                await memory.end()

    async def _drain(self, departure: Departure, memory: DrainMemory) -> DrainOutcome:
        while True:
            nodes = await self._seen_nodes(departure)
            if nodes == []:
                return DrainOutcome(message="the node is gone")
            if nodes is not None and await self._is_instance_lost(departure, nodes, memory):
                return DrainOutcome(message="the instance is gone", instance_gone=True)
            if nodes is None or not await self._sees_claim(departure, memory):
                continue
            deadlines, may_end = await self._deadlines(departure, memory), self._is_minimum_over(departure, memory)
            self._note_pause(departure, memory)
            memory.by_turns = _is_chosen(departure, memory) and all(is_ready(node) for node in nodes)
            memory.hooked = self._why_hooked(memory.claim, deadlines.node, memory)
            deadlines = deadlines if _lets_go(deadlines, memory) else replace(deadlines, forced=None)
            if memory.hooked and memory.claim is not None:
                deadlines = replace(deadlines, node=beyond_pods(memory.claim, deadlines.node))
            try:
                evictions = await self._evictions(nodes, deadlines, ask_server=may_end)
            except NotReadable as failure:
                await self._say_draining(nodes, departure, memory)
                await self._force_readable(nodes, departure, deadlines, memory)
                if deadlines.node is not None and self.now() > deadlines.node + timing.OVERDUE:
                    return DrainOutcome(message=f"the deadline has passed; one pod could not be read: {failure}")
                await self._wait_for_unreadable(departure, failure)
                continue
            waited_for = [node for node in nodes if evictions[node.name].waiting]
            await self._say_draining(waited_for, departure, memory)
            memory.last_pod = self.now() if waited_for else memory.last_pod
            moved = await self._end_moves(evictions, nodes, deadlines.first, memory)
            may_end = may_end and moved and not memory.hooked
            if may_end and not any(of_node.waiting for of_node in evictions.values()):
                return await self._drained(departure, memory)
            for node in nodes:
                left = await self._without_moved(node, evictions[node.name], departure, deadlines, memory)
                await self._carry_out(left, departure, deadlines, memory)
                await self._publish_slow_drain(node.name, evictions[node.name], memory)
            await self._look_at_holds(nodes, evictions, memory)
            report(memory.describe(evictions))
            await self.pause(memory.pause(self.now()))

    async def _seen_nodes(self, departure: Departure) -> list[Node] | None:
        """The nodes that exist; None where one cannot be read, which holds its pods until it can."""
        try:
            return await nodes_there(self.lookups, self.nodes, departure)
        except NotReadable as failure:
            await self._wait_for_unreadable(departure, failure)
            return None

    async def _sees_claim(self, departure: Departure, memory: DrainMemory) -> bool:
        """Whether its NodeClaim can be read, live where the cache lacks it. Until then it may have hooks, so no pod
        leaves, by force neither."""
        try:
            memory.claim = await self.requests.known.find(departure.claim)
        except NotReadable as failure:
            await self._wait_for_unreadable(departure, failure)
            return False
        return True

    async def _say_draining(self, nodes: Iterable[Node], departure: Departure, memory: DrainMemory) -> None:
        """Publish once on nodes that something holds; an empty one is drained a moment later."""
        for node in nodes:
            if node.uid not in memory.said:
                memory.said.add(node.uid)
                await announce(self.nodes, node, announced.draining(node, self.now(), departure.reason))

    async def _end_moves(
        self, evictions: Mapping[str, Evictions], nodes: Iterable[Node], deadline: float | None, memory: DrainMemory
    ) -> bool:
        """Whether no pod is being moved from these nodes any more. Once they are empty, a note alone is waited for only
        for a moment, as anybody may write one on a Deployment; and past the deadline no longer."""
        ended = [await self.mover.end(node, evictions[node.name].waiting, memory) for node in nodes]
        now = self.now()
        return all(ended) or now > memory.last_pod + timing.MOVE_END or (deadline is not None and now > deadline)

    async def _without_moved(
        self, node: Node, evictions: Evictions, departure: Departure, deadlines: Deadlines, memory: DrainMemory
    ) -> Evictions:
        """The evictions without the pods that leave by a roll-out of their Deployment, or that their owner holds."""
        terms = MoveTerms(
            node=node,
            pool=departure.claim.pool,
            deadline=deadlines.first,
            urgent=not memory.by_turns,
            may_leave=partial(self._may_leave, departure, deadlines, memory),
        )
        return replace(evictions, evict=await self.mover.look(evictions.evict, terms, memory))

    async def _drained(self, departure: Departure, memory: DrainMemory) -> DrainOutcome:
        """End the drain. Most nodes have no volume left to wait for: then one request says both. On an empty node that
        a disruption takes and nothing holds, nothing is written: its instance ends with the next step."""
        is_held = not departure.is_final or await self.detaching.is_held(departure)
        waited = is_held or bool(memory.said) or departure.reason == FORCEFUL or _is_hooked_later(memory.claim)
        for node in self._nodes(departure):
            if waited or announced.says_anything(node):
                await announce(self.nodes, node, announced.drained(node, self.now()))
        if is_held:
            return DrainOutcome(message="drained")
        if departure.hands_over:
            return DrainOutcome(message="drained, volumes are off", detached=True, unwritten=True)
        writes = await self.detaching.say_detached(departure)
        return DrainOutcome(message="drained, volumes are off", detached=True, writes=writes)

    def _nodes(self, departure: Departure) -> list[Node]:
        """The nodes in the cache, without another Node that has got the same name since: its pods stay."""
        return nodes_left(self.lookups, departure)

    async def _evictions(
        self, nodes: Iterable[Node], deadlines: Deadlines, *, ask_server: bool
    ) -> Mapping[str, Evictions]:
        """The evictions by the cache; if that shows no pod any more, by the API server, before "drained" is
        answered."""
        cached = {node.name: self._planned(self.lookups.pods_on(node.name), deadlines) for node in nodes}
        if any(of_node.waiting for of_node in cached.values()) or not ask_server:
            return cached
        return {node.name: await self._live_evictions(node, deadlines) for node in nodes}

    def _planned(self, pods: tuple[Pod, ...], deadlines: Deadlines) -> Evictions:
        return plan_evictions(pods, deadlines.node, self.now(), deadlines.of_force)

    async def _live_evictions(self, node: Node, deadlines: Deadlines) -> Evictions:
        """The evictions by the API server. Pods that only it shows may be those of another Node that has just taken the
        name."""
        found = self._planned(await self.pods.list_on(node.name), deadlines)
        live = await self.nodes.read(node.name) if found.waiting else node
        return found if live is not None and live.uid == node.uid else Evictions()

    async def _force_readable(
        self, nodes: Iterable[Node], departure: Departure, deadlines: Deadlines, memory: DrainMemory
    ) -> None:
        """Delete the pods that can be read in time for the node's deadline: it ends the instance also where another one
        cannot be read, and they would go with it without any grace."""
        if deadlines.node is None:
            return
        for node in nodes:
            pods = tuple([pod for pod in self.lookups.all_pods() if pod.node_name == node.name])
            due = plan_evictions(pods, deadlines.node, self.now()).force
            await self._carry_out(Evictions(force=due), departure, deadlines, memory)

    async def _wait_for_unreadable(self, departure: Departure, failure: NotReadable) -> None:
        """What cannot be read may say that a pod must not leave: nothing is evicted beside it."""
        report(f"waiting for what cannot be read: {failure}")
        await self.notices.publish(*[failed_draining(node, str(failure)) for node in self._nodes(departure)])
        await self.pause(timing.UNREADABLE_LOOK)

    async def _carry_out(
        self, evictions: Evictions, departure: Departure, deadlines: Deadlines, memory: DrainMemory
    ) -> None:
        """Everything that is due, side by side."""
        now, pool, reason = self.now(), departure.claim.pool, departure.reason
        may_leave = partial(self._may_leave, departure, deadlines, memory)
        self._look_at_budgets(evictions, memory)
        asked = () if memory.paused or memory.hooked else evictions.evict
        due = [pod for pod in asked if memory.is_due(pod, now) and self._has_turn(pod, deadlines.first, memory)]
        for pod in due:
            memory.begin(pod, self.evictor.evict(pod, memory.request(pod, pool, reason), may_leave))
        by_when = [(pod, deadlines.node) for pod in evictions.force] + [(pod, None) for pod in evictions.let_go]
        for pod, deadline in by_when:
            if memory.is_due_by_force(pod, now):
                memory.forced.add(pod.uid)
                self.turns.take(pod, waits=False)
                memory.begin(pod, self.evictor.force(pod, deadline, reason))
        for pod, outcome in await memory.answers():
            memory.note(pod, outcome, self.now())
            if not outcome.leaving:
                self.turns.give_back(pod)
        judging = Judging()
        notices = [judging.judge(pod, "notice", protection_notice, pod, now) for pod in evictions.waiting]
        published = [notice for notice in notices if isinstance(notice, Notice)]
        await self.notices.publish(*published, *unjudged_notices(evictions.unjudged))

    async def _may_leave(self, departure: Departure, deadlines: Deadlines, memory: DrainMemory, pod: Pod) -> bool:
        """Whether the pod may be asked to leave now that its turn of the pace has come. Since the look a person may
        have protected it, paused drains or put a hook on the claim; where one of them cannot be read, the next look
        decides."""
        try:
            claim = await self.requests.known.find(departure.claim)
            pods = self.lookups.pods_on(pod.node_name)
        except Failure:
            return False
        self._note_pause(departure, memory)
        if memory.paused or memory.hooked or self._why_hooked(claim, deadlines.node, memory):
            return False
        newest = next((each for each in pods if each.uid == pod.uid), pod)
        return bool(self._planned((newest,), deadlines).evict)

    def _look_at_budgets(self, evictions: Evictions, memory: DrainMemory) -> None:
        """Evict pods that a PDB blocked again as soon as it allows that."""
        judging = Judging()
        for pod in evictions.evict:
            budgets = self.lookups.budgets_in(pod.namespace)
            judging.judge(pod, "budgets", memory.look_at_budgets, pod, budgets, self.now())

    def _has_turn(self, pod: Pod, deadline: float | None, memory: DrainMemory) -> bool:
        """Whether few enough pods of its owner are on their way; the pod then counts as one of them."""
        now = self.now()
        waits = memory.by_turns and waits_for_turn(pod, deadline, memory.asked.setdefault(pod.uid, now), now)
        why = self.turns.take(pod, waits=waits)
        if why:
            memory.hold(pod, why, now)
        return not why

    def _note_pause(self, departure: Departure, memory: DrainMemory) -> None:
        """Note what a pause of drains holds: all evictions of a drain that a disruption of ours began, also on a node
        that is not ready; of others only the pods that a force lets go, unless the instance is about to be lost."""
        pause = self._why_paused(departure)
        memory.paused = pause if _is_chosen(departure, memory) else ""
        is_lost = memory.claim is not None and is_interrupted(memory.claim)
        memory.force_paused = bool(pause) and not is_lost

    def _why_paused(self, departure: Departure) -> str:
        """Why drains pause. Between two evictions it is safe: a pod that was asked to leave leaves, and the deadline
        holds. Before the watch has shown pauses and Freezes, nobody knows whether there is one."""
        try:
            pause = self.pauses.pause_on(departure.claim.pool, Activity.DRAINS)
        except Failure as failure:
            return f"it is not known whether drains are paused: {failure}"
        return pause.announces(Activity.DRAINS) if pause is not None else ""

    def _why_hooked(self, claim: NodeClaim | None, deadline: float | None, memory: DrainMemory) -> str:
        """The pre-drain hooks that hold it. Once the claim is deleted, it carries the moment from which they are waited
        for."""
        if claim is None:
            return ""
        clock = clocks_of(claim, began_at(claim)).get(Blocker.HOOK_WAITS)
        since = claim.deleting_since or (clock.since if clock is not None else memory.started)
        hooks = self.holds.hooks(claim, PRE_DRAIN_HOOK, since, deadline)
        return f"waiting for {words_of(hooks)}" if hooks else ""

    async def _look_at_holds(
        self, nodes: Iterable[Node], evictions: Mapping[str, Evictions], memory: DrainMemory
    ) -> None:
        claim = memory.claim
        if claim is None:
            return
        hold = memory.held_by(evictions.values(), drain_reason(claim), self.now())
        held = LeavingClaim(claim=claim, began=began_at(claim), nodes=tuple(nodes), hold=hold)
        await self.holds.look(held, memory.holds)

    async def _deadlines(self, departure: Departure, memory: DrainMemory) -> Deadlines:
        """The deadline that was fixed at the start; an earlier one that was written since counts, a later one does not
        (DUR-30). And what forces the drain, if something does."""
        claim = memory.claim
        if claim is None:
            return Deadlines(node=departure.deadline)
        unreadable = of_node.unreadable_deadline(claim)
        if unreadable is not None:
            await self.notices.publish(unreadable_deadline(claim, unreadable))
        deadline = of_node.tighter(departure.deadline, of_node.written_deadline(claim))
        if deadline is not None:
            moment = format_time(deadline)
            on_nodes = [node_deadline(node, moment) for node in self._nodes(departure)]
            await self.notices.publish(claim_deadline(claim, moment), *on_nodes)
        return Deadlines(node=after_hooks(claim, deadline, self.now()), forced=forced_of(claim))

    def _is_minimum_over(self, departure: Departure, memory: DrainMemory) -> bool:
        """TRM-17: three seconds since the taint, otherwise since the claim's condition. A node without a claim waits
        for nothing (TRM-10)."""
        if not departure.claim.uid:
            return True
        condition = None if memory.claim is None else memory.claim.condition(DRAINED)
        if condition is not None and condition.status == "True":
            return True
        written = memory.started if condition is None else condition.changed
        since = written if departure.tainted is None else departure.tainted
        memory.minimum_over = since + timing.MINIMUM_DRAIN
        return self.now() >= memory.minimum_over

    async def _is_instance_lost(self, departure: Departure, nodes: Iterable[Node], memory: DrainMemory) -> bool:
        """TRM-5, as long as the drain lasts. NotReady alone is not enough: the cloud must say that it is gone."""
        if not departure.provider_id or any(is_ready(node) for node in nodes):
            return False
        if self.now() - memory.instance_looked < timing.INSTANCE_LOOK:
            return False
        memory.instance_looked = self.now()
        try:
            return await self.cloud.find(provider_id=departure.provider_id) is None
        except Failure as failure:
            report(f"the node is not ready, and the cloud does not say whether its instance is there: {failure}")
            return False

    async def _publish_slow_drain(self, name: str, evictions: Evictions, memory: DrainMemory) -> None:
        """EVT-3, once a drain takes longer than a normal one."""
        node = self.lookups.node(name)
        if node is None or not evictions.waiting or self.now() - memory.started < timing.SLOW_DRAIN:
            return
        await self.notices.publish(failed_draining(node, memory.why_held or _waiting(len(evictions.waiting))))


def _lets_go(deadlines: Deadlines, memory: DrainMemory) -> bool:
    """Whether pods leave a drain that is forced: not while a person pauses drains, nor while a hook holds it that the
    force was not meant for."""
    forced = deadlines.forced
    if memory.force_paused:
        return False
    return not memory.hooked or (forced is not None and forced.ends_hooks(PRE_DRAIN_HOOK))


def _is_chosen(departure: Departure, memory: DrainMemory) -> bool:
    """Whether a disruption of ours began the drain, and has prepared room for the pods: not if somebody deletes the
    node, or if the instance is about to be lost. Its pods leave by turns, unless they serve nobody because their node
    is not ready."""
    interrupted = memory.claim is not None and warned_at(memory.claim) is not None
    return departure.reason != FORCEFUL and not interrupted


def _is_hooked_later(claim: NodeClaim | None) -> bool:
    return claim is not None and any(key.startswith(PRE_TERMINATE_HOOK) for key in claim.annotations)


def _waiting(count: int) -> str:
    return "1 pod is waiting to be evicted" if count == 1 else f"{count} pods are waiting to be evicted"
