"""Marks nodes for disruption, and takes marks off.

A mark is the owner annotation on the claim, written first; then upstream's taint on the node and the condition
DisruptionReason. Once the node is tainted, it and its pods are read live: if a pod is protected or unexpected, the mark
is taken off again. Each part recognises what is already done.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from temporalio import activity

from dovetail.activities.disruption.live_budgets import LiveBudgets
from dovetail.activities.disruption.places import Places, takes_places, without_own
from dovetail.activities.disruption.superseded import HELD_UP_SECONDS, SchedulerRuns
from dovetail.activities.shared.every_step.heartbeats import keep, kept
from dovetail.activities.shared.looks.live_pauses import LivePauses
from dovetail.activities.shared.looks.live_repairs import LiveRepairs
from dovetail.activities.shared.waits.side_by_side import side_by_side
from dovetail.activities.shared.writes.announcements import announce
from dovetail.activities.shared.writes.revisions import revise_claim, revise_node, revise_status
from dovetail.activities.termination.mover import Mover, NoMoves
from dovetail.disruption.live_check import why_closed, why_not_now
from dovetail.disruption.nodes.resting import called_off, rest_text
from dovetail.disruption.nodes.written_requests import is_asked_for_now
from dovetail.lifecycle.conditions import conditions_of_claim
from dovetail.lifecycle.registration import NodeChange
from dovetail.messages.outcomes import MarkOutcome, StepOutcome
from dovetail.messages.plans import DisruptionCommand, Target
from dovetail.messages.requests import MarkRequest, UnmarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_ids import cluster_of, scheduler_id
from dovetail.messages.writes import Write, claim_write, newest_of_each_kind, node_write
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.own.pauses import Activity
from dovetail.model.pods import Pod
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.failures import NotReadable
from dovetail.ports.objects import ClaimStatus, MetadataChange, NodeClaims, Nodes, Pods
from dovetail.ports.view import ClusterLookups
from dovetail.rules.beginnings import hold_of
from dovetail.rules.pause.hold import by_pause
from dovetail.rules.said import Cause, Said
from dovetail.telemetry.log import departures
from dovetail.telemetry.metrics.karpenters.disruption import started
from dovetail.telemetry.metrics.karpenters.lifecycle import is_first_attempt
from dovetail.termination.announced import planned, undone
from dovetail.termination.ladder import without_hold
from dovetail.termination.leaving import EXCLUDE_LABEL, leaving_labels

ASKED_FOR_SECONDS: Final = 1.0  # for so long it holds that nobody has paused, frozen or closed anything

AT_ONCE: Final = 10  # marked side by side: four requests each, one after another

DISRUPTED = Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkPorts:
    claims: NodeClaims
    nodes: Nodes
    pods: Pods
    lookups: ClusterLookups  # saves reads before a write
    pauses: LivePauses
    places: Places  # of rates
    budgets: LiveBudgets
    mover: Mover | NoMoves  # takes moves back
    repairs: LiveRepairs
    reboots: Callable[[NodeClaim], Awaitable[str]]  # begins a reboot, and answers why not


class MarkAndUnmarkNodes:
    def __init__(self, ports: MarkPorts, now: Callable[[], float]) -> None:
        self.claims, self.nodes, self.pods = ports.claims, ports.nodes, ports.pods
        self.lookups, self.pauses, self.mover, self.now = ports.lookups, ports.pauses, ports.mover, now
        self.places, self.budgets = ports.places, ports.budgets
        self.repairs, self.reboots = ports.repairs, ports.reboots
        self._schedulers = SchedulerRuns()

    @activity.defn
    async def mark_nodes(self, request: MarkRequest) -> MarkOutcome:
        """Mark each target, several side by side; a target that is refused stays unchanged. A retry leaves alone what
        is marked."""
        try:
            return await self._mark_all(request)
        finally:
            self.budgets.end(request.command.targets)

    async def _mark_all(self, request: MarkRequest) -> MarkOutcome:
        targets, before = request.command.targets, kept()
        marks = _Marks(asked={target.pool: self.now() for target in targets})
        why_not = await self._why_not(request, [target for target in targets if target.claim not in before])
        begins = [self._mark_one(request, target, before, marks, why_not.get(target.claim, "")) for target in targets]
        answers = await side_by_side(begins, AT_ONCE)
        unused = [t for t, why in zip(targets, answers, strict=True) if why and t.claim not in why_not]
        going = frozenset(t.pool for t, why in zip(targets, answers, strict=True) if not why)
        await self.places.give_back(request.owner, self._cause(request.command), unused, going)
        refused = [(target.claim, why) for target, why in zip(targets, answers, strict=True) if why]
        marked = [target.claim for target, why in zip(targets, answers, strict=True) if not why]
        if marked and not (refused and request.command.replacements) and is_first_attempt():
            begun = [t for t in targets if t.claim in marked]
            started(request.command, begun)
            departures.disrupting(request.owner, request.command, begun, marks.types)
        return MarkOutcome(marked=tuple(marked), refused=tuple(refused), writes=newest_of_each_kind(marks.writes))

    @activity.defn
    async def unmark_nodes(self, request: UnmarkRequest) -> StepOutcome:
        """Take this owner's marks off; marks of others, and nodes that are leaving, are left alone."""
        writes: list[Write] = []
        await side_by_side([self._unmark(request, claim, writes) for claim in request.claims], AT_ONCE)
        if request.rest and writes:
            departures.undone(request)
        return StepOutcome(writes=newest_of_each_kind(writes))

    async def _why_not(self, request: MarkRequest, targets: Sequence[Target]) -> dict[str, str]:
        """Why people forbid the disruption, in words, by claim. For the other claims a place in each rate is taken
        before the mark; where all must be replaced together, for all of them or for none."""
        command = request.command
        cause = self._cause(command)
        pools, replaced = {target.pool for target in targets}, bool(command.replacements)
        saids = {pool: without_own(await self._said(pool, request), request.owner, cause, targets) for pool in pools}
        paused = await self._why_not_launched(command)
        holds = {pool: self._why_held(said, command) or paused for pool, said in saids.items()}
        held = {target.claim: why for target in targets if (why := holds[target.pool])}
        if replaced and held:
            return held
        held |= await self._over_budget(request, saids, [target for target in targets if target.claim not in held])
        if replaced and held:
            return held
        free = [target for target in targets if target.claim not in held and takes_places(saids[target.pool], cause)]
        return {**held, **await self.places.take(request.owner, cause, free, whole=replaced)}

    async def _over_budget(
        self, request: MarkRequest, saids: Mapping[str, Said], targets: Sequence[Target]
    ) -> dict[str, str]:
        """Why budgets let no more nodes go now, by claim."""
        command, found = request.command, dict[str, str]()
        if self._asks_no_budget(command):
            return found
        for name, said in saids.items():
            ours = [target for target in targets if target.pool == name]
            if said.pool is not None and ours:
                found |= await self.budgets.take(said.pool, command.reason, ours, whole=bool(command.replacements))
        return found

    async def _held_since(self, request: MarkRequest, target: Target, marks: "_Marks") -> str:
        """Why people forbid it by now, if the marks before this one took a while."""
        if self.now() - marks.asked[target.pool] < ASKED_FOR_SECONDS:
            return ""
        asked, command = self.now(), request.command
        cause = self._cause(command)
        said = without_own(await self._said(target.pool, request), request.owner, cause, command.targets)
        why_held = self._why_held(said, command) or await self._why_not_launched(command)
        if not why_held:
            marks.asked[target.pool] = asked
        return why_held

    def _why_held(self, said: Said, command: DisruptionCommand) -> str:
        """Why no node of the pool may begin to leave for that, by what people say and by its budgets."""
        cause = self._cause(command)
        hold = hold_of(said, cause)
        if hold is not None:
            return hold.message
        return "" if self._asks_no_budget(command) else why_closed(said.pool, command.reason, said.now)

    async def _why_not_launched(self, command: DisruptionCommand) -> str:
        """Which pause of launches holds a pool in which it has nodes made; the decision asks no other pool either."""
        pools = {made.pool for made in command.replacements}
        for pool in sorted(pools.union(target.pool for target in command.targets if command.terminates_first)):
            paused = by_pause(await self.pauses.said(pool), Activity.LAUNCHES)
            if paused is not None:
                return paused.message
        return ""

    def _asks_no_budget(self, command: DisruptionCommand) -> bool:
        """What a person asks for at once waits for none, nor does an unhealthy node that was never initialised."""
        if command.reason != DisruptionReason.UNHEALTHY:
            return self._cause(command) is Cause.REQUESTED_NOW
        nodes = [self.lookups.node(target.node) for target in command.targets]
        return all(node is not None and node.labels.get(names.INITIALIZED) != "true" for node in nodes)

    async def _said(self, pool: str, request: MarkRequest) -> Said:
        """Everything that people say about the pool now, and the steps of roll-outs that the decision was based on."""
        return replace(await self.pauses.said(pool), basis=request.seen.basis)

    def _cause(self, command: DisruptionCommand) -> Cause:
        return Cause.of(command.reason, at_once=self._is_asked_for_now(command))

    def _is_asked_for_now(self, command: DisruptionCommand) -> bool:
        """Whether a person asks for it at once, regardless of windows; of every node, as one opens nothing for the
        others."""
        if command.reason != DisruptionReason.REQUESTED:
            return False
        claims = (self.lookups.claim(target.claim) for target in command.targets)
        return all(claim is not None and is_asked_for_now(claim) for claim in claims)

    async def _mark_one(
        self, request: MarkRequest, target: Target, before: frozenset[str], marks: "_Marks", paused: str
    ) -> str | None:
        """Mark it, or say why not; then it is as it was before. A mark of an earlier attempt stays."""
        if target.claim in before:
            return None
        why_not = paused or await self._held_since(request, target, marks) or await self._mark(request, target, marks)
        if not why_not:
            if _stays_a_while(request.command):
                node = marks.nodes[target.node]
                await announce(self.nodes, node, planned(node, self.now(), request.command.reason))
            keep(target.claim)
            return None
        ref = ClaimRef(name=target.claim, uid=target.claim_uid)
        await self._unmark(UnmarkRequest(owner=request.owner, claims=(ref,)), ref, marks.writes)
        return why_not

    async def _mark(self, request: MarkRequest, target: Target, marks: "_Marks") -> str | None:
        """Owner, taint, condition, live read. Why the target cannot be marked; None where it is. An instance that is
        rebooted is not marked: its reboot begins."""
        if request.command.reboots:
            return await self._reboot(request, target)
        owned = await self._owned(request, target)
        if isinstance(owned, str):
            return owned
        if await self._is_superseded(request):
            return "the Scheduler has begun anew since this was decided, and may have decided otherwise"
        node = await self._untainted_node(target)
        if node is None or {node.provider_id, owned.provider_id} != {target.provider_id}:
            return "the Node is gone"
        if target.pool not in {each.labels.get(names.NODE_POOL, "") for each in (owned, node)}:
            return f"the label {names.NODE_POOL} of NodeClaim and Node does not say {target.pool}"
        node = await self._taint(node, owned.name, partial(_with_taint, request.command))
        if node is None:
            return "the Node is gone"
        claim = await self._write_reason(owned, request.command.reason)
        if claim is None:
            return "the NodeClaim is gone"
        marks.add(claim, node)
        return await self._why_not_now(request.command, target, claim, node) or None

    async def _why_not_now(self, command: DisruptionCommand, target: Target, claim: NodeClaim, node: Node) -> str:
        """By the node and its pods as they are. What holds others does not hold one that is unhealthy, if its drain has
        an end."""
        if command.reason == DisruptionReason.UNHEALTHY:
            if await self.repairs.fault(node, claim) is None:
                return "the Node is not to be repaired"
            node, claim = replace(node, annotations={}), replace(claim, termination_grace=target.grace)
        try:
            pods = await self.pods.list_on(node.name)
        except NotReadable as failure:
            return str(failure)
        return why_not_now(claim, node, pods, target, self.now())

    async def _reboot(self, request: MarkRequest, target: Target) -> str:
        claim = await self.claims.read(target.claim)
        if claim is None or claim.uid != target.claim_uid:
            return "the NodeClaim is gone"
        return self._why_outdated(request, claim) or await self.reboots(claim)

    async def _owned(self, request: MarkRequest, target: Target) -> NodeClaim | str:
        """The claim with its owner, or why it does not get one."""
        claim = await self._unmarked_claim(target)
        if claim is None or claim.uid != target.claim_uid:
            return "the NodeClaim is gone"
        outdated = self._why_outdated(request, claim)
        if outdated:
            return outdated
        claim = await revise_claim(self.claims, claim, partial(_with_owner, request.owner))
        if claim is None:
            return "the NodeClaim is gone"
        owner = claim.annotations.get(names.OWNER, "")
        if owner != request.owner:
            return f"already marked by {owner}"
        return self._why_outdated(request, claim) or claim  # again: others may have written since it was read

    async def _unmarked_claim(self, target: Target) -> NodeClaim | None:
        """The claim from the cache, if it has no owner there: the write that follows is refused if the claim has
        changed since. Otherwise the claim as the API server has it."""
        known = self.lookups.claim(target.claim)
        if known is None or known.uid != target.claim_uid or known.annotations.get(names.OWNER):
            return await self.claims.read(target.claim)
        return known

    async def _untainted_node(self, target: Target) -> Node | None:
        """The same for the node, if the cache shows it without the taint."""
        known = self.lookups.node(target.node)
        if known is None or known.uid != target.node_uid or DISRUPTED in known.taints:
            return await self.nodes.read(target.node)
        return known

    async def _taint(self, node: Node, claim: str, mark: Callable[[Node], NodeChange]) -> Node | None:
        """The node with upstream's taint; None where it is gone."""
        tainted = await revise_node(self.nodes, node, mark)
        if tainted is not None and DISRUPTED not in node.taints:
            departures.tainted(node.name, claim, by_mark=True)
        return tainted

    def _why_outdated(self, request: MarkRequest, claim: NodeClaim) -> str:
        """Why the plan is not begun: nobody asks for it, a person has called it off, or it is too old and no earlier
        attempt has begun it."""
        if request.command.reason == DisruptionReason.REQUESTED and names.REPLACE not in claim.annotations:
            return f"the NodeClaim carries no {names.REPLACE}"
        too_old = None if _is_marked(request.owner, claim) else request.seen.why_too_old(self.now())
        off = called_off(claim, self.now())
        return (off.words if off is not None else too_old) or ""

    async def _is_superseded(self, request: MarkRequest) -> bool:
        """Whether a Scheduler other than the one that decided may have planned without knowing of this; asked between
        owner and taint."""
        if self.now() - request.seen.decided_at < HELD_UP_SECONDS:
            return False
        return await self._schedulers.is_superseded(scheduler_id(cluster_of(request.owner)), request.seen.decided_at)

    async def _write_reason(self, claim: NodeClaim, reason: str) -> NodeClaim | None:
        wanted = Condition(
            type=names.DISRUPTION_REASON, status="True", reason=reason, message=reason, changed=self.now()
        )

        def change(found: NodeClaim) -> ClaimStatus | None:
            current = found.condition(names.DISRUPTION_REASON)
            if current is not None and (current.status, current.reason) == ("True", reason):
                return None
            return ClaimStatus(conditions=conditions_of_claim(found).set(wanted).conditions)

        return await revise_status(self.claims, claim, change)

    async def _unmark(self, request: UnmarkRequest, ref: ClaimRef, writes: list[Write]) -> None:
        """Take off taint, moves and condition first, the owner last: a mark that is half removed still names its
        owner."""
        claim = await self.claims.read(ref.name)
        if claim is None or claim.uid != ref.uid or not _is_marked(request.owner, claim):
            return
        for node in await self.nodes.list_by_provider_id(claim.provider_id):
            untainted = await revise_node(self.nodes, node, _without_taint)
            if untainted is not None and untainted is not node:
                writes.append(node_write(untainted))
            await self.mover.undo(node, partial(self._pods_on, node))
            await announce(self.nodes, node, undone(node, self.now()))
        claim = await revise_status(self.claims, claim, partial(_without_reason, request.owner))
        if claim is None:
            return
        claim = await revise_claim(self.claims, claim, partial(self._without_owner, request))
        if claim is not None:
            writes.append(claim_write(claim))

    async def _pods_on(self, node: Node) -> tuple[Pod, ...]:
        """The pods on the node; none if one of them cannot be read: the mark comes off all the same."""
        try:
            return await self.pods.list_on(node.name)
        except NotReadable:
            return ()

    def _without_owner(self, request: UnmarkRequest, claim: NodeClaim) -> MetadataChange | None:
        """The change that removes the owner and, if one is asked for, writes a rest."""
        if not _is_marked(request.owner, claim):
            return None
        annotations: dict[str, str | None] = {names.OWNER: None} if request.owner else {}  # a predecessor's has none
        annotations.update(_without_deadline(claim))
        annotations.update(without_hold(claim, **({"called_off": None} if request.rest else {})))
        if request.rest:
            annotations[names.REST] = rest_text(
                claim, self.now(), request.reason, cancelled=request.rest == "cancelled"
            )
        return MetadataChange(annotations=annotations) if annotations else None


