"""What each claim should say: Consolidatable, Drifted, and when a pod last came or left.

Conditions and stamps of one claim are written in one request. The cloud's verdict on drift is asked for once per claim
in five minutes, and again when its class has changed: a new image changes nothing on the claim itself.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec

from dovetail.activities.shared.look import Look, Write, earliest
from dovetail.activities.shared.revisions import revise_status
from dovetail.disruption.nodes.pod_movements import living_pods
from dovetail.disruption.upkeep.conditions import (
    RECHECK_DRIFT,
    DriftFacts,
    Judgement,
    judge_consolidatable,
    judge_drifted,
    resulting_condition,
)
from dovetail.disruption.upkeep.timers import is_stamp_due, stamp_from_list
from dovetail.lifecycle.conditions import conditions_of_claim
from dovetail.model import names
from dovetail.model.judging import Judging, Unjudged
from dovetail.model.nodes import Condition, NodeClaim, NodeClassRef
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.objects import ClaimStatus, NodeClaims

_log = logging.getLogger(__name__)

P = ParamSpec("P")

KINDS = (names.CONSOLIDATABLE, names.DRIFTED)


@dataclass(slots=True)
class _Seen:
    """What the last look saw: living pods by node, and the cloud's verdicts with their age."""

    pods: dict[str, frozenset[str]] | None = None
    drift: dict[str, tuple[float, str, str]] = field(default_factory=dict)  # claim UID -> when, of which class, reason
    classes: dict[NodeClassRef, str] = field(default_factory=dict)  # class -> its version at this look


