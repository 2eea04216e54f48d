"""Times what holds a drain, publishes what a policy says is due, and carries out what a person decides.

Each step that waits while a node leaves looks at it. Everything that matters is stored on the NodeClaim, each change
written at the version that it was decided on: a worker that comes back, or two workers, publish nothing twice. A step
never fails because of this; what could not be written is written by the next look.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from dovetail.activities.shared.writes.revisions import revise_claim
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.own.claim_memory import memory_of, remembering
from dovetail.model.own.drain_rules import Blocker, DrainRules, Level
from dovetail.model.own.held_drains import Forced, HeldDrain, HeldSince
from dovetail.model.own.pauses import Activity
from dovetail.model.pods import Pod
from dovetail.model.values.time import format_time
from dovetail.notices.cancels import cancel_too_late
from dovetail.notices.holds import decided, denied_too_late, drain_asks, drain_forced, drain_held, not_decided
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Failure
from dovetail.ports.objects import MetadataChange, NodeClaims, Notices, Pods
from dovetail.ports.view import DrainLookups, PauseLookups
from dovetail.telemetry.metrics.ours.holds import escalated
from dovetail.termination.evictions import plan_evictions
from dovetail.termination.forced import forced_for, forced_of, hooks_that_hold, with_forced
from dovetail.termination.hold_clocks import Clocks, Sightings, clock_of, clocks_of, settled, with_level
from dovetail.termination.hooks import Hook, denial
from dovetail.termination.ladder import (
    AFTER_THE_PODS,
    Decision,
    DrainHold,
    asked_about,
    coming,
    decision_of,
    forced_deadline,
    forced_through,
    ladder_words,
    may_be_protected,
    steps,
)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class HoldMemory:
    """What holds it, as one attempt of a step has seen it; `words`: what happens next, for people."""

    seen: Sightings = field(default_factory=Sightings)
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingClaim:
    """A claim that leaves: since when this part of its departure lasts, its Nodes, and what holds it now; None where
    nothing does that takes a while, as between an eviction and its news."""

    claim: NodeClaim
    began: float | None
    nodes: tuple[Node, ...] = ()
    hold: DrainHold | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPorts:
    """What it reads and writes. `pods`: what a force concerns is read live, since it cannot be undone."""

    claims: NodeClaims
    pods: Pods
    notices: Notices
    lookups: DrainLookups
    pauses: PauseLookups


class Holds:
    def __init__(self, ports: HoldPorts, now: Callable[[], float]) -> None:
        self.claims, self.pods, self.notices, self.lookups = ports.claims, ports.pods, ports.notices, ports.lookups
        self.pauses, self.now = ports.pauses, now

    def hooks(self, claim: NodeClaim, prefix: str, since: float, deadline: float | None) -> tuple[Hook, ...]:
        """The hooks of that kind that hold the claim now. `deadline`: of the node's pods."""
        if not any(key.startswith(prefix) for key in claim.annotations):
            return ()
        return hooks_that_hold(claim, prefix, (since, deadline), self._rules(claim), self.now())

    async def look(self, held: LeavingClaim, memory: HoldMemory) -> None:
        memory.words = ""
        memory.seen.look(held.hold.blockers if held.hold is not None else (), self.now())
        try:
            await self._deny(held)
            decision = decision_of(held.claim)
            if decision is not None and clock_of(held.claim, held.began) is not None:
                await self._decide(held, decision)
            else:
                await self._climb(held, memory)
        except Failure as failure:
            _log.warning("NodeClaim %s: could not write what holds its drain: %s", held.claim.name, failure)

    def _rules(self, claim: NodeClaim) -> tuple[DrainRules, ...]:
        """The policies' rules; None while they cannot be seen: then nothing is forced, and a hook holds."""
        try:
            return self.lookups.drain_rules(claim.labels.get(names.NODE_POOL, ""))
        except Failure:
            return ()

    def _is_paused(self, claim: NodeClaim) -> bool:
        """Whether a person pauses drains, in whatever step the node is; also while nobody knows."""
        try:
            pool = claim.labels.get(names.NODE_POOL, "")
            return self.pauses.pause_on(pool, Activity.DRAINS) is not None
        except Failure:
            return True

    async def _climb(self, held: LeavingClaim, memory: HoldMemory) -> None:
        now, rules, hold = self.now(), self._rules(held.claim), held.hold
        clocks = clocks_of(held.claim, held.began)
        if _settled(clocks, held, rules, memory.seen, now) != clocks:
            await self._settle(held, rules, memory.seen)
            return
        clock = clocks.get(hold.blocker) if hold is not None else None
        if hold is None or clock is None or clock.left is not None:
            return
        ladder, waits_until = steps(rules, hold), memory_of(held.claim.annotations).held.waits_until
        memory.words = ladder_words(clock, ladder, waits_until)
        due = [level for moment, level in coming(clock, ladder, waits_until) if moment <= now]
        if due and self._is_paused(held.claim):
            return
        for level in due:
            forced = await self._meant(held, hold, rules) if level is Level.FORCE else None
            if level is Level.FORCE and forced is None:
                continue
            reached = await self._reach(held, hold, level, forced)
            if reached is not None:
                escalated(level)
                await self.notices.publish(*self._notices(replace(held, claim=reached), hold, level, memory.words))

    async def _meant(self, held: LeavingClaim, hold: DrainHold, rules: Sequence[DrainRules]) -> Forced | None:
        """What the policies force, by the pods that are live now; None where one of these is not meant."""
        pods = await self._left_on(held.nodes)
        through = forced_through(rules, replace(hold, protected=may_be_protected(pods, self.now())))
        return Forced(deadline=forced_deadline(pods, self.now()), through=through) if through else None

    async def _left_on(self, nodes: Iterable[Node]) -> tuple[Pod, ...]:
        """The pods that must still leave. A Failure where one cannot be read, or nobody answers: then nothing is forced
        yet."""
        found = [plan_evictions(await self.pods.list_on(node.name), None, self.now()) for node in nodes]
        return tuple(pod for of_node in found for pod in of_node.waiting)

    async def _settle(self, held: LeavingClaim, rules: Sequence[DrainRules], seen: Sightings) -> None:
        """Write the clocks. A decision from before the first of them does not answer it: that decision might be a year
        old. An Event says that it is not carried out."""
        refused: Decision | None = None
        found: Clocks = {}

        def change(live: NodeClaim) -> MetadataChange | None:
            nonlocal refused, found
            known = clocks_of(live, held.began)
            refused, found = None, _settled(known, held, rules, seen, self.now())
            if found == known:
                return None
            refused = decision_of(live) if not known else None
            stale = {} if known else dict.fromkeys((names.DECISION, names.DECISION_BY))
            return MetadataChange(annotations={**_written(live, memory_of(live.annotations).held, found), **stale})

        claim = await revise_claim(self.claims, held.claim, change)
        if claim is not None and refused is not None:
            why = f"it is from before {' and '.join(each.words for each in found)} held the node: decide anew"
            await self.notices.publish(not_decided(claim, refused.words, why))

    async def _reach(
        self, held: LeavingClaim, hold: DrainHold, level: Level, forced: Forced | None
    ) -> NodeClaim | None:
        """The claim with the next level written, if this look wrote it and so may publish it."""
        wrote = False

        def change(live: NodeClaim) -> MetadataChange | None:
            nonlocal wrote
            clocks = clocks_of(live, held.began)
            clock = clocks.get(hold.blocker)
            wrote = clock is not None and clock.left is None and level not in clock.levels
            if not wrote:
                return None
            known = memory_of(live.annotations).held if forced is None else with_forced(live, forced)
            return MetadataChange(annotations=_written(live, known, with_level(clocks, hold.blocker, level)))

        found = await revise_claim(self.claims, held.claim, change)
        return found if wrote else None

    def _notices(self, held: LeavingClaim, hold: DrainHold, level: Level, words: str) -> Iterable[Notice]:
        words = f"{words}: {hold.says}" if hold.says else words
        match level:
            case Level.NOTIFY:
                return drain_held(held.nodes, hold.held, words)
            case Level.ASK:
                return drain_asks(held.nodes, held.claim, words)
            case Level.FORCE:
                forced = forced_of(held.claim)
                return drain_forced(
                    held.nodes, words, forced.words(rebooting=held.claim.is_rebooting) if forced is not None else ""
                )

    async def _deny(self, held: LeavingClaim) -> None:
        """Publish that a hook denies too late, once the claim is deleted. Before that, upkeep calls the disruption off,
        as for a cancel."""
        hook = denial(held.claim)
        if hook is not None and held.claim.deleting_since is not None:
            await self.notices.publish(denied_too_late(held.claim, hook.words))

    async def _decide(self, held: LeavingClaim, decision: Decision) -> None:
        """Remove the answer together with writing what follows from it; an Event says what that is. A force waits until
        the pods that it concerns are known."""
        said: Notice | None = None
        pods = await self._left_on(held.nodes) if decision.do == "force" else ()

        def change(live: NodeClaim) -> MetadataChange | None:
            nonlocal said
            said = None
            if decision_of(live) != decision:
                return None
            annotations, said = self._follows(live, held, decision, pods)
            return MetadataChange(annotations={names.DECISION: None, names.DECISION_BY: None, **annotations})

        found = await revise_claim(self.claims, held.claim, change)
        if found is not None and said is not None:
            await self.notices.publish(said)

    def _follows(
        self, claim: NodeClaim, held: LeavingClaim, decision: Decision, pods: tuple[Pod, ...]
    ) -> tuple[dict[str, str | None], Notice]:
        clock = clock_of(claim, held.began)
        match decision.do:
            case "wait" if (forced := forced_of(claim)) is not None and _goes_on(forced, clock, self.now()):
                return {}, not_decided(
                    claim,
                    decision.words,
                    f"its drain is forced, which is not taken back: {forced.words(rebooting=claim.is_rebooting)}",
                )
            case "wait":
                until = self.now() + decision.seconds
                end, clocks = format_time(until), clocks_of(claim, held.began)
                if clock is not None:
                    clocks[clock.blocker] = replace(clock, levels=clock.levels - {Level.ASK})
                said = _written(claim, replace(memory_of(claim.annotations).held, waits_until=until), clocks)
                return said, decided(claim, decision.words, f"nothing more is done before {end}")
            case "cancel" if claim.deleting_since is None:
                order = {names.CANCEL: "decided: cancel", names.CANCEL_BY: decision.by or None}
                return order, decided(claim, decision.words, "its disruption is called off")
            case "cancel":
                return {}, cancel_too_late(claim, decision.words)
            case "force":
                return self._force(claim, held, decision, pods)
            case _:
                return {}, not_decided(claim, decision.words, "it is none of force, wait 6h and cancel")

    def _force(
        self, claim: NodeClaim, held: LeavingClaim, decision: Decision, pods: tuple[Pod, ...]
    ) -> tuple[dict[str, str | None], Notice]:
        """It is meant for what the person was asked about and for what they name. It does not end a wait for hooks or
        volumes that has begun since the question."""
        clock, holds = clock_of(claim, held.began), held.hold.blockers if held.hold is not None else frozenset()
        through = decision.through | asked_about(clock)
        if may_be_protected(pods, self.now()):
            why = f"a pod asks not to be disrupted: take {names.DO_NOT_DISRUPT} off it"
            return {}, not_decided(claim, decision.words, why)
        if self._is_paused(claim):
            return {}, not_decided(claim, decision.words, "drains are paused: `dovetail resume drains` comes first")
        unasked = [blocker for blocker in AFTER_THE_PODS if blocker in holds and blocker not in through]
        if unasked:
            return {}, not_decided(
                claim, decision.words, f"it is held now by {unasked[0].words}: `force {unasked[0]}` is meant for that"
            )
        deadline, meant = forced_deadline(pods, self.now()), through & (holds | decision.through)
        hooks_named = Blocker.HOOK_WAITS in decision.through
        forced = forced_for(held.hold, deadline, meant, hooks_named=hooks_named)
        clocks, words = clocks_of(claim, held.began), forced.words(rebooting=claim.is_rebooting)
        clocks = with_level(clocks, clock.blocker, Level.FORCE) if clock is not None else clocks
        return _written(claim, with_forced(claim, forced), clocks), decided(claim, decision.words, words)


def _settled(clocks: Clocks, held: LeavingClaim, rules: Sequence[DrainRules], seen: Sightings, now: float) -> Clocks:
    """The clocks as they are to be written. Without a ladder nothing is, but of a hook, and of a pause beside it."""
    if held.began is None:
        return clocks
    found = settled(clocks, seen, held.began, now)
    if any(each.escalation for each in rules):
        return found
    meant = {Blocker.HOOK_WAITS, *clocks, *([Blocker.PAUSED] if clocks else [])}
    return {blocker: clock for blocker, clock in found.items() if blocker in meant}


def _written(claim: NodeClaim, held: HeldDrain, clocks: Clocks) -> dict[str, str | None]:
    return remembering(claim.annotations, held=replace(held, clocks=tuple(clocks.values())))


def _goes_on(forced: Forced, clock: HeldSince | None, now: float) -> bool:
    """Whether pods still leave by that force, or what holds the node now was forced."""
    return now <= forced.deadline or (clock is not None and Level.FORCE in clock.levels)
