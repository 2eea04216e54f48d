"""Do the nodes of a NodePool come up?

The last four results are kept on the pool itself, each with its claim's UID: a restart forgets nothing (DUR-8) and no
claim counts twice (DUR-7). Results are read from the claims: registered, or deleted past a time limit. Were each launch
to write to its pool, sixty launches at once would wait for one object.

Moments have whole seconds and ten claims may share one. The last four are therefore those of the latest moments and, of
one moment, of the greatest UIDs: whatever the order in which claims are seen, and however often, the same four remain.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dovetail.lifecycle.conditions import false, true, unknown
from dovetail.lifecycle.liveness import LAUNCH_SECONDS, REGISTRATION_SECONDS
from dovetail.model import names
from dovetail.model.nodes import UNKNOWN, Condition, NodeClaim
from dovetail.model.pools import NodePool

HEALTHY: Final = "NodeRegistrationHealthy"
RESULTS: Final = "dovetail.sh/registration-results"
KEPT: Final = 4
UNHEALTHY_SHARE: Final = 0.5  # of four, however many there are (NPL-30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How the launch of one claim ended, and when."""

    claim_uid: str
    good: bool
    at: float
    why: tuple[str, str] = ("RegistrationFailed", "Failed to register node")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is kept on the pool: the last results and their moments, for which generations, and from when they count."""

    pool_generation: int
    class_generation: int
    since: float
    results: tuple[tuple[str, bool], ...] = ()
    times: tuple[float, ...] = ()

    def with_result(self, result: Result) -> "Record":
        """The record with one more result, and without the first of five, which may be the new one."""
        return self._of([*self._dated(), (result.at, (result.claim_uid, result.good))])

    def dated_by(self, moments: Mapping[str, float]) -> "Record":
        """The record with the moments that the claims themselves say. A release before this one kept none."""
        return self._of([(moments.get(result[0], at), result) for at, result in self._dated()])

    def is_unhealthy(self) -> bool:
        """NPL-30: two failures of four."""
        return sum(not good for _, good in self.results) / KEPT >= UNHEALTHY_SHARE

    def _dated(self) -> list["_Dated"]:
        return list(zip(self.times, self.results, strict=True))

    def _of(self, dated: list["_Dated"]) -> "Record":
        last = sorted(dated)[-KEPT:]
        return replace(self, results=tuple(result for _, result in last), times=tuple(at for at, _ in last))


_Dated = tuple[float, tuple[str, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What should stand on the pool."""

    record: Record
    condition: Condition


def judge_health(pool: NodePool, claims: Iterable[NodeClaim], class_generation: int, now: float) -> Health:
    """The record and the condition after everything that has been seen."""
    present = next((condition for condition in pool.conditions if condition.type == HEALTHY), None)
    record = read_record(pool)
    if record is None and present is not None and present.status != UNKNOWN:
        record = _seeded(present, pool, class_generation)  # NPL-31: written by Karpenter
    if (
        record is None
        or present is None
        or (record.pool_generation, record.class_generation) != (pool.generation, class_generation)
    ):
        fresh = Record(pool_generation=pool.generation, class_generation=class_generation, since=now)
        return Health(record=fresh, condition=unknown(HEALTHY, now, ("AwaitingReconciliation", "")))
    return _counted(record, present, results_of(pool, claims), now)


def _counted(record: Record, condition: Condition, results: Sequence[Result], now: float) -> Health:
    """The record with those of the results that are among the last four now, and what each made of the condition."""
    record = record.dated_by({result.claim_uid: result.at for result in results})
    for result in sorted(results, key=lambda result: (result.at, result.claim_uid)):
        if result.at < record.since or result.claim_uid in dict(record.results):
            continue
        before, record = record, record.with_result(result)
        if record == before:
            continue
        if result.good and not record.is_unhealthy():
            condition = true(HEALTHY, now)
        elif not result.good and record.is_unhealthy() and condition.status != "False":
            condition = false(HEALTHY, now, result.why)
    return Health(record=record, condition=condition)


def results_of(pool: NodePool, claims: Iterable[NodeClaim]) -> tuple[Result, ...]:
    """The results of the claims of this very pool (NPL-33: by the label, and by the UID of their owner)."""
    mine = (c for c in claims if c.labels.get(names.NODE_POOL) == pool.name and _owned(c, pool))
    return tuple(result for claim in mine if (result := _result(claim)) is not None)


def read_record(pool: NodePool) -> Record | None:
    """The record on the pool; None where there is none, or none that can be read."""
    try:
        found = json.loads(pool.annotations.get(RESULTS, ""))
        since = float(found["since"])
        results = tuple((str(uid), bool(good)) for uid, good in found["results"])[-KEPT:]
        return Record(
            pool_generation=int(found["pool"]),
            class_generation=int(found["class"]),
            since=float(found.get("from", since)),
            results=results,
            times=_times_in(found, since, len(results)),
        )
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return None


def record_text(record: Record) -> str:
    """The annotation's value. A release that knows no moments goes on from `since`: up to when results were counted."""
    found = {
        "pool": record.pool_generation,
        "class": record.class_generation,
        "since": max((record.since, *record.times)),
        "results": record.results,
        "from": record.since,
        "at": record.times,
    }
    return json.dumps(found, separators=(",", ":"))


def _times_in(found: Mapping[str, Any], since: float, count: int) -> tuple[float, ...]:
    """The moments of so many results. An earlier release kept none: guesses keep the order in which it counted, the
    last at its `since`."""
    times = tuple(float(at) for at in found.get("at", ()))[-KEPT:]
    return times if len(times) == count else tuple(since - (count - 1 - number) / 1000 for number in range(count))


def _seeded(present: Condition, pool: NodePool, class_generation: int) -> Record:
    results = (("", True),) if present.status == "True" else (("", False), ("", False))
    return Record(
        pool_generation=present.generation or pool.generation,
        class_generation=class_generation,
        since=present.changed,
        results=results,
        times=(present.changed,) * len(results),
    )


def _owned(claim: NodeClaim, pool: NodePool) -> bool:
    return any(owner.kind == "NodePool" and owner.uid == pool.uid for owner in claim.owners)


def _result(claim: NodeClaim) -> Result | None:
    registered = claim.condition(names.REGISTERED_CONDITION)
    if registered is not None and registered.status == "True":
        return Result(claim_uid=claim.uid, good=True, at=registered.changed)
    if claim.deleting_since is None:
        return None
    launched = claim.condition(names.LAUNCHED)
    since = registered.changed if registered is not None else claim.created
    if claim.is_true(names.LAUNCHED):
        late = claim.deleting_since - since >= REGISTRATION_SECONDS
        return Result(claim_uid=claim.uid, good=False, at=claim.deleting_since) if late else None
    since = launched.changed if launched is not None else claim.created
    if claim.deleting_since - since < LAUNCH_SECONDS:
        return None  # no capacity, or deleted by a person: that says nothing about registration
    why = ("RegistrationFailed", "Failed to register node") if launched is None else (launched.reason, launched.message)
    return Result(claim_uid=claim.uid, good=False, at=claim.deleting_since, why=why)
