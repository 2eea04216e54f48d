"""Keeps every EC2NodeClass true: finalizer, hash, status, conditions; and cleans up after a deleted one.

A class that is neither changed nor due costs nothing. One class that fails does not stop the others. A class is
released only when none of its claims is left, because their instances would lose their profile.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from dovetail.adapters.aws import names
from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.drift import Drift
from dovetail.adapters.aws.meters import forget
from dovetail.adapters.aws.node_class import conditions as c
from dovetail.adapters.aws.node_class.conditions import Verdict, conditions, false, kept, verdict_of, with_progress
from dovetail.adapters.aws.node_class.node_class import (
    UNREADABLE,
    NodeClass,
    NodeClasses,
    UnreadableClass,
    read_class,
)
from dovetail.adapters.aws.resources.resolution import RESOLUTION_FAILED, Resolution, Resolved
from dovetail.adapters.aws.upkeep.clean_up import CleanUp
from dovetail.adapters.aws.upkeep.progress import progress_of
from dovetail.adapters.aws.upkeep.upkeep_task import UpkeepTask, log_failure
from dovetail.adapters.aws.upkeep.validation import Validation
from dovetail.adapters.kubernetes_json.parsing.class_hashes import (
    EC2_NODE_CLASS_HASH_VERSION as HASH_VERSION,
)
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.json import Json
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Conflict, Failure, Retryable
from dovetail.ports.objects import MetadataChange, NodeClaims, Notices
from dovetail.ports.raw_objects import RawObjects

_log = logging.getLogger(__name__)

ROUND_SECONDS: Final = 60.0
_WAIT_SECONDS: Final = 600.0  # for claims of a deleted class; the end of one is a change, which is seen at once
_PROGRESS_SECONDS: Final = 1.0  # between writes of how far a roll-out has come
_JUDGED_SECONDS: Final = 5.0  # until claims that have not been judged are asked about again
_RETRIES: Final = Backoff(first=1.0, longest=60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNow:
    claims: Callable[[], Iterable[NodeClaim]]
    pools: Callable[[], Iterable[NodePool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepParts:
    classes: NodeClasses
    objects: RawObjects
    claims: NodeClaims | None
    notices: Notices
    resolution: Resolution
    validation: Validation
    clean_up: CleanUp
    tasks: tuple[UpkeepTask, ...]
    cluster: Cluster
    drift: Drift  # the one that judges the claims


@dataclass(slots=True)
class _Due:
    """When a class is looked at again, and for which of its states that was worked out."""

    key: tuple[object, ...] = ()
    at: float = 0.0
    retry: float = _RETRIES.first
    published: set[str] = field(default_factory=set)  # condition/reason of the refusals that have their Event
    said: float = 0.0  # when its NodesUpToDate was last written


class Ec2NodeClassUpkeep:
    def __init__(self, parts: UpkeepParts, cluster: ClusterNow, clock: Callable[[], float]) -> None:
        self._parts, self._cluster, self._clock = parts, cluster, clock
        self._due: dict[str, _Due] = {}
        self._working = asyncio.Lock()

    async def keep(self) -> float:
        """Look at everything that is due; returns when to look again."""
        async with self._working:
            claims = tuple(claim for claim in self._cluster.claims() if _is_ours(claim))
            classes = self._parts.classes.every()
            self._due = {name: due for name, due in self._due.items() if any(name == each.name for each in classes)}
            judged, present = self._parts.drift.judged, {claim.uid for claim in claims}
            for uid in [uid for uid in judged if uid not in present]:
                del judged[uid]
            moments = await asyncio.gather(*[self._one(each, claims) for each in classes])
            moments += await asyncio.gather(*[self._beside(task, claims) for task in self._parts.tasks])
            moments.append(await self._clean(claims))
            return min(moments, default=self._clock() + ROUND_SECONDS)

    async def _beside(self, task: UpkeepTask, claims: tuple[NodeClaim, ...]) -> float:
        try:
            return await task.keep(claims)
        except Exception as error:
            log_failure(f"upkeep beside EC2NodeClasses ({type(task).__name__})", error)
            return self._clock() + _RETRIES.longest

    async def _one(self, node_class: NodeClass | UnreadableClass, claims: tuple[NodeClaim, ...]) -> float:
        due = self._due.setdefault(node_class.name, _Due())
        if isinstance(node_class, UnreadableClass):
            return await self._set_aside(node_class, due)
        waiting = [claim for claim in claims if _refers(claim, node_class)] if node_class.deleting else []
        said = node_class.own_annotations
        key = (node_class.uid, node_class.generation, said, node_class.deleting, len(waiting))
        if key == due.key and self._clock() < due.at:
            return min(due.at, await self._progress(node_class, claims))
        try:
            wait = await (self._release(node_class, waiting) if node_class.deleting else self._resolve(node_class))
            due.key, due.at, due.retry = key, self._clock() + wait, _RETRIES.first
            return min(due.at, self._clock() + (_PROGRESS_SECONDS if self._wanted(node_class, claims) else wait))
        except Conflict:
            due.key, due.at = (), self._clock() + _RETRIES.first
        except Exception as error:
            log_failure(f"EC2NodeClass {node_class.name}", error)
            due.key, due.at = key, self._clock() + due.retry
            due.retry = _RETRIES.after(due.retry)
        return due.at

    async def _progress(self, node_class: NodeClass, claims: tuple[NodeClaim, ...]) -> float:
        """Publish the progress of its latest change: a change at once, and the count once a second. Returns when to
        look again."""
        due, now = self._due[node_class.name], self._clock()
        wanted = self._wanted(node_class, claims)
        if wanted is None:
            return now + ROUND_SECONDS
        if wanted == _conditions(node_class):
            return now + _JUDGED_SECONDS
        if now < due.said + _PROGRESS_SECONDS and _says(wanted) == _says(_conditions(node_class)):
            return due.said + _PROGRESS_SECONDS
        due.said = now
        try:
            await self._parts.objects.patch(node_class.raw, {"status": {"conditions": wanted}}, "status")
        except Conflict:
            due.said = 0.0
            return now + _PROGRESS_SECONDS
        except Exception as error:
            log_failure(f"EC2NodeClass {node_class.name}", error)
        return now + _RETRIES.longest

    def _wanted(self, node_class: NodeClass, claims: tuple[NodeClaim, ...]) -> list[Json] | None:
        """The class's conditions with that of its nodes; unchanged if not all claims are judged, and None if they are
        already written."""
        before = _conditions(node_class)
        if node_class.deleting or node_class.stale or not before:
            return None
        mine = [claim for claim in claims if _refers(claim, node_class)]
        verdict = progress_of(node_class, mine, self._parts.drift.judged, before)
        if verdict is None:
            return before
        found = with_progress(before, verdict, node_class.generation, self._clock())
        return None if found == before else found

    async def _set_aside(self, node_class: UnreadableClass, due: _Due) -> float:
        """State on the class that it cannot be used, and why: once for each version that cannot be read."""
        key = (node_class.version,)
        if key == due.key and self._clock() < due.at:
            return due.at
        due.key, due.at = key, self._clock() + _RETRIES.longest
        _log.warning("EC2NodeClass %s cannot be read: %s", node_class.name, node_class.message)
        meta = node_class.raw["metadata"]
        await self._parts.notices.publish(
            Notice(
                kind=names.KIND,
                name=node_class.name,
                uid=str(meta.get("uid", "")),
                type="Warning",
                reason=UNREADABLE,
                message=node_class.message,
            )
        )
        before = (node_class.raw.get("status") or {}).get("conditions") or []
        kinds = [each["type"] for each in before if each["type"] not in (c.READY, c.UP_TO_DATE)]
        verdicts = {kind: verdict_of(before, kind) for kind in kinds}
        verdicts[c.VALIDATION] = false(UNREADABLE, node_class.message)
        wanted = conditions(before, verdicts, int(meta.get("generation", 0)), self._clock())
        if wanted != before:
            try:
                await self._parts.objects.patch(node_class.raw, {"status": {"conditions": wanted}}, "status")
            except Exception as error:  # the API server may refuse to store any of it; the Event says it all the same
                log_failure(f"EC2NodeClass {node_class.name}", error)
        return due.at

    async def _resolve(self, node_class: NodeClass) -> float:
        current = await self._with_metadata(node_class)
        if current is None:
            return ROUND_SECONDS
        found = await self._parts.resolution.resolve(current)
        seen = as_resolved(current, found)
        unsettled: Failure | None = found.failed[0] if found.failed else None
        try:
            judged = await self._parts.validation.verdict(seen, found.verdicts, self._cluster.pools())
        except Retryable as failure:
            unsettled = failure
            judged = kept(_conditions(current), c.VALIDATION, current.generation, failure)
        verdicts = {**found.verdicts, c.VALIDATION: judged}
        await self._write(current, found, verdicts)
        await self._publish(current, verdicts)
        if unsettled is not None:
            raise unsettled
        return _until_next_round(seen, self._clock())

    async def _with_metadata(self, node_class: NodeClass) -> NodeClass | None:
        """The finalizer and the hash annotations; returns the class with them. Claims are migrated first (AWS-47)."""
        wanted = {
            names.HASH: node_class.hash(self._parts.cluster.known.ca_bundle),
            names.HASH_VERSION: HASH_VERSION,
        }
        change: Json = {}
        if names.TERMINATION not in node_class.finalizers:
            change["finalizers"] = [*node_class.finalizers, names.TERMINATION]
        if any(node_class.annotations.get(key) != value for key, value in wanted.items()):
            if node_class.annotations.get(names.HASH_VERSION) != HASH_VERSION:
                await self._migrate(node_class, wanted[names.HASH])
            change["annotations"] = wanted
        if not change:
            return node_class
        raw = await self._parts.objects.patch(node_class.raw, {"metadata": change})
        return None if raw is None else _still_readable(raw)

    async def _migrate(self, node_class: NodeClass, new_hash: str) -> None:
        """A claim of an older version takes the new hash, unless it has drifted already."""
        if self._parts.claims is None:
            return
        for claim in self._cluster.claims():
            if not _refers(claim, node_class) or claim.annotations.get(names.HASH_VERSION) == HASH_VERSION:
                continue
            annotations: dict[str, str | None] = {names.HASH_VERSION: HASH_VERSION}
            if not claim.is_true(core.DRIFTED):
                annotations[names.HASH] = new_hash
            await self._parts.claims.patch(claim, MetadataChange(annotations=annotations))

    async def _write(self, node_class: NodeClass, found: Resolved, verdicts: dict[str, Verdict]) -> None:
        before: Json = node_class.raw.get("status") or {}
        now = conditions(_conditions(node_class), verdicts, node_class.generation, self._clock())
        wanted_status: Json = {**{key: value or None for key, value in found.fields.items()}, "conditions": now}
        changed = {key: value for key, value in wanted_status.items() if before.get(key) != value}
        if changed:
            await self._parts.objects.patch(node_class.raw, {"status": changed}, "status")

    async def _publish(self, node_class: NodeClass, verdicts: dict[str, Verdict]) -> None:
        """One Event for each refusal that is new."""
        due = self._due[node_class.name]
        bad = {f"{kind}/{v.reason}": v for kind, v in verdicts.items() if v.status == "False"}
        for key in sorted(set(bad) - due.published):
            if bad[key].reason == "DependenciesNotReady":
                continue
            await self._parts.notices.publish(_notice(node_class, "Warning", bad[key].reason, bad[key].message))
        due.published = {key for key in bad if RESOLUTION_FAILED not in key}

    async def _release(self, node_class: NodeClass, waiting: list[NodeClaim]) -> float:
        """Clean up after a deleted class without claims, and remove our finalizer (AWS-46)."""
        if names.TERMINATION not in node_class.finalizers:
            return _WAIT_SECONDS
        if waiting:
            shown = ", ".join(sorted(claim.name for claim in waiting)[:5])
            text = f"Waiting on NodeClaim termination for {shown}"
            await self._parts.notices.publish(_notice(node_class, "Normal", "WaitingOnNodeClaimTermination", text))
            return _WAIT_SECONDS
        await self._parts.clean_up.of_class(node_class)
        forget(node_class.name)
        kept = [each for each in node_class.finalizers if each != names.TERMINATION]
        await self._parts.objects.patch(node_class.raw, {"metadata": {"finalizers": kept or None}})
        await self._parts.notices.publish(_notice(node_class, "Normal", "Finalized", f"Finalized {names.TERMINATION}"))
        return _WAIT_SECONDS

    async def _clean(self, claims: tuple[NodeClaim, ...]) -> float:
        used = {claim.annotations.get(names.PROFILE_NAME, "") for claim in claims}
        for each in self._parts.classes.every():
            if isinstance(each, UnreadableClass):
                return await self._parts.clean_up.round(None)
            used |= {each.status.instance_profile or "", each.spec.instance_profile or ""}
        return await self._parts.clean_up.round(frozenset(used))


def _is_ours(claim: NodeClaim) -> bool:
    """Other providers' claims have no EC2 instances, and their annotations are not ours to write."""
    return (claim.node_class.group, claim.node_class.kind) in names.SUPPORTED


