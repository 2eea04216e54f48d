"""What each claim should say: Consolidatable, Drifted, and when a pod last came or left.

Conditions and stamps of one claim are written in one request. The cloud's verdict on drift is asked for once per claim
in five minutes, and again when its class has changed: a new image changes nothing on the claim itself.

A claim that is up to date is judged again when it, or what it is judged by, has changed, and when time may change the
answer: with five thousand claims, judging all of them at each change takes most of a second.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec

from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.looks.look import Look, Write
from dovetail.activities.shared.turns import by_turns, each_by_turns
from dovetail.activities.shared.writes.revisions import revise_status
from dovetail.activities.upkeep.pod_stamps import PodStamps
from dovetail.disruption.upkeep.conditions import (
    RECHECK_DRIFT,
    DriftFacts,
    Judgement,
    judge_consolidatable,
    judge_drifted,
    resulting_condition,
)
from dovetail.lifecycle.conditions import conditions_of_claim
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim, NodeClassRef
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.watched_kinds import STANDING_CLAIMS
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.objects import ClaimStatus, NodeClaims

_log = logging.getLogger(__name__)

P = ParamSpec("P")

KINDS = (names.CONSOLIDATABLE, names.DRIFTED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Basis:
    """What the claims of one NodePool are judged by, beside themselves."""

    pool: NodePool
    catalogue: Catalogue

    def says_the_same(self, other: "_Basis") -> bool:
        """A pool's status changes with every node, and matters to no claim."""
        return self._asked_of_pool == other._asked_of_pool and self.catalogue == other.catalogue

    @property
    def _asked_of_pool(self) -> tuple[object, ...]:
        pool = self.pool
        hashes = [pool.annotations.get(key) for key in (names.NODE_POOL_HASH, names.NODE_POOL_HASH_VERSION)]
        return (pool.uid, pool.replicas, pool.disruption.consolidate_after, pool.template.requirements, *hashes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What a claim should say by that basis and that version of its class, until then."""

    claim: NodeClaim
    basis: _Basis
    class_version: str
    wanted: tuple[Condition | None, ...]
    until: float
    is_sure: bool  # nothing that it depends on failed


@dataclass(slots=True)
class _Seen:
    """What the last look saw: the cloud's verdicts with their age, and what was judged."""

    drift: dict[str, tuple[float, str, str]] = field(default_factory=dict)  # claim UID -> when, of which class, reason
    classes: dict[NodeClassRef, str] = field(default_factory=dict)  # class -> its version at this look
    bases: dict[str, _Basis] = field(default_factory=dict)  # by NodePool
    judged: dict[str, _Judged] = field(default_factory=dict)  # by claim UID
    supported: frozenset[tuple[str, str]] = frozenset()


class ClaimUpkeep:
    """Finds claims that do not say what they should."""

    def __init__(
        self,
        claims: NodeClaims,
        catalogues: Catalogues,
        now: Callable[[], float],
        well_known: frozenset[str],
        reservation_labels: frozenset[str],
    ) -> None:
        """The labels: all that a claim need not carry, and the cloud's own that name one reservation."""
        self.claims = claims
        self.well_known, self.reservation_labels = well_known, reservation_labels
        self.catalogues = catalogues
        self.now = now
        self.seen, self.stamps = _Seen(), PodStamps()
        self.references = LastAnswer(STANDING_CLAIMS, _references)

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due, and when the next verdict may change."""
        await by_turns(self.stamps.begin(snapshot))
        writes: list[Write] = []
        moments: list[float] = []
        await self._see_what_judges(snapshot)
        now = self.now()
        unsettled = self._unsettled(snapshot, now)
        moments += [judged.until for judged in self.seen.judged.values()]
        async for claim in each_by_turns(unsettled):
            basis = self.seen.bases.get(claim.labels.get(names.NODE_POOL, ""))
            if basis is None or claim.deleting_since is not None or not snapshot.is_ours(claim.node_class):
                continue
            stamp = self.stamps.due(claim, basis.pool, now)
            judged = await self._judged(claim, basis, stamp)
            moments.append(judged.until)
            if stamp is not None or judged.wanted != tuple(claim.condition(kind) for kind in KINDS):
                writes.append(partial(self._write, claim, judged.wanted, stamp))
            elif judged.is_sure:
                self.seen.judged[claim.uid] = judged
        await by_turns(self.stamps.end(snapshot))
        return Look(due=writes, again=min(moments, default=None))

    async def _see_what_judges(self, snapshot: Snapshot) -> None:
        """Take classes and bases as of this look; verdicts that were made with others are forgotten."""
        before = self.seen.classes, self.seen.bases, self.seen.supported
        references = self.references.of(snapshot)
        self.seen.classes = {each: (await self.catalogues.node_class(each)).version for each in references}
        self.seen.bases, self.seen.supported = self._bases(snapshot), snapshot.supported_node_classes
        if before != (self.seen.classes, self.seen.bases, self.seen.supported):
            self.seen.judged = {uid: each for uid, each in self.seen.judged.items() if self._is_judged_by(each)}

    def _is_judged_by(self, judged: _Judged) -> bool:
        claim, basis = judged.claim, self.seen.bases.get(judged.basis.pool.name)
        return basis is judged.basis and self.seen.classes.get(claim.node_class, "") == judged.class_version

    def _unsettled(self, snapshot: Snapshot, now: float) -> list[NodeClaim]:
        """The claims of which what was found may be no longer so; only of the others it is kept. A view gives the same
        object for a claim that has not changed."""
        known, moved, settled, unsettled = self.seen.judged, self.stamps.moved, dict[str, _Judged](), list[NodeClaim]()
        for claim in snapshot.claims.values():  # all of them, at each look: nothing else is asked of one that holds
            judged = known.get(claim.uid)
            if judged is None or judged.claim is not claim or now >= judged.until or claim.node_name in moved:
                unsettled.append(claim)
            else:
                settled[claim.uid] = judged
        self.seen.judged = settled
        return unsettled

    def _bases(self, snapshot: Snapshot) -> dict[str, _Basis]:
        """What claims are judged by, for each NodePool; the same object as before where it says the same."""
        found: dict[str, _Basis] = {}
        for name, pool in snapshot.pools.items():
            basis = _Basis(pool=pool, catalogue=snapshot.catalogues.get(name, Catalogue(error="not listed")))
            before = self.seen.bases.get(name)
            found[name] = before if before is not None and before.says_the_same(basis) else basis
        return found

    async def _judged(self, claim: NodeClaim, basis: _Basis, stamp: float | None) -> _Judged:
        now = self.now()
        consolidatable = _judged(claim, judge_consolidatable, claim, basis.pool, now)
        if stamp is not None and (basis.pool.disruption.consolidate_after or 0.0) > 0:
            consolidatable = type(consolidatable)(
                verdict="clear", look_again=stamp + (basis.pool.disruption.consolidate_after or 0)
            )
        reason, error = await self._drift(claim)
        facts = DriftFacts(
            catalogue=basis.catalogue,
            provider_reason=reason,
            provider_error=error,
            well_known=self.well_known,
            reservation_labels=self.reservation_labels,
        )
        drifted = _judged(claim, judge_drifted, claim, basis.pool, facts, now)
        wanted = (
            resulting_condition(consolidatable, claim, names.CONSOLIDATABLE, now),
            resulting_condition(drifted, claim, names.DRIFTED, now),
        )
        asked = self.seen.drift.get(claim.uid, (now, "", ""))[0]
        again = (consolidatable.look_again, drifted.look_again, self.stamps.next_due(claim))
        return _Judged(
            claim=claim,
            basis=basis,
            class_version=self.seen.classes.get(claim.node_class, ""),
            wanted=tuple(_as_present(claim, w) for w in wanted),
            until=min([*[moment for moment in again if moment is not None], asked + RECHECK_DRIFT]),
            is_sure=not (consolidatable.error or drifted.error),
        )

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

        written = None
        try:
            written = await revise_status(self.claims, claim, status_of)
        finally:
            if stamp is not None and written is None:
                self.stamps.not_written(claim, stamp)


def _references(snapshot: Snapshot) -> tuple[NodeClassRef, ...]:
    """The NodeClasses of ours that claims have."""
    found = {claim.node_class for claim in snapshot.claims.values()}
    return tuple(reference for reference in found if snapshot.is_ours(reference))


def _as_present(claim: NodeClaim, wanted: Condition | None) -> Condition | None:
    """The condition that exists, if it says the same: its generation and time are not ours to compare."""
    if wanted is None:
        return None
    present = claim.condition(wanted.type)
    same = present is not None and (present.status, present.reason) == (wanted.status, wanted.reason)
    return present if same else wanted


def _judged(claim: NodeClaim, question: Callable[P, Judgement], *args: P.args, **kwargs: P.kwargs) -> Judgement:
    """The judgement; where claim or pool cannot be judged, the condition stays, and other claims go on."""
    found = Judging().judge(claim, "conditions", question, *args, **kwargs)
    if isinstance(found, Unjudged):
        _log.warning("upkeep: %s", found.says)
        return Judgement(verdict="leave", error=found.message)
    return found
