"""Reboots the instance of an unhealthy node: one step that advances the reboot a little each time it is ordered. It is
begun by the step that marks, as any disruption is.

The progress is stored on the NodeClaim, in Karpenter's annotations and its condition Rebooting, so a lost worker and a
lost database are the same case: the Caretaker finds the claim and orders the next look. Pods leave first, by eviction
only and within a time limit; pods that remain then stay through the reboot. The node's boot id, written down before the
cloud is asked, shows whether the reboot has happened; a second call before that does no harm. A node that is ready for
pods again has been rebooted; one that is not within twenty minutes is replaced. The live objects decide whether the
node is rebooted. Until the boot id is written down it can be called off, as any disruption.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from temporalio import activity

from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.shared.writes.claim_deletion import delete_because, hurry
from dovetail.activities.shared.writes.revisions import revise_claim, revise_node, revise_status
from dovetail.activities.termination.evictor import EvictionRequest, Evictor
from dovetail.activities.termination.holds import HoldMemory, Holds, LeavingClaim
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.disruption.nodes.resting import reboot_called_off
from dovetail.lifecycle.conditions import ConditionSet, conditions_of_claim
from dovetail.lifecycle.faults import recent_reboots
from dovetail.lifecycle.initialization import blocker, is_ready
from dovetail.lifecycle.registration import NodeChange
from dovetail.messages.orders import RebootNode
from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.writes import claim_write
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.own.claim_memory import memory_of, remembering, with_memory
from dovetail.model.own.drain_rules import Blocker
from dovetail.model.own.pauses import Activity
from dovetail.model.pods import Pod
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.reasons.endings import Ending
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.durations import parse_seconds
from dovetail.notices.claims import reboot_failed, reboot_observed
from dovetail.ports.cloud import Cloud
from dovetail.ports.failures import Failure, NotAsked, Permanent, Retryable
from dovetail.ports.objects import ClaimStatus, MetadataChange, NodeClaims, Nodes, Notices, Pods
from dovetail.ports.view import PauseLookups
from dovetail.telemetry.metrics.karpenters.lifecycle import disrupted, rebooted
from dovetail.termination.evictions import plan_evictions
from dovetail.termination.forced import times_of_reboot
from dovetail.termination.hooks import words_of
from dovetail.termination.ladder import DrainHold, began_at, drain_reason, without_hold
from dovetail.termination.owner_share import waits_for_turn

GRACE_SECONDS: Final = 600.0  # for its pods, as Karpenter's provider has it
LEAST_SECONDS: Final = 5.0  # pods that were bound just before the taint turn up
ISSUING_SECONDS: Final = 300.0  # for the cloud to take it
BACK_SECONDS: Final = 1200.0  # for the node to be ready again
STEP_SECONDS: Final = 15.0  # of one look
REQUESTED: Final = "RebootRequested"
ISSUED: Final = "RebootIssued"
SUCCEEDED: Final = "RebootSucceeded"
CALLED_OFF: Final = "RebootCalledOff"
_TAINT: Final = Taint(key=names.REBOOTING_TAINT, effect="NoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootPorts:
    claims: NodeClaims
    nodes: Nodes
    pods: Pods
    notices: Notices
    cloud: Cloud
    repairs: LiveRepairs
    pauses: PauseLookups
    holds: Holds
    turns: OwnerTurns


class RebootNodes:
    """The step, and how a reboot begins."""

    def __init__(
        self,
        ports: RebootPorts,
        evictor: Evictor,
        now: Callable[[], float],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.ports, self.evictor, self.now, self.pause = ports, evictor, now, pause
        self.held = dict[str, HoldMemory]()  # what holds them now, by the uid of their claims

    @activity.defn
    async def reboot_node(self, order: RebootNode) -> StepOutcome:
        claim = await self.ports.claims.read(order.claim.name)
        if claim is None or claim.uid != order.claim.uid or claim.deleting_since is not None:
            self.held.pop(order.claim.uid, None)
            return StepOutcome(message="already gone, or being deleted")
        if not claim.is_rebooting:
            return StepOutcome(message="its instance is not being rebooted")
        noted = claim if names.REBOOT_GRACE in claim.annotations else await self._note(claim, None, _moment(claim))
        if noted is None:
            return StepOutcome(message="already gone")
        return await self._go_on(noted, await self._node(noted))

    async def begin(self, claim: NodeClaim) -> str:
        """Begin it; answers why not. The condition comes first: if nothing comes after it, it is begun again."""
        if names.REBOOT_GRACE in claim.annotations:
            return ""
        node = await self._node(claim)
        fault = await self.ports.repairs.fault(node, claim) if node is not None else None
        if fault is None or not fault.reboots or claim.deleting_since is not None:
            return "there is nothing that a reboot would clear"
        why, now = fault.condition, self.now()
        said = await self._say(claim, "True", REQUESTED, f"rebooting for {why.type}/{why.reason}")
        noted = await self._note(said, fault.bound(claim), now) if said is not None else None
        return "" if noted is not None else "the NodeClaim is gone"

    async def _note(self, claim: NodeClaim, bound: float | None, moment: float) -> NodeClaim | None:
        """Write down how long its pods have, and that it began then: as long as the former stands there it goes on. A
        Karpenter has left a reboot without it where nothing bounds that, and a crash one of ours."""
        begun = (*recent_reboots(claim, moment), moment)
        grace = f"{int(GRACE_SECONDS if bound is None else min(bound, GRACE_SECONDS))}s"

        def change_of(found: NodeClaim) -> MetadataChange:
            notes = remembering(found.annotations, reboots=begun)
            return MetadataChange(annotations={names.REBOOT_GRACE: grace, **notes})

        return await revise_claim(self.ports.claims, claim, change_of)

    async def _node(self, claim: NodeClaim) -> Node | None:
        """The only node of its own."""
        nodes = await self.ports.nodes.list_by_provider_id(claim.provider_id) if claim.provider_id else ()
        return nodes[0] if len(nodes) == 1 else None

    async def _go_on(self, claim: NodeClaim, node: Node | None) -> StepOutcome:
        condition = claim.condition(names.REBOOTING)
        if condition is None or condition.status != "True":
            return await self._clean(claim, node, "it has ended")
        issued = _issued_at(claim, condition)
        if issued is not None:
            return await self._look(claim, node, condition, issued)
        if reboot_called_off(claim) is not None or not await self._is_meant(claim, node):
            return await self._call_off(claim, node)
        why = await self._look_at_hold(claim, node)
        if why and not _has_happened(claim, node):
            return await self._hold(claim, why)
        is_late = self.now() > _until(claim, condition) + ISSUING_SECONDS
        if node is None:
            if is_late:
                return await self._give_up(claim, "it has no Node", "recovery_timeout")
            return StepOutcome(message="waiting for its node")
        if names.PRE_BOOT_ID not in claim.annotations:
            if is_late:
                await revise_claim(self.ports.claims, claim, self._moved)  # nobody looked: its pods have time again
                return StepOutcome(message="its pods are leaving")
            node = await self._fence(node) or node
            if not await self._empty(claim, node, _since(claim, condition)):
                return StepOutcome(message="its pods are leaving", writes=(claim_write(claim),))
        return await self._issue(claim, node, condition)

    async def _is_meant(self, claim: NodeClaim, node: Node | None) -> bool:
        """Whether it is to be rebooted still: it may have waited for long. It is once the cloud may have been asked."""
        if node is None or claim.is_reboot_ordered:
            return True
        fault = await self.ports.repairs.fault(node, _without_last(claim))
        return fault is not None and fault.reboots

    def _moved(self, claim: NodeClaim) -> MetadataChange:
        """Its moment among those of the reboots of its instance, which is now."""
        moments = (*memory_of(claim.annotations).reboots[:-1], self.now())
        return MetadataChange(annotations=remembering(claim.annotations, reboots=moments))

    async def _empty(self, claim: NodeClaim, node: Node, since: float) -> bool:
        """Ask pods to leave, those of one owner by turns, forcing none; answers whether nothing is waited for any
        more."""
        until = min(self.now() + STEP_SECONDS, since + max(_grace_of(claim), LEAST_SECONDS))
        request = EvictionRequest(pool=claim.labels.get(names.NODE_POOL, ""), reason="Unhealthy")
        asked: set[str] = set()
        by_turns, deadline = is_ready(node), since + _grace_of(claim)

        async def may_leave(pod: Pod) -> bool:
            live = await self.ports.claims.read(claim.name)
            waits = by_turns and waits_for_turn(pod, deadline, since, self.now())
            return live is not None and not self._why_held(live) and not self.ports.turns.take(pod, waits=waits)

        while True:
            live = await self.ports.claims.read(claim.name)
            if live is None or reboot_called_off(live) is not None or self._why_held(live):
                return False
            plan = plan_evictions(await self.ports.pods.list_on(node.name), None, self.now())
            if not plan.waiting and self.now() >= since + LEAST_SECONDS:
                return True
            for pod in plan.evict:
                outcome = await self.evictor.evict(pod, request, may_leave) if pod.uid not in asked else None
                if outcome is not None and outcome.leaving:
                    asked.add(pod.uid)
                elif outcome is not None:
                    self.ports.turns.give_back(pod)
            if self.now() >= until:
                return self.now() >= since + max(_grace_of(claim), LEAST_SECONDS)
            await self.pause(1.0)

    def _why_held(self, claim: NodeClaim) -> Mapping[Blocker, str]:
        """What holds the pods of the node, as it holds a drain, in words: a pause of drains, also while nobody knows
        whether there is one, and hooks of the first eviction."""
        try:
            pause = self.ports.pauses.pause_on(claim.labels.get(names.NODE_POOL, ""), Activity.DRAINS)
        except Failure as failure:
            return {Blocker.PAUSED: f"it is not known whether drains are paused: {failure}"}
        if pause is not None:
            return {Blocker.PAUSED: pause.announces(Activity.DRAINS)}
        hooks = self.ports.holds.hooks(claim, names.PRE_DRAIN_HOOK, *times_of_reboot(claim, self.now()))
        return {Blocker.HOOK_WAITS: f"waiting for {words_of(hooks)}"} if hooks else {}

    async def _look_at_hold(self, claim: NodeClaim, node: Node | None) -> str:
        """What holds it, in words; timed, and a person is asked, as of a drain."""
        why, nodes = self._why_held(claim), () if node is None else (node,)
        says = ", ".join(why.values())
        hold = DrainHold(blockers=frozenset(why), reason=drain_reason(claim), says=says, first_eviction=True)
        held = LeavingClaim(claim=claim, began=began_at(claim), nodes=nodes, hold=hold if why else None)
        await self.ports.holds.look(held, self.held.setdefault(claim.uid, HoldMemory()))
        return says

    async def _hold(self, claim: NodeClaim, why: str) -> StepOutcome:
        """Wait; the time does not count towards what its pods and the cloud have."""
        held = await revise_claim(self.ports.claims, claim, self._moved)
        return StepOutcome(message=why, writes=() if held is None else (claim_write(held),))

    def _last_note(self, claim: NodeClaim, node: Node) -> MetadataChange | None:
        """The boot id that says whether the reboot has happened; None where it has been called off by now."""
        if reboot_called_off(claim) is not None:
            return None
        return MetadataChange(annotations={names.PRE_BOOT_ID: node.boot_id, **self._moved(claim).annotations})

    async def _issue(self, claim: NodeClaim, node: Node, condition: Condition) -> StepOutcome:
        """Ask the cloud, unless it has happened: an earlier step may have asked and crashed before it wrote that
        down."""
        before = claim.annotations.get(names.PRE_BOOT_ID)
        if before is None and (why := self._why_held(claim)):
            return await self._hold(claim, ", ".join(why.values()))
        if before is None:
            live = await self.ports.nodes.read(node.name)
            if not await self._is_meant(claim, live):
                return await self._call_off(claim, live)
            noted = await revise_claim(self.ports.claims, claim, lambda found: self._last_note(found, node))
            if noted is None:
                return StepOutcome(message="already gone")
            if not noted.is_reboot_ordered:
                return await self._call_off(noted, node)
            claim, before = noted, node.boot_id
        refused = await self._asked_cloud(claim, condition) if node.boot_id == before else None
        if refused is not None:
            return refused
        now = self.now()

        def issued(found: NodeClaim) -> MetadataChange:
            return MetadataChange(annotations=without_hold(found, reboot_issued=now))

        noted = await revise_claim(self.ports.claims, claim, issued)
        said = await self._say(noted, "True", ISSUED, condition.message) if noted is not None else None
        return StepOutcome(message="the cloud reboots it", writes=() if said is None else (claim_write(said),))

    async def _asked_cloud(self, claim: NodeClaim, condition: Condition) -> StepOutcome | None:
        """None once it has taken the reboot; raises what only trying again may mend."""
        try:
            await self.ports.cloud.reboot(claim.provider_id, claim.name)
        except Permanent as error:  # trying again cannot help
            return await self._give_up(claim, f"reboot rejected by the cloud provider: {error}", "provider_error")
        except Retryable as error:
            if self.now() <= _until(claim, condition) + ISSUING_SECONDS:
                raise
            if not isinstance(error, NotAsked):
                return await self._give_up(claim, "the cloud did not take the reboot", "provider_error")
            await revise_claim(self.ports.claims, claim, self._moved)
            raise
        return None

    async def _look(self, claim: NodeClaim, node: Node | None, condition: Condition, issued: float) -> StepOutcome:
        """See whether it is up again, and ready for pods as a new node must be."""
        if node is not None and node.boot_id != claim.annotations.get(names.PRE_BOOT_ID, ""):
            node = await self._open(node)
            await self.ports.notices.publish(reboot_observed(claim))
            if node is not None and blocker(claim, (node,)) is None:
                said = await self._say(claim, "False", SUCCEEDED, "node rebooted and rejoined the cluster")
                rebooted("succeeded", self.now() - condition.changed, self.now() - issued)
                return await self._clean(said or claim, node, "rebooted")
        if self.now() > issued + BACK_SECONDS:
            return await self._give_up(claim, "the node did not come back within twenty minutes", "recovery_timeout")
        return StepOutcome(message="waiting for the node to come up")

    async def _give_up(self, claim: NodeClaim, why: str, result: str) -> StepOutcome:
        """Have the node replaced; its pods have as long as they had before the reboot."""
        self.held.pop(claim.uid, None)
        write = await delete_because(self.ports.claims, claim, Ending.REPAIRED, f"rebooted in vain: {why}")
        hurried = await hurry(self.ports.claims, claim, self.now() + _grace_of(claim), pods_alone=True)
        await self.ports.notices.publish(reboot_failed(claim, why))
        began = claim.condition(names.REBOOTING)
        rebooted(result, self.now() - (began.changed if began is not None else self.now()))
        disrupted(claim, "unhealthy")
        return StepOutcome(message=why, writes=(write if hurried is None else claim_write(hurried),))

    async def _call_off(self, claim: NodeClaim, node: Node | None) -> StepOutcome:
        """End it before the cloud is asked. The condition comes first, as it says to the end that this was none."""
        off = reboot_called_off(claim)
        said = await self._say(claim, "False", CALLED_OFF, off.words if off is not None else "")
        return await self._clean(said or claim, node, "called off")

    async def _clean(self, claim: NodeClaim, node: Node | None, message: str) -> StepOutcome:
        if node is not None:
            await self._open(node)
        self.held.pop(claim.uid, None)
        ended = claim.condition(names.REBOOTING)
        off = ended is not None and ended.reason == CALLED_OFF

        def change_of(found: NodeClaim) -> MetadataChange | None:
            if not found.is_rebooting:
                return None
            begun = memory_of(found.annotations).reboots
            notes = without_hold(found, reboot_issued=None, reboots=begun[:-1] if off else begun)
            return MetadataChange(annotations={names.PRE_BOOT_ID: None, names.REBOOT_GRACE: None, **notes})

        cleaned = await revise_claim(self.ports.claims, claim, change_of)
        return StepOutcome(message=message, writes=() if cleaned is None else (claim_write(cleaned),))

    async def _fence(self, node: Node) -> Node | None:
        def fenced(found: Node) -> NodeChange:
            has = any(taint.key == _TAINT.key for taint in found.taints)
            return NodeChange(labels={}, annotations={}, taints=None if has else (*found.taints, _TAINT))

        return await revise_node(self.ports.nodes, node, fenced)

    async def _open(self, node: Node) -> Node | None:
        def opened(found: Node) -> NodeChange:
            left = tuple(taint for taint in found.taints if taint.key != _TAINT.key)
            return NodeChange(labels={}, annotations={}, taints=None if left == found.taints else left)

        return await revise_node(self.ports.nodes, node, opened)

    async def _say(self, claim: NodeClaim, status: str, reason: str, message: str) -> NodeClaim | None:
        now = self.now()
        wanted = Condition(type=names.REBOOTING, status=status, reason=reason, message=message, changed=now)

        why = DisruptionReason.UNHEALTHY.value

        def change_of(found: NodeClaim) -> ClaimStatus:
            conditions: ConditionSet = conditions_of_claim(found).set(wanted)
            if status == "True":
                because = Condition(type=names.DISRUPTION_REASON, status="True", reason=why, message=why, changed=now)
                return ClaimStatus(conditions=conditions.set(because).conditions)
            return ClaimStatus(conditions=conditions.clear(names.DISRUPTION_REASON).conditions)

        return await revise_status(self.ports.claims, claim, change_of)


def _moment(claim: NodeClaim) -> float:
    condition = claim.condition(names.REBOOTING)
    return condition.changed if condition is not None else 0.0


def _has_happened(claim: NodeClaim, node: Node | None) -> bool:
    asked = claim.annotations.get(names.PRE_BOOT_ID)
    return asked is not None and node is not None and node.boot_id != asked


def _issued_at(claim: NodeClaim, condition: Condition) -> float | None:
    """When the cloud took it, or a moment no earlier: Karpenter writes down that it has, and not when."""
    issued = memory_of(claim.annotations).reboot_issued
    return _until(claim, condition) if issued is None and condition.reason == ISSUED else issued


def _since(claim: NodeClaim, condition: Condition) -> float:
    """When it began, the last time; once its boot id is written down, when the cloud was to be asked first."""
    return max([condition.changed, *recent_reboots(claim, condition.changed)])


def _until(claim: NodeClaim, condition: Condition) -> float:
    """When the cloud is asked at the latest."""
    grace = _grace_of(claim)
    if names.PRE_BOOT_ID in claim.annotations:
        return max(condition.changed + grace, _since(claim, condition))
    return _since(claim, condition) + grace


def _without_last(claim: NodeClaim) -> NodeClaim:
    """The claim as if its instance were not being rebooted now."""
    annotations = claim.annotations
    return replace(claim, annotations=with_memory(annotations, reboots=memory_of(annotations).reboots[:-1]))


def _grace_of(claim: NodeClaim) -> float:
    """What was written down at the start; others may have written there since."""
    try:
        return min(parse_seconds(claim.annotations[names.REBOOT_GRACE]), GRACE_SECONDS)
    except ValueError:
        return GRACE_SECONDS
