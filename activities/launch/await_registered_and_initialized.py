"""Waits until a launched instance is a node that is ready for pods.

The second step of LaunchNode, in two parts. Both look at the cache, write the Node in one change, then the claim. A
node that is ready when it joins is registered and initialised by the same two writes; if it becomes ready a moment
later, the claim still gets both in one write. Each part ends at once when the claim is deleted or gone. The reason why
a node is not ready is written only once it has lasted for a while, so that a start costs few requests and rarely
conflicts with other writers. Where the claim keeps places for its pods, the step continues until they are bound or the
kube-scheduler has had its chance.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from temporalio import activity

from dovetail.activities.launch.kept_places import KeptPlaces, Nominated
from dovetail.activities.shared.every_step.heartbeats import report
from dovetail.activities.shared.waits.repeated_looks import looks
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.shared.writes.revisions import revise_node, revise_status, set_conditions
from dovetail.disruption.upkeep.conditions import consolidatable, is_consolidatable_at_once
from dovetail.lifecycle.conditions import claim_conditions_with, conditions_of_claim, false, true, unknown
from dovetail.lifecycle.initialization import Why, blocker, registered_and_ready
from dovetail.lifecycle.liveness import REGISTRATION_SECONDS, registration_overdue
from dovetail.lifecycle.node_checks import CONSISTENT, lacking
from dovetail.lifecycle.registration import (
    HOOK_PENDING,
    MULTIPLE_NODES,
    NODE_NOT_FOUND,
    NodeChange,
    came_unmarked,
)
from dovetail.lifecycle.unfinished import reference
from dovetail.messages.outcomes import JoinOutcome
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import claim_write, node_write
from dovetail.model.names import (
    INITIALIZED,
    INITIALIZED_CONDITION,
    NODE_POOL,
    REGISTERED_CONDITION,
    REGISTRATION_HOOK,
    TERMINATION_FINALIZER,
)
from dovetail.model.nodes import FALSE, Condition, Node, NodeClaim
from dovetail.model.objects.judging import Judging
from dovetail.placement.earlier_claims import BINDING_SECONDS
from dovetail.ports.objects import ClaimStatus, NodeClaims, Nodes
from dovetail.ports.view import ClusterLookups
from dovetail.telemetry.log import arrivals
from dovetail.telemetry.metrics.karpenters.lifecycle import disrupted, node_created

# Nodes read and written at once: with sixty, each write waits behind fifty-nine others, and the kubelet writes first.
AT_ONCE = 4
# How long nominations are waited for: until each has been seen once, and then until all are seen together, since others
# may be taken away meanwhile. A busy API server needs seconds to show the first. A node that is opened before gives the
# room of the nominated pods to others.
EACH_SECONDS, TOGETHER_SECONDS, SEEN_PAUSE = 5.0, 0.3, 0.02
LASTING_SECONDS = 5.0  # a reason that passes sooner is not worth a request


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPorts:
    lookups: ClusterLookups
    claims: NodeClaims
    nodes: Nodes
    places: KeptPlaces  # nominates the pods that wait for the node


class AwaitRegisteredAndInitialized:
    def __init__(
        self, ports: JoinPorts, now: Callable[[], float], pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self.lookups, self.claims, self.nodes, self.places = ports.lookups, ports.claims, ports.nodes, ports.places
        self.now, self.pause = now, pause
        self.known = KnownClaims(ports.lookups, ports.claims)
        self.slots = asyncio.Semaphore(AT_ONCE)

    @activity.defn
    async def await_joined(self, ref: ClaimRef) -> JoinOutcome:
        """Wait until the claim's Node is ready for pods (LIF-20 to LIF-38).

        If the node came without the taint that it should have, that must be published at once, so the step ends with
        the registration.
        """
        with self._following(ref):
            registered = await self.await_registered(ref)
            if registered.kind != "done" or registered.unmarked:
                return registered
            initialised = await self.await_initialized(ref)
        return replace(initialised, writes=(*registered.writes, *initialised.writes))

    async def await_registered(self, ref: ClaimRef) -> JoinOutcome:
        """Wait for the claim's Node and register it (LIF-20 to LIF-29)."""
        nominated = Nominated()
        async for _ in looks(self.pause):
            claim = await self._claim(ref)
            if isinstance(claim, JoinOutcome):
                return claim
            if claim.is_true(REGISTERED_CONDITION):
                return JoinOutcome(kind="done", node=claim.node_name)
            nodes = self.lookups.nodes_of(claim.provider_id)
            report(f"waiting for a node of {claim.provider_id or 'an instance that is not written down yet'}")
            if _may_register(claim, nodes):
                # Before the time limit: a node that joined while nobody looked is kept, and may have pods already.
                outcome = await self._register(claim, nodes[0], nominated)
                if outcome is not None:
                    return outcome
            elif registration_overdue(claim, self.now()):
                disrupted(claim, "registration_timeout")
                arrivals.registration_overdue(claim, REGISTRATION_SECONDS)
                return JoinOutcome(kind="timed_out", message=f"no node within {REGISTRATION_SECONDS:.0f} s")
            else:
                await self._say_why_not(claim, nodes)
        raise AssertionError("looks never end")

    @activity.defn
    async def await_initialized(self, ref: ClaimRef) -> JoinOutcome:
        """Wait until the Node is ready for pods (LIF-30 to LIF-38). There is no time limit (LIF-39)."""
        nominated = Nominated()
        with self._following(ref):
            initialised = await self._await_initialized(ref, nominated)
            return await self._await_bound(ref, initialised, nominated) if initialised.kind == "done" else initialised

    async def _await_initialized(self, ref: ClaimRef, nominated: Nominated) -> JoinOutcome:
        lasting = _Lasting(self.now)
        async for _ in looks(self.pause):
            claim = await self._claim(ref)
            if isinstance(claim, JoinOutcome):
                return claim
            if claim.is_true(INITIALIZED_CONDITION):
                return JoinOutcome(kind="done", node=claim.node_name)
            if not claim.is_true(REGISTERED_CONDITION):
                report("waiting for the cache to know of the registration")
                continue
            nodes = self.lookups.nodes_of(claim.provider_id)
            for node in nodes:
                await self.places.keep(claim, node.name, nominated)
            why = blocker(claim, nodes, self.lookups.slices_on(nodes[0].name) if nodes else None)
            if why is None:
                outcome = await self._initialize(claim, nodes[0])
                if outcome is not None:
                    return outcome
                continue
            report(f"{why[0]}: {why[1]}")
            if lasting.for_long(why):
                await set_conditions(self.claims, claim, unknown(INITIALIZED_CONDITION, self.now(), why))
        raise AssertionError("looks never end")

    async def _await_bound(self, ref: ClaimRef, initialised: JoinOutcome, nominated: Nominated) -> JoinOutcome:
        """Keep the places of pods until all are bound, or the kube-scheduler can no longer be expected to bind them."""
        until = self.now() + BINDING_SECONDS
        async for _ in looks(self.pause):
            claim = await self._claim(ref)
            if isinstance(claim, JoinOutcome):
                return claim
            condition = claim.condition(INITIALIZED_CONDITION)
            if condition is not None and condition.status == "True":
                until = min(until, condition.changed + BINDING_SECONDS)
            if self.now() >= until or not self.places.awaits(claim):
                return initialised
            report("the node is ready; its places are kept until their pods are bound")
            await self.places.keep(claim, initialised.node, nominated)
        raise AssertionError("looks never end")

    async def _until_places_stand(self, claim: NodeClaim) -> None:
        began, seen = self.now(), set[str]()
        while not self.places.stand(claim, seen):
            waited = self.now() - began
            if waited >= (TOGETHER_SECONDS if self.places.each_seen(claim, seen) else EACH_SECONDS):
                return
            await self.pause(SEEN_PAUSE)

    @contextmanager
    def _following(self, ref: ClaimRef) -> Iterator[None]:
        """Keep the places of the claim, at most until the step ends."""
        try:
            yield
        finally:
            self.places.leave(ref.name)

    async def _claim(self, ref: ClaimRef) -> NodeClaim | JoinOutcome:
        """The claim as known, or the outcome of one that is being deleted or gone."""
        claim = await self.known.find(ref)
        if claim is None:
            return JoinOutcome(kind="gone")
        if claim.deleting_since is not None:
            return JoinOutcome(kind="deleting", node=claim.node_name)
        return claim

    async def _register(self, claim: NodeClaim, cached: Node, nominated: Nominated) -> JoinOutcome | None:
        unmarked = ""

        def registered(found: Node) -> NodeChange:
            nonlocal unmarked
            unmarked = "the node came without the unregistered taint" if came_unmarked(found) else ""
            return registered_and_ready(claim, found, self.lookups.slices_on(found.name))

        async with self.slots:
            await self.places.keep(claim, cached.name, nominated)  # just before the node is open for pods
            await self._until_places_stand(claim)
            # As the watch has it now: the write is guarded by that version, so only one that is behind costs a read.
            newest = next((node for node in self.lookups.nodes_of(claim.provider_id) if node.uid == cached.uid), None)
            node = None if newest is None else await revise_node(self.nodes, newest, registered)
        if node is None:
            return None
        reached = [true(REGISTERED_CONDITION, self.now())]
        if not unmarked:
            node = await self._ready_soon(claim, node, nominated)
        now, initialised = self.now(), node.labels.get(INITIALIZED) == "true"
        if initialised:
            reached += self._ready(claim, node, now)
        elif why := blocker(claim, (node,), self.lookups.slices_on(node.name)):
            reached.append(unknown(INITIALIZED_CONDITION, now, why))  # it mostly lasts, and here it costs no request
        written = await self._set(claim, node.name, *reached)
        if written is None:
            return JoinOutcome(kind="gone", node=node.name)
        node_created(written)
        arrivals.registered(written, node.name)
        if initialised:
            arrivals.initialized(written, node.name)
        return JoinOutcome(
            kind="done",
            node=node.name,
            message=unmarked,
            unmarked=bool(unmarked),
            writes=(node_write(node), claim_write(written)),
        )

    async def _ready_soon(self, registered: NodeClaim, node: Node, nominated: Nominated) -> Node:
        """The registered node, with the label of an initialised one if it becomes ready within a moment. A cache that
        does not show the registration yet still shows the unregistered taint, which is a blocker."""
        if node.labels.get(INITIALIZED) == "true":
            return node
        until = self.now() + LASTING_SECONDS
        async for _ in looks(self.pause):
            claim = await self._claim(reference(registered))
            if isinstance(claim, JoinOutcome) or self.now() >= until:
                break
            await self.places.keep(claim, node.name, nominated)
            known = self.lookups.nodes_of(claim.provider_id)
            if blocker(claim, known, self.lookups.slices_on(node.name)) is None:
                return await self._label(known[0]) or node
        return node

    async def _label(self, cached: Node) -> Node | None:
        """The node with the label of an initialised one; None where it is gone."""
        labels = {} if cached.labels.get(INITIALIZED) == "true" else {INITIALIZED: "true"}
        async with self.slots:
            return await revise_node(self.nodes, cached, lambda _: NodeChange(labels=labels, annotations={}))

    async def _initialize(self, claim: NodeClaim, cached: Node) -> JoinOutcome | None:
        node = await self._label(cached)
        if node is None:
            return None
        written = await self._set(claim, node.name, *self._ready(claim, node, self.now()))
        if written is None:
            return JoinOutcome(kind="gone", node=node.name)
        arrivals.initialized(written, node.name)
        return JoinOutcome(kind="done", node=node.name, writes=(node_write(node), claim_write(written)))

    async def _set(self, claim: NodeClaim, node: str, *reached: Condition) -> NodeClaim | None:
        """The claim with these conditions and its node's name, in one call."""

        def status_of(found: NodeClaim) -> ClaimStatus:
            conditions = claim_conditions_with(found, *reached)
            return ClaimStatus(node_name=node, conditions=conditions)

        return await revise_status(self.claims, claim, status_of)

    def _ready(self, claim: NodeClaim, node: Node, now: float) -> list[Condition]:
        """The conditions of a claim whose node is ready: initialised, consistent if it is as large as what was launched
        (LIF-77), and consolidatable if its NodePool asks for no quiet. Otherwise upkeep would write to every claim once
        more; it still does in the less simple cases."""
        same_size = Judging().judge(claim, "consistency", lacking, claim, node) == ()
        said = [true(INITIALIZED_CONDITION, now), *([true(CONSISTENT, now)] if same_size else [])]
        pool = self.lookups.pool(claim.labels.get(NODE_POOL, ""))
        initialised = replace(claim, conditions=(said[0], *claim.conditions))
        if pool is not None and is_consolidatable_at_once(initialised, pool, now):
            said.append(consolidatable(now))
        return said

    async def _say_why_not(self, claim: NodeClaim, nodes: tuple[Node, ...]) -> None:
        hook = claim.annotations.get(REGISTRATION_HOOK, "")
        if len(nodes) > 1:
            # Terminal: no step leaves it, and the time limit deletes the claim (LIF-21).
            await set_conditions(self.claims, claim, false(REGISTERED_CONDITION, self.now(), MULTIPLE_NODES))
        elif nodes and hook:
            await self._write_registering(claim, (HOOK_PENDING, hook))
        elif claim.provider_id:
            await self._write_registering(claim, NODE_NOT_FOUND)

    async def _write_registering(self, claim: NodeClaim, why: Why) -> None:
        found = conditions_of_claim(claim).find(REGISTERED_CONDITION)
        if found is not None and (found.reason, found.message) != why and not _failed(claim):
            await set_conditions(self.claims, claim, unknown(REGISTERED_CONDITION, self.now(), why))


class _Lasting:
    """Since when the reason has been the same."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now, self.why, self.since = now, ("", ""), 0.0

    def for_long(self, why: Why) -> bool:
        if why != self.why:
            self.why, self.since = why, self.now()
        return self.now() - self.since >= LASTING_SECONDS


def _may_register(claim: NodeClaim, nodes: tuple[Node, ...]) -> bool:
    """Whether it has one Node, and the cloud has nothing left to say of the instance that pods may ask for (AWS-95). A
    Node with our finalizer was registered already: only the claim does not say so yet (DUR-5)."""
    if len(nodes) != 1 or _failed(claim):
        return False
    return not claim.annotations.get(REGISTRATION_HOOK) or TERMINATION_FINALIZER in nodes[0].finalizers


def _failed(claim: NodeClaim) -> bool:
    condition = claim.condition(REGISTERED_CONDITION)
    return condition is not None and condition.status == FALSE
