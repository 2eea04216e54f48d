"""Waits until the volumes of a drained node are detached, or its deadline has passed.

Third step of TerminateNode and ReleaseNode (TRM-31 to TRM-34). It also writes that the node is drained, in the same
request as the first state of its volumes. Nothing here detaches anything: the attach-detach controller does. A volume
that is taken from a node too early can lose data, so only the deadline ends the wait, or that the instance is gone,
which writes nothing any more: until its Node goes, nobody may take the volume from it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from temporalio import activity

from dovetail.activities.shared.every_step.heartbeats import report
from dovetail.activities.shared.waits.repeated_looks import looks
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.shared.writes.revisions import set_conditions
from dovetail.activities.termination.departing_nodes import nodes_left, nodes_there
from dovetail.activities.termination.holds import HoldMemory, Holds, LeavingClaim
from dovetail.lifecycle.conditions import false, true, unknown
from dovetail.lifecycle.initialization import is_ready
from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.subjects import Departure
from dovetail.messages.writes import Write, claim_write
from dovetail.model.names import DRAINED, VOLUMES_DETACHED
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.objects.workloads import VolumeAttachment
from dovetail.model.own.drain_rules import Blocker
from dovetail.notices.nodes import awaiting_detachment
from dovetail.ports.cloud import Cloud
from dovetail.ports.failures import Failure, NotReadable
from dovetail.ports.objects import NodeClaims, Nodes, Notices
from dovetail.ports.view import VolumeLookups
from dovetail.telemetry.log import departures
from dovetail.telemetry.metrics.karpenters.lifecycle import node_drained
from dovetail.termination import timing
from dovetail.termination.attachments import holding, volume_claim_keys
from dovetail.termination.deadline import deadline_of, tighter, written_deadline
from dovetail.termination.forced import beyond_pods, deadline_of_volumes
from dovetail.termination.ladder import DrainHold, began_at, drain_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachPorts:
    lookups: VolumeLookups
    claims: NodeClaims
    nodes: Nodes
    notices: Notices
    holds: Holds
    cloud: Cloud


class AwaitDetached:
    def __init__(
        self,
        ports: DetachPorts,
        now: Callable[[], float],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.lookups, self.claims, self.nodes = ports.lookups, ports.claims, ports.nodes
        self.notices, self.now, self.pause, self.holds = ports.notices, now, pause, ports.holds
        self.cloud = ports.cloud
        self.known = KnownClaims(ports.lookups, ports.claims)

    @activity.defn
    async def await_detached(self, departure: Departure) -> StepOutcome:
        """Wait for each of the departure's nodes, by the deadline of the claim as it is; without one where it has no
        claim."""
        claim = await self.known.leaving(departure.claim) if departure.claim.uid else None
        deadline = None if claim is None else beyond_pods(claim, deadline_of(claim))
        written, memory, asked = "", HoldMemory(), float("-inf")
        async for _ in looks(self.pause):
            claim = await self.known.find(departure.claim)
            deadline = tighter(deadline, _written(claim))
            try:
                held = await self._held(departure)
            except NotReadable as failure:
                if deadline is None or self.now() <= deadline:
                    raise
                return await self._give_up(departure, f"what cannot be read: {failure}")
            names = ", ".join(attachment.name for attachments in held.values() for attachment in attachments)
            if not names:
                writes = await self._write(departure, true(VOLUMES_DETACHED, self.now()))
                return StepOutcome(message="volumes are off", writes=writes)
            if self.now() - asked >= timing.INSTANCE_LOOK and (silent := self._silent(departure)):
                asked = self.now()
                if await self._are_gone(silent):
                    return StepOutcome(message=f"the instance is gone, with volumes attached: {names}")
            await self._look_at_holds(departure, claim, names, memory)
            report(f"waiting for volumes to detach: {names}" + (f"; {memory.words}" if memory.words else ""))
            if deadline is not None and self.now() > deadline:
                return await self._give_up(departure, names)
            if written != names:
                why = ("AwaitingVolumeDetachment", "Volumes are still attached")
                await self._write(departure, unknown(VOLUMES_DETACHED, self.now(), why))
                written = names
            await self._publish(held)
        raise AssertionError("looks never end")

    async def _give_up(self, departure: Departure, held: str) -> StepOutcome:
        why = ("TerminationGracePeriodElapsed", "Volumes were still attached when the grace period ended")
        writes = await self._write(departure, false(VOLUMES_DETACHED, self.now(), why))
        return StepOutcome(message=f"deadline passed with volumes attached: {held}", writes=writes)

    async def is_held(self, departure: Departure) -> bool:
        """Whether volumes are still attached, or one cannot be read: then the wait for them begins, and has an end."""
        try:
            return any((await self._held(departure)).values())
        except NotReadable:
            return True

    async def say_detached(self, departure: Departure) -> tuple[Write, ...]:
        """Write on the claim that nothing is attached any more."""
        return await self._write(departure, true(VOLUMES_DETACHED, self.now()))

    def _silent(self, departure: Departure) -> frozenset[str]:
        """The instances that the nodes name, where no kubelet shows that one is there (TRM-5)."""
        nodes = nodes_left(self.lookups, departure)
        return frozenset() if any(is_ready(node) for node in nodes) else frozenset(node.provider_id for node in nodes)

    async def _are_gone(self, instances: frozenset[str]) -> bool:
        """Whether the cloud says so; one that does not answer is no proof."""
        if "" in instances:
            return False
        try:
            return all([await self.cloud.find(provider_id=each) is None for each in instances])
        except Failure as failure:
            report(f"the node is not ready, and the cloud does not say whether its instance is there: {failure}")
            return False

    async def _look_at_holds(
        self, departure: Departure, claim: NodeClaim | None, volumes: str, memory: HoldMemory
    ) -> None:
        if claim is None:
            return
        hold = DrainHold(blockers=frozenset({Blocker.VOLUMES_ATTACHED}), reason=drain_reason(claim), says=volumes)
        nodes = tuple(nodes_left(self.lookups, departure))
        await self.holds.look(LeavingClaim(claim=claim, began=began_at(claim), nodes=nodes, hold=hold), memory)

    async def _held(self, departure: Departure) -> dict[str, tuple[VolumeAttachment, ...]]:
        """The attachments to wait for, by node. A node that is gone holds none, even if another one has its name
        now."""
        return {node.name: self._holding(node.name) for node in await nodes_there(self.lookups, self.nodes, departure)}

    def _holding(self, node: str) -> tuple[VolumeAttachment, ...]:
        attachments = self.lookups.attachments_on(node)
        if not attachments:
            return ()
        staying = volume_claim_keys(self.lookups.pods_on(node), self.now())
        claims = [claim for key in staying if (claim := self.lookups.volume_claim(key)) and claim.volume_name]
        return holding(attachments, [(claim, self.lookups.volume(claim.volume_name)) for claim in claims])

    async def _write(self, departure: Departure, condition: Condition) -> tuple[Write, ...]:
        """The condition, and Drained with it, on the claim; a node without a claim has no conditions (TRM-10)."""
        claim = await self.known.find(departure.claim)
        if claim is None:
            return ()
        written = await set_conditions(self.claims, claim, true(DRAINED, self.now()), condition)
        if written is not None and not claim.is_true(DRAINED):
            node_drained(claim)
            departures.drained(written)
        return () if written is None else (claim_write(written),)

    async def _publish(self, held: dict[str, tuple[VolumeAttachment, ...]]) -> None:
        for node, attachments in held.items():
            found = self.lookups.node(node)
            if attachments and found is not None:
                await self.notices.publish(awaiting_detachment(found, tuple(a.name for a in attachments)))


def _written(claim: NodeClaim | None) -> float | None:
    """The node's deadline as it is written now, or that of a force which was meant for its volumes."""
    return None if claim is None else deadline_of_volumes(claim, beyond_pods(claim, written_deadline(claim)))