class ClaimUpkeep:
    """Finds claims that do not say what they should."""

    def __init__(
        self,
        claims: NodeClaims,
        catalogues: Catalogues,
        now: Callable[[], float],
        well_known: frozenset[str] = names.WELL_KNOWN_LABELS,
        reservation_labels: frozenset[str] = frozenset(),
    ) -> None:
        """The labels: all that a claim need not carry, and the cloud's own that name one reservation."""
        self.claims = claims
        self.well_known, self.reservation_labels = well_known, reservation_labels
        self.catalogues = catalogues
        self.now = now
        self.seen = _Seen()

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due, and when the next verdict may change."""
        pods = living_pods(snapshot)
        writes: list[Write] = []
        again: float | None = None
        self.seen.classes = {
            reference: (await self.catalogues.node_class(reference)).version
            for reference in {claim.node_class for claim in snapshot.claims.values()}
            if snapshot.is_ours(reference)
        }
        for claim in snapshot.claims.values():
            pool = snapshot.pools.get(claim.labels.get(names.NODE_POOL, ""))
            if pool is None or claim.deleting_since is not None or not snapshot.is_ours(claim.node_class):
                continue
            stamp = self._stamp(snapshot, claim, pods)
            wanted, look_again = await self._conditions(snapshot, claim, pool, stamp)
            again = earliest(again, look_again)
            present = tuple(claim.condition(kind) for kind in KINDS)
            if stamp is not None or wanted != present:
                writes.append(partial(self._write, claim, wanted, stamp))
        self.seen.pods = {**pods, **self._unseen(snapshot)}
        return Look(due=writes, again=again)

    def _unseen(self, snapshot: Snapshot) -> dict[str, frozenset[str]]:
        """Pods of nodes that are not initialised are left for a later look, because LaunchNode writes to these claims
        now. Nothing is lost: the quiet after which a node may be consolidated begins when it is initialised."""
        before = self.seen.pods or {}
        starting = [c.node_name for c in snapshot.claims.values() if c.node_name and not _is_initialized(c)]
        return {node: before.get(node, frozenset()) for node in starting}

    def _stamp(self, snapshot: Snapshot, claim: NodeClaim, pods: dict[str, frozenset[str]]) -> float | None:
        """When a pod came or went since the last look (DIS-163), unless the stamp is young."""
        node = claim.node_name
        if not node or not _is_initialized(claim):
            return None
        if self.seen.pods is None:
            # Only where nothing was stamped: what is written already is what was seen then.
            on_node = [p for p in snapshot.pods.values() if p.node_name == node] if claim.last_pod_event is None else []
            return stamp_from_list(claim, on_node)
        if self.seen.pods.get(node, frozenset()) == pods.get(node, frozenset()):
            return None
        now = self.now()
        return now if is_stamp_due(claim, now) else None

    async def _conditions(
        self, snapshot: Snapshot, claim: NodeClaim, pool: NodePool, stamp: float | None
    ) -> tuple[tuple[Condition | None, ...], float]:
        now = self.now()
        consolidatable = _judged(claim, judge_consolidatable, claim, pool, now)
        if stamp is not None and (pool.disruption.consolidate_after or 0.0) > 0:
            consolidatable = type(consolidatable)(
                verdict="clear", look_again=stamp + (pool.disruption.consolidate_after or 0)
            )
        catalogue = snapshot.catalogues.get(pool.name, Catalogue(error="not listed"))
        reason, error = await self._drift(claim)
        facts = DriftFacts(
            catalogue=catalogue,
            provider_reason=reason,
            provider_error=error,
            well_known=self.well_known,
            reservation_labels=self.reservation_labels,
        )
        drifted = _judged(claim, judge_drifted, claim, pool, facts, now)
        wanted = (
            resulting_condition(consolidatable, claim, names.CONSOLIDATABLE, now),
            resulting_condition(drifted, claim, names.DRIFTED, now),
        )
        moments = [j.look_again for j in (consolidatable, drifted) if j.look_again is not None]
        return tuple(_as_present(claim, w) for w in wanted), min(moments, default=now + RECHECK_DRIFT)

    async def _drift(self, claim: NodeClaim) -> tuple[str, str]:
        """The cloud's verdict, at most five minutes old, or why there is none; then the condition stays."""
        if not claim.is_true(names.LAUNCHED):
            return "", ""
        version = self.seen.classes.get(claim.node_class, "")
        asked, judged, reason = self.seen.drift.get(claim.uid, (0.0, "", ""))
        if self.now() - asked < RECHECK_DRIFT and judged == version:
            return reason, ""
        try:
            reason = await self.catalogues.drift(claim)
        except Failure as failure:
            return "", str(failure)
        self.seen.drift[claim.uid] = (self.now(), version, reason)
        return reason, ""

    async def _write(self, claim: NodeClaim, wanted: tuple[Condition | None, ...], stamp: float | None) -> None:
        def status_of(found: NodeClaim) -> ClaimStatus | None:
            conditions = conditions_of_claim(found)
            for kind, condition in zip(KINDS, wanted, strict=True):
                conditions = conditions.clear(kind) if condition is None else conditions.set(condition)
            if conditions.conditions == found.conditions and stamp is None:
                return None
            return ClaimStatus(conditions=conditions.conditions, last_pod_event=stamp)

        await revise_status(self.claims, claim, status_of)


def _as_present(claim: NodeClaim, wanted: Condition | None) -> Condition | None:
    """The condition that stands, where it says the same: its generation and time are not ours to compare."""
    if wanted is None:
        return None
    present = claim.condition(wanted.type)
    same = present is not None and (present.status, present.reason) == (wanted.status, wanted.reason)
    return present if same else wanted


def _is_initialized(claim: NodeClaim) -> bool:
    return claim.is_true(names.INITIALIZED_CONDITION)


def _judged(claim: NodeClaim, question: Callable[P, Judgement], *args: P.args, **kwargs: P.kwargs) -> Judgement:
    """The judgement; where claim or pool cannot be judged, the condition stays, and other claims go on."""
    found = Judging().judge(claim, "conditions", question, *args, **kwargs)
    if isinstance(found, Unjudged):
        _log.warning("upkeep: %s", found.says)
        return Judgement(verdict="leave", error=found.message)
    return found
