"""The conditions of a class (AWS-27).

Pure: verdicts in, the list of conditions out; Ready follows from the others. The time of a change is kept where nothing
changed, so that an unchanged class is not written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from dovetail.model.json import Json

IMAGES: Final = "AMIsReady"
SUBNETS: Final = "SubnetsReady"
GROUPS: Final = "SecurityGroupsReady"
PROFILE: Final = "InstanceProfileReady"
VALIDATION: Final = "ValidationSucceeded"
PLACEMENT: Final = "PlacementGroupReady"
RESERVATIONS: Final = "CapacityReservationsReady"
READY: Final = "Ready"

DEPENDENCIES: Final = (IMAGES, PROFILE, GROUPS, SUBNETS)  # what validation needs first (AWS-40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One condition's state."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


UNKNOWN: Final = Verdict(status="Unknown", reason="AwaitingReconciliation", message="object is awaiting reconciliation")


def true(kind: str) -> Verdict:
    """It holds."""
    return Verdict(status="True", reason=kind)


def false(reason: str, message: str) -> Verdict:
    """It does not, and why."""
    return Verdict(status="False", reason=reason, message=message)


def ready(verdicts: Mapping[str, Verdict]) -> Verdict:
    """All must hold."""
    bad = [kind for kind, verdict in verdicts.items() if verdict.status == "False"]
    open_ = [kind for kind, verdict in verdicts.items() if verdict.status == "Unknown"]
    text = ", ".join(f"{kind}={verdicts[kind].status}" for kind in (*bad, *open_))
    if bad:
        return false("UnhealthyDependents", text)
    if open_:
        return Verdict(status="Unknown", reason="ReconcilingDependents", message=text)
    return true(READY)


def conditions(before: Iterable[Json], verdicts: Mapping[str, Verdict], generation: int, now: float) -> list[Json]:
    """status.conditions, sorted by type; `generation` is the one that was looked at."""
    old = {condition["type"]: condition for condition in before}
    new = {**verdicts, READY: ready(verdicts)}
    stamp = datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [_condition(kind, new[kind], old.get(kind), generation, stamp) for kind in sorted(new)]


def _condition(kind: str, verdict: Verdict, old: Json | None, generation: int, stamp: str) -> Json:
    unchanged = old is not None and old.get("status") == verdict.status
    return {
        "type": kind,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": verdict.message,
        "lastTransitionTime": old["lastTransitionTime"] if old is not None and unchanged else stamp,
        "observedGeneration": generation,
    }


def verdict_of(before: Iterable[Json], kind: str) -> Verdict:
    """What the object says now."""
    for condition in before:
        if condition.get("type") == kind:
            return Verdict(
                status=condition["status"], reason=condition.get("reason", ""), message=condition.get("message", "")
            )
    return UNKNOWN