def _refers(claim: NodeClaim, node_class: NodeClass) -> bool:
    return _is_ours(claim) and claim.node_class.name == node_class.name


def _conditions(node_class: NodeClass) -> list[Json]:
    return (node_class.raw.get("status") or {}).get("conditions") or []


def _until_next_round(resolved: NodeClass, now: float) -> float:
    """A minute, or until its first reservation has ended (AWS-144); status has whole seconds."""
    ends = [each.end_time.timestamp() for each in resolved.status.capacity_reservations or () if each.end_time]
    return max(1.0, min([ROUND_SECONDS, *(end + 1.0 - now for end in ends)]))


def _still_readable(raw: Json) -> NodeClass | None:
    found = read_class(raw)
    return found if isinstance(found, NodeClass) else None


def _says(found: Iterable[Json]) -> tuple[object, ...]:
    """The content of its NodesUpToDate, except the count."""
    said = next((each for each in found if each["type"] == c.UP_TO_DATE), {})
    return tuple(said.get(key) for key in ("status", "reason", "observedGeneration"))


def as_resolved(node_class: NodeClass, found: Resolved) -> NodeClass:
    """The class as it will be once the status is written: what validation must look at."""
    status = {**(node_class.raw.get("status") or {}), **{k: v for k, v in found.fields.items() if v}}
    for key, value in found.fields.items():
        if not value:
            status.pop(key, None)
    return _still_readable({**node_class.raw, "status": status}) or node_class


def _notice(node_class: NodeClass, type_: Literal["Normal", "Warning"], reason: str, message: str) -> Notice:
    return Notice(kind=names.KIND, name=node_class.name, uid=node_class.uid, type=type_, reason=reason, message=message)