@dataclass(slots=True)
class _Marks:
    """What marking has written, the instance types of the claims that it met, and, by pool, when it last asked whether
    people forbid it."""

    asked: dict[str, float]
    writes: list[Write] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)

    def add(self, claim: NodeClaim, node: Node) -> None:
        """A claim and its node, as they are after their mark."""
        self.writes += [claim_write(claim), node_write(node)]
        self.types[claim.name] = claim.labels.get(names.INSTANCE_TYPE, "")
        self.nodes[node.name] = node


def _is_marked(owner: str, claim: NodeClaim) -> bool:
    """Whether it carries that owner's mark; on a node that is leaving, the taint belongs to termination (STA-20)."""
    return claim.annotations.get(names.OWNER, "") == owner and claim.deleting_since is None


def _with_owner(owner: str, claim: NodeClaim) -> MetadataChange | None:
    """The change that writes that owner, if the claim has none."""
    if claim.annotations.get(names.OWNER):
        return None
    return MetadataChange(annotations={names.OWNER: owner, **_without_deadline(claim)})


def _without_deadline(claim: NodeClaim) -> dict[str, str | None]:
    """The change that takes off what a Karpenter wrote before a delete that never came."""
    written = names.TERMINATION_DEADLINE in claim.annotations and claim.deleting_since is None
    return {names.TERMINATION_DEADLINE: None} if written else {}


