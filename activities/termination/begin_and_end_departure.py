"""Begins and ends the departure of a node: before the drain, and after the instance is gone.

First and last step of TerminateNode and ReleaseNode. The beginning finds everything that belongs to the claim,
including an instance that was launched but never recorded (DUR-3), fixes the deadline, and makes both ways of deleting
(node or claim) the same. The end takes the finalizers off: the Node's, and once the Node is gone the claim's, so that
no Node leaves without a claim that shows it. Before that it looks once more for an instance of a late launch.
"""

from collections.abc import Callable
from dataclasses import dataclass

from temporalio import activity

from dovetail.activities.launch.kept_places import KeptPlaces
from dovetail.activities.shared.writes.known_claims import KnownClaims, is_same
from dovetail.activities.shared.writes.revisions import revise_claim, revise_node, revise_status
from dovetail.activities.termination.departing_nodes import belongs_to
from dovetail.activities.termination.holds import Holds
from dovetail.activities.termination.unused_launches import UnusedLaunches
from dovetail.lifecycle.conditions import claim_conditions_with, unknown
from dovetail.lifecycle.initialization import is_ready
from dovetail.lifecycle.registration import NodeChange
from dovetail.messages.inputs import NodeInput
from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.writes import Write, claim_write, node_write
from dovetail.model.names import (
    CAPACITY_TYPE,
    DISRUPTION_REASON,
    DRAINED,
    INSTANCE_TYPE,
    LAUNCHED,
    REGISTERED_CONDITION,
    TERMINATION_DEADLINE,
    TERMINATION_FINALIZER,
    ZONE,
)
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.reasons.endings import BY_OTHERS_WORDS, Ending, WhyGone, ended_of
from dovetail.ports.cloud import Cloud
from dovetail.ports.failures import Postponed, Refused
from dovetail.ports.objects import ClaimStatus, MetadataChange, Nodes
from dovetail.telemetry.log import departures
from dovetail.telemetry.metrics.karpenters.lifecycle import claim_terminated, node_terminated
from dovetail.termination.deadline import deadline_of, deadline_to_write
from dovetail.termination.evictions import plan_evictions
from dovetail.termination.leaving import finalizers_left, held_words, leaving_labels, leaving_taints, tainted_since
from dovetail.termination.timing import HELD_LOOKS

FORCEFUL = "Forceful Termination"  # TRM-29: deleted, and no disruption of ours says why


