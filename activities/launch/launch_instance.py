"""Launches the instance of a claim, once.

The first step of LaunchNode. Whatever crashed before, one claim has one instance: an instance that carries the claim's
UID is adopted; otherwise the request and its generation are frozen on the claim before the call, and every retry makes
the same call with the same token (DUR-1). If the claim is deleted while the call is under way, the launched instance is
still recorded, so that the termination finds it (DUR-3).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from temporalio import activity

from dovetail.activities.launch.launch_groups import LaunchGroups
from dovetail.activities.shared.every_step.heartbeats import report
from dovetail.activities.shared.writes.known_claims import KnownClaims, is_same
from dovetail.activities.shared.writes.revisions import revise_claim, revise_status, set_conditions
from dovetail.lifecycle.conditions import claim_conditions_with, true, unknown
from dovetail.lifecycle.launch_requests import (
    GroupShare,
    LaunchRequest,
    UnreadableRequest,
    changed_annotations,
    frozen_request,
    group_of,
    is_called,
    missing_labels,
    request_text,
    token_of,
)
from dovetail.lifecycle.liveness import LAUNCH_SECONDS, launch_overdue
from dovetail.lifecycle.registration import NODE_NOT_FOUND
from dovetail.messages.outcomes import LaunchOutcome
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import claim_write
from dovetail.model import names
from dovetail.model.names import LAUNCH_REQUEST, LAUNCHED, NODE_POOL, REGISTERED_CONDITION, TERMINATION_FINALIZER
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_active
from dovetail.model.own.claim_memory import GONE, memory_of, remembering
from dovetail.model.places.kept_places import planned_pods
from dovetail.model.pods import Pod
from dovetail.model.values.hashing import is_other
from dovetail.notices.claims import insufficient_capacity, launch_warning, pod_without_capacity
from dovetail.ports.cloud import Catalogues, ClassNotReady, Cloud, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Conflict, Failure, NotSeenYet, Retryable, worth_retrying
from dovetail.ports.objects import ClaimStatus, MetadataChange, Notices
from dovetail.telemetry.log import arrivals
from dovetail.telemetry.metrics.karpenters.lifecycle import disrupted
from dovetail.telemetry.metrics.ours.outcomes import launched

# What a launch came to, as metrics have it.
_OUTCOMES = {
    Instance: "launched",
    NoCapacity: "no_capacity",
    ClassNotReady: "class_not_ready",
    LaunchRefused: "refused",
    type(None): "timed_out",
}

_Found = Instance | NoCapacity | ClassNotReady | LaunchRefused

ENDING = ("terminating", "stopping", "stopped")  # no node will come of it
MOST_PODS = 10  # of one claim that get an Event about its launch
MESSAGE_BYTES = 300  # LIF-12: what a condition holds of an error's text


class _Overtaken(Exception):
    """The claim is gone or being deleted, so nothing more is launched for it."""


@dataclass(slots=True)
class _Attempt:
    """One attempt, with the claim as it last wrote or read it: with an older version it would conflict with its own
    writes."""

    claim: NodeClaim


class LaunchInstance:
    def __init__(
        self,
        known: KnownClaims,
        cloud: Cloud,
        notices: Notices,
        now: Callable[[], float],
        catalogues: Catalogues,
    ) -> None:
        self.known, self.claims = known, known.claims
        self.cloud, self.notices, self.now = cloud, notices, now
        self.catalogues = catalogues
        self.groups = LaunchGroups()

    @activity.defn
    async def launch_instance(self, ref: ClaimRef) -> LaunchOutcome:
        """Find or launch the claim's instance, and record it."""
        claim = await self._claim(ref)
        if claim is None:
            # An earlier try may have launched for it and not have got that terminated.
            left = await self.cloud.find(claim_uid=ref.uid)
            if left is not None and left.state != "terminating":
                await self.cloud.terminate(left.provider_id, ref.name)
            return LaunchOutcome(kind="gone")
        if claim.deleting_since is not None and (claim.provider_id or not group_of(claim)):
            # With a share in a group it may have an instance that only the group's call names.
            return LaunchOutcome(kind="deleting", provider_id=claim.provider_id)
        if claim.provider_id and claim.is_true(LAUNCHED):
            return LaunchOutcome(kind="launched", provider_id=claim.provider_id)
        attempt = _Attempt(claim)
        try:
            found = await self._obtain(attempt)
        except _Overtaken:
            return await self._overtaken(ref)
        except Conflict:
            raise  # the claim has changed; nothing went wrong with the launch
        except Failure as failure:
            await self._write_reason(attempt.claim, failure.reason or "LaunchFailed", str(failure))
            # Also where the cloud says that it cannot be: rights and quotas are put right outside, and LIF-41 bounds
            # it.
            raise worth_retrying(failure) from failure
        return await self._conclude(attempt.claim, found)

    async def _claim(self, ref: ClaimRef) -> NodeClaim | None:
        """The claim as the cache knows it: every write before the launch is guarded by its version. Live without a
        cache."""
        try:
            return await self.known.find(ref)
        except NotSeenYet:
            live = await self.claims.read(ref.name)
            return live if is_same(live, ref.uid) else None

    async def _obtain(self, attempt: _Attempt) -> _Found | None:
        """The instance that carries the claim's UID, or a new one; None past the launch deadline."""
        report("looking for an instance that was launched already")
        instance = await self.cloud.find(claim_uid=attempt.claim.uid)
        if instance is not None and instance.state not in ENDING:
            return instance
        if launch_overdue(attempt.claim, self.now()) and not group_of(attempt.claim):
            return None  # a group's call is repeated until it is answered: nobody else would find what it has launched
        try:
            request = frozen_request(attempt.claim)
        except UnreadableRequest as error:
            return LaunchRefused(reason="LaunchRequestUnreadable", message=str(error))
        if request.request:
            return await self._launch_again(attempt, request)
        prepared = await self.cloud.prepare(attempt.claim)
        if not isinstance(prepared, Prepared):
            return prepared
        other = await self._other_target(attempt.claim)
        if other:
            return ClassNotReady(message=other)

        async def write(share: GroupShare | None) -> LaunchRequest:
            record = replace(request, request=prepared.request, share=share)
            await self._freeze(attempt, record, prepared.without)
            return record

        if not prepared.shared:
            return await self._launch(attempt, await write(None), again=False)
        report("waiting for those that ask for the same")
        async with self.groups.joined(attempt.claim, request.generation, prepared.request) as member:
            record, called = await member.write(write)
            launch = self._launch(attempt, record, again=False) if called else self._launch_again(attempt, record)
            return await launch

    async def _launch_again(self, attempt: _Attempt, request: LaunchRequest) -> _Found:
        """The same call once more; for a group that was never called, and never will be, another."""
        if request.share is None or await self._is_called(request.share):
            return await self._launch(attempt, request, again=True)
        await self._freeze(attempt, request.after())
        raise Retryable(f"NodeClaim/{attempt.claim.name}", "the group that it was launched with was not complete")

    async def _is_called(self, share: GroupShare) -> bool:
        """By the record of its first claim; where that claim is gone, by what the cloud has of the group."""
        first = await self.known.find(ClaimRef(name=share.first, uid=share.first_uid))
        called = None if first is None else is_called(share, first)
        if called is not None:
            return called
        first = await self.claims.read(share.first)
        if first is None or first.uid != share.first_uid:
            return any(each.group == share.group for each in await self.cloud.list_instances())
        # Who gathered the group has given it up, or is dead: from now on its first can have it called no more.
        written = await revise_claim(self.claims, first, partial(_given_up, share))
        return written is not None and is_called(share, written) is True

    async def _other_target(self, claim: NodeClaim) -> str:
        """Why a replacement for a roll-out would have another target than the one its step was permitted for; empty if
        it would not. Asked after the request was worked out, because a NodeClass only becomes newer."""
        wanted = memory_of(claim.annotations).roll_out.target
        if not wanted:
            return ""
        makes = (await self.catalogues.node_class(claim.node_class)).makes
        if not makes or not is_other(makes, wanted):
            return ""
        reference = claim.node_class
        return f"{reference.kind} {reference.name} has changed since the roll-out took this node: it begins anew"

    async def _launch(self, attempt: _Attempt, request: LaunchRequest, *, again: bool) -> _Found:
        others = f" with {request.share.size - 1} others in one call" if request.share is not None else ""
        report(f"launching{others}, generation {request.generation}")
        token = token_of(attempt.claim, request)
        answer = await self.cloud.launch(attempt.claim, request.request, token, request.share)
        ended = again and isinstance(answer, Instance) and await self._has_ended(answer)
        if ended and isinstance(answer, Instance):
            # Launched by an earlier try and terminated since: the old token would return it forever.
            answer = LaunchRefused(reason="InstanceEnded", message=f"{answer.provider_id} has been terminated")
        if isinstance(answer, LaunchRefused):
            # Known to have left nothing: the next try may ask for something else, under another token.
            await self._freeze(attempt, request.after(launched=ended))
        return answer

    async def _has_ended(self, answer: Instance) -> bool:
        """Whether what a repeated launch answers has ended: it may be the answer of then."""
        found = await self.cloud.find(provider_id=answer.provider_id)
        return found is None or found.state in ENDING

    async def _freeze(self, attempt: _Attempt, request: LaunchRequest, without: str = "") -> None:
        """Write the request on the claim, and the finalizer if it is missing (LIF-7): both before the call. `without`:
        why the older images that the claim names are not used."""
        claim = attempt.claim
        before = claim.annotations.get(LAUNCH_REQUEST)

        def frozen(found: NodeClaim) -> MetadataChange:
            if found.deleting_since is not None:
                raise _Overtaken
            if found.annotations.get(LAUNCH_REQUEST) != before:
                # Another attempt, slow but alive, has frozen a request of its own: read all anew.
                raise Retryable(f"NodeClaim/{claim.name}", "another attempt at its launch is under way")
            finalizers = None
            if TERMINATION_FINALIZER not in found.finalizers:
                finalizers = (*found.finalizers, TERMINATION_FINALIZER)
            pin = memory_of(found.annotations).roll_out
            gone = remembering(found.annotations, roll_out=replace(pin, how=GONE)) if without else {}
            return MetadataChange(annotations={LAUNCH_REQUEST: request_text(request), **gone}, finalizers=finalizers)

        written = await revise_claim(self.claims, claim, frozen)
        if written is None or written.deleting_since is not None:
            raise _Overtaken
        attempt.claim = written
        if without:
            await self.notices.publish(launch_warning(written, "StableImageGone", _cut(without)))

    async def _overtaken(self, ref: ClaimRef) -> LaunchOutcome:
        live = await self.claims.read(ref.name)
        return LaunchOutcome(kind="deleting" if is_same(live, ref.uid) else "gone")

    def _waiting(self, claim: NodeClaim) -> list[Pod]:
        """The pods that the claim was made for and that still have no node; some of many."""
        pods = (self.known.lookups.pod(uid) for uid in planned_pods(claim)[:MOST_PODS])
        return [pod for pod in pods if pod is not None and not pod.node_name and is_active(pod)]

    async def _conclude(self, claim: NodeClaim, found: _Found | None) -> LaunchOutcome:
        launched(_OUTCOMES[type(found)], claim.labels.get(NODE_POOL, ""))
        if isinstance(found, Instance | NoCapacity | LaunchRefused) and found.warnings:
            notices = [launch_warning(claim, each.reason, _cut(each.message)) for each in found.warnings]
            await self.notices.publish(*notices)
        match found:
            case Instance():
                return await self._record(claim, found)
            case NoCapacity():
                disrupted(claim, "insufficient_capacity")
                arrivals.launch_failed(claim, "InsufficientCapacity", _cut(found.message))
                said, waiting = _cut(found.message), self._waiting(claim)
                of_pods = [pod_without_capacity(pod, claim, said) for pod in waiting]
                await self.notices.publish(insufficient_capacity(claim, said), *of_pods)
                return LaunchOutcome(kind="no_capacity", message=_cut(found.message))
            case ClassNotReady():
                disrupted(claim, "nodeclass_not_ready")
                arrivals.launch_failed(claim, "NodeClassNotReady", _cut(found.message))
                return LaunchOutcome(kind="class_not_ready", message=_cut(found.message))
            case LaunchRefused():
                await self._write_reason(claim, found.reason, found.message)
                raise Retryable(f"NodeClaim/{claim.name}", f"{found.reason}: {found.message}")
            case None:
                disrupted(claim, "launch_timeout")
                overdue = f"not launched within {LAUNCH_SECONDS:.0f} s{_last_cause(claim)}"
                arrivals.launch_failed(claim, "LaunchTimeout", overdue)
                return LaunchOutcome(kind="timed_out", message=overdue)

    async def _record(self, claim: NodeClaim, instance: Instance) -> LaunchOutcome:
        """LIF-13: labels and annotations, then status: two calls."""
        written = await revise_claim(self.claims, claim, lambda found: _metadata(found, instance))
        if written is not None:
            written = await revise_status(self.claims, written, lambda found: self._status(found, instance))
        if written is None:
            # The finalizer was taken off by hand while the call was under way: nothing else knows of this instance.
            await self.cloud.terminate(instance.provider_id, claim.name)
            return LaunchOutcome(kind="gone")
        arrivals.launched(written)
        return LaunchOutcome(
            kind="launched" if written.deleting_since is None else "deleting",
            provider_id=instance.provider_id,
            writes=(claim_write(written),),
            instance_type=instance.labels.get(names.INSTANCE_TYPE, ""),
            zone=instance.labels.get(names.ZONE, ""),
            capacity_type=instance.labels.get(names.CAPACITY_TYPE, ""),
        )

    def _status(self, claim: NodeClaim, instance: Instance) -> ClaimStatus:
        now = self.now()
        conditions = [true(LAUNCHED, now)]
        if not claim.is_true(REGISTERED_CONDITION):
            conditions.append(unknown(REGISTERED_CONDITION, now, NODE_NOT_FOUND))  # LIF-21, in the same call
        return ClaimStatus(
            provider_id=instance.provider_id,
            image_id=instance.image_id,
            capacity=instance.capacity,
            allocatable=instance.allocatable,
            conditions=claim_conditions_with(claim, *conditions),
        )

    async def _write_reason(self, claim: NodeClaim, reason: str, message: str) -> None:
        """LIF-12, LIF-14: Launched stays Unknown, with the reason."""
        await set_conditions(self.claims, claim, unknown(LAUNCHED, self.now(), (reason, _cut(message))))


def _metadata(claim: NodeClaim, instance: Instance) -> MetadataChange | None:
    labels = missing_labels(claim, instance.labels)
    annotations = changed_annotations(claim, instance.annotations)
    if not labels and not annotations:
        return None
    return MetadataChange(labels=dict(labels), annotations=dict(annotations))


def _given_up(share: GroupShare, first: NodeClaim) -> MetadataChange | None:
    if is_called(share, first) is not None:
        return None
    return MetadataChange(annotations={LAUNCH_REQUEST: request_text(frozen_request(first).after())})


def _last_cause(claim: NodeClaim) -> str:
    """What its last attempt came to; asked now, because the condition disappears with the claim."""
    condition = claim.condition(LAUNCHED)
    return f"; at last {condition.reason}: {condition.message}" if condition is not None and condition.message else ""


def _cut(message: str) -> str:
    data = message.encode()
    return message if len(data) < MESSAGE_BYTES else data[:MESSAGE_BYTES].decode(errors="ignore") + "..."