def _without_reason(owner: str, claim: NodeClaim) -> ClaimStatus | None:
    if claim.condition(names.DISRUPTION_REASON) is None or not _is_marked(owner, claim):
        return None
    return ClaimStatus(conditions=conditions_of_claim(claim).clear(names.DISRUPTION_REASON).conditions)


def _stays_a_while(command: DisruptionCommand) -> bool:
    """Whether the node waits for something between the mark and the delete."""
    return bool(command.replacements) or command.drain_first


def _with_taint(command: DisruptionCommand, node: Node) -> NodeChange:
    """The change that adds upstream's taint, once; if the delete follows at once, with everything that a leaving node
    carries."""
    labels = {} if _stays_a_while(command) else leaving_labels(node)
    if DISRUPTED in node.taints:
        return NodeChange(labels={}, annotations={})
    others = tuple(t for t in node.taints if t.key != names.DISRUPTED_TAINT)
    return NodeChange(labels=labels, annotations={}, taints=(*others, DISRUPTED))


def _without_taint(node: Node) -> NodeChange:
    """The change that takes off what the mark has put on the node, unless the node is leaving."""
    rest = tuple(t for t in node.taints if (t.key, t.effect) != (names.DISRUPTED_TAINT, "NoSchedule"))
    if node.deleting_since is not None:
        return NodeChange(labels={}, annotations={})
    labels = {} if leaving_labels(node) else dict.fromkeys([EXCLUDE_LABEL])
    return NodeChange(labels=labels, annotations={}, taints=None if rest == node.taints else rest)