class NodesHeld(Postponed):
    """Everything of ours is done except the claim's finalizer: finalizers of others hold its Node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeparturePorts:
    known: KnownClaims
    nodes: Nodes
    cloud: Cloud
    unused: UnusedLaunches  # counts launches that came to nothing
    places: KeptPlaces  # takes nominations back
    holds: Holds
    console: str  # the command that prints what an instance said as it started, with {instance}


class BeginAndEndDeparture:
    """The steps around drain and termination."""

    def __init__(self, ports: DeparturePorts, now: Callable[[], float]) -> None:
        self.known, self.claims, self.nodes = ports.known, ports.known.claims, ports.nodes
        self.cloud, self.unused, self.places, self.now = ports.cloud, ports.unused, ports.places, now
        self.console, self.holds = ports.console, ports.holds

    @activity.defn
    async def begin_departure(self, ref: ClaimRef) -> Departure:
        """Find what leaves and by when; taint its nodes and delete them."""
        claim = await self.known.leaving(ref)
        if claim is None or TERMINATION_FINALIZER not in claim.finalizers:
            return Departure(claim=ref, claim_gone=True)
        written = await self._fix_deadline(claim)
        if written is None:
            return Departure(claim=ref, claim_gone=True)
        provider_id = written.provider_id or await self._never_written_down(ref.uid)
        nodes = await self._nodes_of(written, provider_id)
        gone = await self._instance_gone(provider_id, nodes)
        tainted = tainted_since(written, nodes, self.now())
        await self.unused.remember_for_buffers(written)
        writes = [await self._taint_and_delete(node, ref.name, tainted=not gone) for node in nodes]
        await self._give_places_up(written, nodes)
        if nodes and not gone and (reason_of(written) == FORCEFUL or self._pods_wait(nodes)):
            written = await self._write_draining(written) or written
        ended = self._ended(written, provider_id)
        return Departure(
            claim=ref,
            provider_id=provider_id,
            nodes=tuple(node.name for node in nodes),
            node_uids=tuple(node.uid for node in nodes),
            deadline=deadline_of(written),
            reason=reason_of(written),
            instance_gone=gone,
            writes=(claim_write(written), *writes),
            tainted=tainted,
            is_final=True,
            instance_type=written.labels.get(INSTANCE_TYPE, ""),
            zone=written.labels.get(ZONE, ""),
            capacity_type=written.labels.get(CAPACITY_TYPE, ""),
            launched=_launched(written),
            expires=written.expires_at,
            on_demand_since=memory_of(written.annotations).on_demand_since,
            because=ended.because,
            because_words=ended.words,
        )

    @activity.defn
    async def release_claim(self, departure: Departure) -> StepOutcome:
        """Take the finalizers off, the nodes' first, and the claim's once they are gone (TRM-11, TRM-37, LIF-55).

        A Node that others hold makes this step try again, ever more slowly: that costs no events, needs no worker
        meanwhile, and Temporal shows who holds it (decision 199)."""
        claim = await self.known.leaving(departure.claim)
        if claim is not None and claim.provider_id and await self._is_there(claim.provider_id):
            raise Postponed(f"NodeClaim/{claim.name}", f"its instance {claim.provider_id} is not gone", 5.0)
        return await self.release(departure, claim)

    async def release(self, departure: Departure, claim: NodeClaim | None) -> StepOutcome:
        """Release a claim that leaves and its nodes, whose instance is known to be gone. `claim`: None where the claim
        is gone."""
        ref = departure.claim
        listed = tuple(node for node in self.known.nodes_of(departure.provider_id) if belongs_to(node, ref, claim))
        left = (
            *await self._release_nodes(departure, claim, listed),
            *await self._release_late_nodes(departure, listed),
        )
        writes = tuple(each.write for each in left)
        if claim is None:
            return StepOutcome(message="already gone", writes=writes)
        await self._no_late_launch(claim)
        await self._give_places_up(claim, listed)  # what was nominated while the departure began
        held = held_words(each.node for each in left if each.node is not None)
        if held:
            attempt = activity.info().attempt if activity.in_activity() else 1
            raise NodesHeld(
                f"NodeClaim/{ref.name}", f"it stays until its Node is gone: {held}", HELD_LOOKS.pause(attempt)
            )
        await self.unused.remember(claim)
        written = await revise_claim(self.claims, claim, _without_finalizer)
        if TERMINATION_FINALIZER in claim.finalizers:
            claim_terminated(claim, self.now())
            departures.deleted_claim(claim)
        version = claim_write(written).version if written is not None and written.finalizers else 0
        return StepOutcome(
            message="released",
            writes=(*writes, Write(kind="NodeClaim", name=ref.name, uid=ref.uid, version=version)),
        )

    @activity.defn
    async def begin_release(self, given: NodeInput) -> Departure:
        """Begin to release a deleting node without a claim: no deadline, and its instance is not ours to terminate
        (TRM-10)."""
        ref = ClaimRef(name="", uid="")
        node = await self.nodes.read(given.node)
        if node is None or node.uid != given.uid or TERMINATION_FINALIZER not in node.finalizers:
            return Departure(claim=ref, claim_gone=True)
        if node.deleting_since is None:
            raise Refused(f"Node/{given.node}", "is not being deleted, so it cannot be released")
        await self._refuse_claimed(node)
        gone = await self._instance_gone(node.provider_id, (node,))
        write = await self._taint_and_delete(node, tainted=not gone)
        return Departure(
            claim=ref,
            provider_id=node.provider_id,
            nodes=(node.name,),
            node_uids=(node.uid,),
            reason=FORCEFUL,
            instance_gone=gone,
            writes=(write,),
            because=Ending.BY_OTHERS,
            because_words=BY_OTHERS_WORDS,
        )

    @activity.defn
    async def release_node(self, departure: Departure) -> StepOutcome:
        """Take the finalizer off a node that has no claim, once it is empty or its instance is gone."""
        left = []
        for name, uid in zip(departure.nodes, departure.node_uids, strict=True):
            node = await self.nodes.read(name)
            if node is not None and node.uid == uid:
                await self._refuse_what_stays(node)
                left.append(await self._release(node, ""))
        return StepOutcome(message="released", writes=tuple(each.write for each in left))

    async def _refuse_what_stays(self, node: Node) -> None:
        """Refuse a node that is not being deleted, one that has a claim, and one that is still being drained."""
        if node.deleting_since is None:
            raise Refused(f"Node/{node.name}", "is not being deleted, so it cannot be released")
        await self._refuse_claimed(node)
        waiting = plan_evictions(self.known.lookups.pods_on(node.name), None, self.now()).waiting
        if waiting and not await self._instance_gone(node.provider_id, (node,)):
            raise Postponed(f"Node/{node.name}", f"{len(waiting)} pods are still to leave it", 5.0)

    async def _refuse_claimed(self, node: Node) -> None:
        """Refuse a node whose claim stands, by the API server: one that nobody can read (NotReadable) is in no snapshot
        and may have hooks, so no pod leaves either."""
        for owner in node.owners:
            claim = await self.claims.read(owner.name) if owner.kind == "NodeClaim" else None
            if is_same(claim, owner.uid):
                raise Refused(f"Node/{node.name}", f"NodeClaim {owner.name} stands for it and releases it")

    async def _is_there(self, provider_id: str) -> bool:
        return await self.cloud.find(provider_id=provider_id) is not None

    def _ended(self, claim: NodeClaim, provider_id: str) -> WhyGone:
        """Why it leaves; for one that never joined, including where a person can see how far it came."""
        ended = ended_of(claim, self.known.lookups.has_pool)
        if ended.because != Ending.UNREGISTERED or not provider_id:
            return ended
        instance = provider_id.rpartition("/")[2]
        look = f"; its console: {self.console.format(instance=instance)}" if self.console else ""
        return WhyGone(because=ended.because, words=f"{ended.words}; instance {instance}{look}")

    async def _fix_deadline(self, claim: NodeClaim) -> NodeClaim | None:
        def with_deadline(found: NodeClaim) -> MetadataChange | None:
            text = deadline_to_write(found)
            return None if text is None else MetadataChange(annotations={TERMINATION_DEADLINE: text})

        written = await revise_claim(self.claims, claim, with_deadline)
        deadline = written.annotations.get(TERMINATION_DEADLINE, "") if written is not None else ""
        if deadline and deadline != claim.annotations.get(TERMINATION_DEADLINE):
            departures.annotated(claim, deadline)
        return written

    async def _never_written_down(self, claim_uid: str) -> str:
        """DUR-3: launched, but the claim was deleted before its status could record it."""
        instance = await self.cloud.find(claim_uid=claim_uid)
        return "" if instance is None else instance.provider_id

    async def _nodes_of(self, claim: NodeClaim, provider_id: str) -> tuple[Node, ...]:
        """LIF-52: the nodes of a registered claim. One that never registered is left to the cloud's node controller,
        unless it carries our finalizer: then it was registered and only the claim does not know yet (DUR-5)."""
        if not provider_id:
            return ()
        nodes = self.known.nodes_of(provider_id)
        if not claim.is_true(REGISTERED_CONDITION):
            return tuple(node for node in nodes if TERMINATION_FINALIZER in node.finalizers)
        if claim.node_name in {node.name for node in nodes}:
            return nodes
        # The look-up by instance may lag behind the claim, which has its node's name; and a Node that its kubelet has
        # made anew names its instance a moment later.
        own = await self.nodes.read(claim.node_name) if claim.node_name else None
        return nodes if own is None or own.provider_id not in ("", provider_id) else (*nodes, own)

    async def _give_places_up(self, claim: NodeClaim, nodes: tuple[Node, ...]) -> None:
        """Its pods need another node: what plans one must see them without a nomination (PLQ-36)."""
        known = self.known.nodes_of(claim.provider_id)  # one that never registered as well
        await self.places.give_up(claim, [node.name for node in (*nodes, *known)])

    async def _instance_gone(self, provider_id: str, nodes: tuple[Node, ...]) -> bool:
        """TRM-5: the cloud is asked only where no kubelet shows that the instance is there."""
        if not provider_id or any(is_ready(node) for node in nodes):
            return False
        return await self.cloud.find(provider_id=provider_id) is None

    async def _taint_and_delete(self, node: Node, claim: str = "", *, tainted: bool) -> Write:
        """Taint first, so that no pod is bound between the two."""
        if tainted:
            before, node = node, await revise_node(self.nodes, node, _leaving) or node
            if leaving_taints(before) is not None and leaving_taints(node) is None:
                departures.tainted(node.name, claim)
        if node.deleting_since is not None:
            return node_write(node)
        version = await self.nodes.delete(node.name, node.uid)
        return Write(kind="Node", name=node.name, uid=node.uid, version=version)

    def _pods_wait(self, nodes: tuple[Node, ...]) -> bool:
        """Whether the drain is worth a condition. An empty node will be drained a moment later; a node that a
        disruption has marked shows by that mark since when it gets no pods."""
        pods = [self.known.lookups.pods_on(node.name) for node in nodes]
        return any(plan_evictions(of_node, None, self.now()).waiting for of_node in pods)

    async def _write_draining(self, claim: NodeClaim) -> NodeClaim | None:
        """TRM-12, before the drain begins."""

        def draining(found: NodeClaim) -> ClaimStatus | None:
            if found.condition(DRAINED) is not None:
                return None
            condition = unknown(DRAINED, self.now(), ("Draining", "Draining"))
            return ClaimStatus(conditions=claim_conditions_with(found, condition))

        return await revise_status(self.claims, claim, draining)

    async def _release_nodes(
        self, departure: Departure, claim: NodeClaim | None, listed: tuple[Node, ...]
    ) -> tuple["_Left", ...]:
        live, left = {node.uid: node for node in listed}, []
        for name, uid in zip(departure.nodes, departure.node_uids, strict=True):
            node = live.get(uid) or await self.nodes.read(name)  # the look-up by instance may lag
            if node is not None and node.uid == uid and belongs_to(node, departure.claim, claim):
                left.append(await self._release(node, departure.claim.name))
        return tuple(left)

    async def _release_late_nodes(self, departure: Departure, listed: tuple[Node, ...]) -> tuple["_Left", ...]:
        """Release nodes that were registered while the departure was under way: their instance is gone, so there is
        nothing to drain. An earlier attempt may have released them."""
        late = [node for node in listed if node.uid not in departure.node_uids]
        ours = [node for node in late if TERMINATION_FINALIZER in node.finalizers or node.deleting_since is not None]
        for node in ours:
            await self._taint_and_delete(node, tainted=False)
        return tuple([await self._release(node, departure.claim.name) for node in ours])

    async def _release(self, node: Node, claim: str) -> "_Left":
        left = await revise_node(self.nodes, node, _released)
        if TERMINATION_FINALIZER in node.finalizers:
            node_terminated(node, self.now())
            departures.deleted_node(node.name, claim)
        version = node_write(left).version if left is not None and left.finalizers else 0
        return _Left(node=left, write=Write(kind="Node", name=node.name, uid=node.uid, version=version))

    async def _no_late_launch(self, claim: NodeClaim) -> None:
        """An overtaken launch may still have made an instance, which must not outlive the finalizer (DUR-3, DUR-30)."""
        if claim.provider_id:
            return
        instance = await self.cloud.find(claim_uid=claim.uid)
        if instance is not None and await self.cloud.terminate(instance.provider_id, claim.name) != "gone":
            raise Postponed(
                f"NodeClaim/{claim.name}", f"a late launch made {instance.provider_id}; it is terminating", 5.0
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """A node without our finalizer; None where it is gone."""

    node: Node | None
    write: Write


def _leaving(node: Node) -> NodeChange:
    """With our finalizer, which a Node made anew by its kubelet lacks: it would be gone before its pods have left."""
    held = node.deleting_since is not None or TERMINATION_FINALIZER in node.finalizers
    finalizers = None if held else (*node.finalizers, TERMINATION_FINALIZER)
    return NodeChange(labels=leaving_labels(node), annotations={}, taints=leaving_taints(node), finalizers=finalizers)


def _released(node: Node) -> NodeChange:
    return NodeChange(labels={}, annotations={}, finalizers=finalizers_left(node.finalizers))


def _without_finalizer(claim: NodeClaim) -> MetadataChange | None:
    left = finalizers_left(claim.finalizers)
    return None if left is None else MetadataChange(finalizers=left)


def _launched(claim: NodeClaim) -> float | None:
    condition = claim.condition(LAUNCHED)
    return condition.changed if condition is not None and condition.status == "True" else None


def reason_of(claim: NodeClaim) -> str:
    """Why a claim leaves, as notices and metrics say it."""
    condition = claim.condition(DISRUPTION_REASON)
    return condition.reason if condition is not None and condition.status == "True" else FORCEFUL
