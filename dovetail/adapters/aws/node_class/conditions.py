"""The conditions of a class (AWS-27).

Pure: verdicts in, the list of conditions out; Ready follows from the others. An unchanged condition keeps the time of
its last change, so that an unchanged class is not written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal

from dovetail.model.values.json import Json

IMAGES: Final = "AMIsReady"
SUBNETS: Final = "SubnetsReady"
GROUPS: Final = "SecurityGroupsReady"
PROFILE: Final = "InstanceProfileReady"
VALIDATION: Final = "ValidationSucceeded"
PLACEMENT: Final = "PlacementGroupReady"
RESERVATIONS: Final = "CapacityReservationsReady"
READY: Final = "Ready"
UP_TO_DATE: Final = "NodesUpToDate"  # of its nodes: the class is ready whatever it says

_SETTING: Final = (IMAGES, RESERVATIONS, PLACEMENT, SUBNETS, GROUPS, PROFILE, VALIDATION)  # upstream's order
# What a person changes where one of them does not hold.
_FIELDS: Final = {
    IMAGES: "spec.amiSelectorTerms",
    SUBNETS: "spec.subnetSelectorTerms",
    GROUPS: "spec.securityGroupSelectorTerms",
    PLACEMENT: "spec.placementGroupSelector",
    PROFILE: "spec.role or spec.instanceProfile",
    RESERVATIONS: "spec.capacityReservationSelectorTerms",
}
DEPENDENCIES: Final = (IMAGES, PROFILE, GROUPS, SUBNETS)  # what validation needs first (AWS-40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""
    generation: int | None = None  # the one that was looked at last, where that is an earlier one


UNKNOWN: Final = Verdict(status="Unknown", reason="AwaitingReconciliation", message="object is awaiting reconciliation")


def true(kind: str) -> Verdict:
    return Verdict(status="True", reason=kind)


def false(reason: str, message: str) -> Verdict:
    return Verdict(status="False", reason=reason, message=message)


def conditions(before: Iterable[Json], verdicts: Mapping[str, Verdict], generation: int, now: float) -> list[Json]:
    """status.conditions, sorted by type; `generation` is the one that was looked at. Ready is of the earliest of its
    parts' (AWS-27)."""
    old = {condition["type"]: condition for condition in before}
    stamp = datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    parts = [_condition(kind, verdict, old.get(kind), generation, stamp) for kind, verdict in verdicts.items()]
    earliest = min([generation, *(part["observedGeneration"] for part in parts)])
    root = _condition(READY, _ready(parts), old.get(READY), earliest, stamp)
    kept = [old[UP_TO_DATE]] if UP_TO_DATE in old else []
    return sorted([*parts, root, *kept], key=lambda condition: condition["type"])


def with_progress(before: Iterable[Json], verdict: Verdict, generation: int, now: float) -> list[Json]:
    """The same conditions, with the state of its nodes."""
    stamp = datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    old = {condition["type"]: condition for condition in before}
    found = {**old, UP_TO_DATE: _condition(UP_TO_DATE, verdict, old.get(UP_TO_DATE), generation, stamp)}
    return sorted(found.values(), key=lambda condition: condition["type"])


def _ready(parts: Iterable[Json]) -> Verdict:
    """All must hold. Those that do not are named as upstream names them, the newest transition first (PLM-6)."""
    bad = sorted((part for part in parts if part["status"] != "True"), key=_within_a_moment)
    bad.sort(key=lambda part: part["lastTransitionTime"], reverse=True)
    text = ", ".join(f"{part['type']}={part['status']}" for part in bad)
    if any(part["status"] == "False" for part in bad):
        return false("UnhealthyDependents", text)
    if bad:
        return Verdict(status="Unknown", reason="ReconcilingDependents", message=text)
    return true(READY)


def why_not_ready(parts: Iterable[tuple[str, str, str]]) -> str:
    """Of (type, status, message): each False one in its own words, with the field to correct; empty without any."""
    return "; ".join(
        f"{kind}: {message}{f' (see {_FIELDS[kind]})' if kind in _FIELDS else ''}"
        for kind, status, message in parts
        if status == "False" and message and kind not in (READY, UP_TO_DATE)
    )


def _within_a_moment(part: Json) -> tuple[int, int, str]:
    """Upstream sets them one after another, so the last is the newest; what is Unknown has been so from the start."""
    kind = part["type"]
    place = _SETTING.index(kind) if kind in _SETTING else len(_SETTING)
    return (1, place, kind) if part["status"] == "Unknown" else (0, -place, kind)


def _condition(kind: str, verdict: Verdict, old: Json | None, generation: int, stamp: str) -> Json:
    unchanged = old is not None and old.get("status") == verdict.status
    return {
        "type": kind,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": verdict.message,
        "lastTransitionTime": old["lastTransitionTime"] if old is not None and unchanged else stamp,
        "observedGeneration": generation if verdict.generation is None else verdict.generation,
    }


def kept(before: Iterable[Json], kind: str, generation: int, why: Exception) -> Verdict:
    """The former verdict of a part that cannot be looked at now. It says nothing of a change since: what was changed
    may be what would be found wrong, or what instances must no longer be launched with."""
    condition = next((each for each in before if each.get("type") == kind), None)
    if condition is None:
        return UNKNOWN
    seen = int(condition.get("observedGeneration") or 0)
    if seen == generation:
        return verdict_of([condition], kind)
    return replace(UNKNOWN, message=f"its latest change has not been looked at: {why}", generation=seen)


def verdict_of(before: Iterable[Json], kind: str) -> Verdict:
    for condition in before:
        if condition.get("type") == kind:
            return Verdict(
                status=condition["status"], reason=condition.get("reason", ""), message=condition.get("message", "")
            )
    return UNKNOWN
