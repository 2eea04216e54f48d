"""Marks nodes for disruption, and takes marks off.

Asked by DisruptNodes, as its first step and in its undo. A mark is the owner annotation on the claim, written first;
then upstream's taint on the node and the DisruptionReason condition. When the taint stands, the node and its pods are
read live: a protected or unexpected pod means that the mark comes off again. Each part finds by itself what is done.
"""

from collections.abc import Callable
from functools import partial

from temporalio import activity

from activities.contending import settled
from activities.counting_disruption import started
from core.disruption.live_check import why_not_now
from core.disruption.resting import rest_text
from core.lifecycle.conditions import conditions_of_claim
from core.model import names
from core.model.inputs import MarkOutcome, MarkRequest, UnmarkRequest
from core.model.nodes import Condition, Node, NodeClaim
from core.model.plans import Target
from core.model.steps import ClaimRef, StepOutcome
from core.model.taints import Taint
from core.model.writes import Write, claim_write, node_write
from ports.objects import ClaimStatus, MetadataChange, NodeClaims, Nodes, Pods

DISRUPTED = Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule")


class Marking:
    """The steps that mark and unmark."""

    def __init__(self, claims: NodeClaims, nodes: Nodes, pods: Pods, now: Callable[[], float]) -> None:
        self.claims = claims
        self.nodes = nodes
        self.pods = pods
        self.now = now

    @activity.defn
    async def mark_nodes(self, request: MarkRequest) -> MarkOutcome:
        """Mark each target, in order; one that is refused is left as it was."""
        marked: list[str] = []
        refused: list[tuple[str, str]] = []
        writes: list[Write] = []
        for target in request.command.targets:
            why_not = await settled(partial(self._mark, request, target, writes))
            if why_not:
                refused.append((target.claim, why_not))
                ref = ClaimRef(name=target.claim, uid=target.claim_uid)
                unmark = UnmarkRequest(owner=request.owner, claims=(ref,))
                await settled(partial(self._unmark, unmark, ref, writes))
            else:
                marked.append(target.claim)
        if marked and not (refused and request.command.replacements) and _is_first_try():
            started(request.command, [t for t in request.command.targets if t.claim in marked])
        return MarkOutcome(marked=tuple(marked), refused=tuple(refused), writes=tuple(writes))

    @activity.defn
    async def unmark_nodes(self, request: UnmarkRequest) -> StepOutcome:
        """Take this owner's marks off; those of others, and nodes that are leaving, are left alone."""
        writes: list[Write] = []
        for claim in request.claims:
            await settled(partial(self._unmark, request, claim, writes))
        return StepOutcome(writes=tuple(writes))

    async def _mark(self, request: MarkRequest, target: Target, writes: list[Write]) -> str:
        """Owner, taint, condition, live read. Why the target cannot be marked; empty where it is."""
        claim = await self.claims.read(target.claim)
        if claim is None or claim.uid != target.claim_uid:
            return "the NodeClaim is gone"
        owner = claim.annotations.get(names.OWNER, "")
        if owner and owner != request.owner:
            return f"already marked by {owner}"
        if not owner:
            change = MetadataChange(annotations={names.OWNER: request.owner})
            claim = await self.claims.patch(claim, change)
            if claim is None:
                return "the NodeClaim is gone"
        node = await self.nodes.read(target.node)
        if node is None or node.provider_id != target.provider_id:
            return "the Node is gone"
        node = await self._taint(node)
        if node is None:
            return "the Node is gone"
        claim = await self._explain(claim, request.command.reason)
        if claim is None:
            return "the NodeClaim is gone"
        writes += [claim_write(claim), node_write(node)]
        return why_not_now(claim, node, await self.pods.list_on(node.name), target, self.now())

    async def _taint(self, node: Node) -> Node | None:
        """Upstream's taint, once."""
        if DISRUPTED in node.taints:
            return node
        others = tuple(t for t in node.taints if t.key != names.DISRUPTED_TAINT)
        return await self.nodes.patch(node, MetadataChange(), taints=(*others, DISRUPTED))

    async def _explain(self, claim: NodeClaim, reason: str) -> NodeClaim | None:
        """The DisruptionReason condition, once."""
        current = claim.condition(names.DISRUPTION_REASON)
        if current is not None and (current.status, current.reason) == ("True", reason):
            return claim
        wish = Condition(type=names.DISRUPTION_REASON, status="True", reason=reason, message=reason, changed=self.now())
        conditions = conditions_of_claim(claim).set(wish).conditions
        return await self.claims.patch_status(claim, ClaimStatus(conditions=conditions))

    async def _unmark(self, request: UnmarkRequest, ref: ClaimRef, writes: list[Write]) -> None:
        """Condition and taint first, the owner last: a half-removed mark still says whose it is."""
        claim = await self.claims.read(ref.name)
        if claim is None or claim.uid != ref.uid or claim.annotations.get(names.OWNER, "") != request.owner:
            return
        if claim.deleting_since is not None:
            return  # termination owns the taint now (S-20)
        for node in await self.nodes.list_by_provider_id(claim.provider_id):
            untainted = await self._untaint(node)
            if untainted is not None:
                writes.append(node_write(untainted))
        if claim.condition(names.DISRUPTION_REASON) is not None:
            conditions = conditions_of_claim(claim).clear(names.DISRUPTION_REASON).conditions
            claim = await self.claims.patch_status(claim, ClaimStatus(conditions=conditions))
            if claim is None:
                return
        annotations: dict[str, str | None] = {names.OWNER: None} if request.owner else {}  # a predecessor's has none
        if request.rest:
            annotations[names.REST] = rest_text(
                claim, self.now(), request.reason, cancelled=request.rest == "cancelled"
            )
        if annotations:
            claim = await self.claims.patch(claim, MetadataChange(annotations=annotations))
        if claim is not None:
            writes.append(claim_write(claim))

    async def _untaint(self, node: Node) -> Node | None:
        """The node without our taint, where it carried it and is not leaving."""
        rest = tuple(t for t in node.taints if (t.key, t.effect) != (names.DISRUPTED_TAINT, "NoSchedule"))
        if rest == node.taints or node.deleting_since is not None:
            return None
        return await self.nodes.patch(node, MetadataChange(), taints=rest)


def _is_first_try() -> bool:
    return not activity.in_activity() or activity.info().attempt == 1
