"""Pairs the calls of one phase by what is least different, and says what is left over on either side."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from acceptance.traffic.comparing.calls import Call
from acceptance.traffic.comparing.found import Found
from acceptance.traffic.comparing.renaming import Renaming
from acceptance.traffic.comparing.values import ABSENT, Difference, pair
from acceptance.traffic.playing import PlayedPhase
from dovetail.model.values.json import Json

# What says most comes first; a question by name is equal to any other until the name is known.
_FIRST: Final = ("CreateInstanceProfile", "CreateLaunchTemplate", "CreateFleet", "CreateTags")
_LAST: Final = ("DescribeLaunchTemplates", "GetInstanceProfile", "DeleteLaunchTemplate")
# What each side asks again once a minute for each class, and each half minute for zonal shifts.
_REFRESHES: Final = frozenset(
    (
        "DescribeCapacityReservations",
        "DescribeImages",
        "DescribePlacementGroups",
        "DescribeSecurityGroups",
        "DescribeSubnets",
        "GetManagedResource",
        "GetParameter",
    )
)
_REFRESH_SECONDS: Final = 60.0
_OFTEN, _RESTLESS = 3, 10
REFRESH: Final = "asked before"
SHORT: Final = "asked before, in a phase of ours under a minute"
AT_START: Final = "asked at our start"
KNOWN: Final = "of a template that there is, after a restart"
AT_RESTART: Final = "after a restart"
CLASS_STAYS: Final = "while its class stays"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """One phase of both; what each side had read in the phases before."""

    played: PlayedPhase
    recorded: Json
    ours_before: frozenset[bytes]
    theirs_before: frozenset[bytes]
    restarted: bool  # whether the case has restarted the worker, in this step or before
    templates: frozenset[str]  # names of those that we have created in the case


def matched(sides: Sides, calls: tuple[list[Call], list[Call]], renaming: Renaming) -> list[Found]:
    """What differs, operation by operation."""
    theirs, ours = calls
    found: list[Found] = []
    for op in _in_order({each.op for each in [*theirs, *ours]}):
        here = [each for each in theirs if each.op == op], [each for each in ours if each.op == op]
        found += _of_operation(sides, here, renaming)
    return found


def _in_order(ops: Iterable[str]) -> list[str]:
    known = set(ops)
    middle = sorted(known - {*_FIRST, *_LAST})
    return [op for op in (*_FIRST, *middle, *_LAST) if op in known]


def _of_operation(sides: Sides, calls: tuple[list[Call], list[Call]], renaming: Renaming) -> list[Found]:
    theirs, ours = calls
    found = []
    # a list by tags is never a question for an id that was changed, nor a dry run a launch
    for polling, dry in itertools.product((False, True), (False, True)):
        left = [_Body(each) for each in theirs if (each.is_background, each.is_dry) == (polling, dry)]
        right = [_Body(each) for each in ours if (each.is_background, each.is_dry) == (polling, dry)]
        for one, other, inside in pair(left, right, renaming):
            if one is ABSENT and polling:
                continue  # they have it too, as a count
            if other is ABSENT and _is_transport_retry(one.call, theirs, ours):
                continue
            present = (other if one is ABSENT else one).call
            note = _note(sides, present, of_ours=one is ABSENT) if ABSENT in (one, other) else ""
            found += [_found(sides.played.name, present, each, note) for each in inside]
            if ABSENT not in (one, other) and not polling:
                found += _too_often(sides.played.name, one.call, other.call)
    return found


def _too_often(phase: str, theirs: Call, ours: Call) -> list[Found]:
    """How often a read, or a call that is refused, is repeated says nothing (rule 3), but for one that never rests."""
    if ours.times <= _OFTEN * theirs.times + _RESTLESS:
        return []
    return [Found(phase=phase, what=f"call {ours.op}", path="times", theirs=theirs.times, ours=ours.times)]


class _Body(dict[str, Any]):
    """A call's body as a map to be compared, with the call at hand."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.body)
        self.call = call


def _is_transport_retry(call: Call, theirs: list[Call], ours: list[Call]) -> bool:
    """A second dry run of instances, on another subnet (rule 4)."""
    dry = [each for each in theirs if each.is_dry and each.error == "DryRunOperation"]
    return call.op == "RunInstances" and call in dry and len(dry) > 1 and any(each.is_dry for each in ours)


def _note(sides: Sides, call: Call, *, of_ours: bool) -> str:
    """What is known of a call that one side made alone."""
    if call.op == "DeleteLaunchTemplate":
        return CLASS_STAYS if sides.played.objects.get("nodeClasses") else ""
    if call.op == "DescribeLaunchTemplates" and of_ours:
        names = set((call.body.get("input") or {}).get("LaunchTemplateNames") or ())
        return KNOWN if sides.restarted and names <= sides.templates else ""
    if call.op == "GetCallerIdentity" and of_ours:
        return AT_RESTART if sides.restarted else ""
    if call.op in _REFRESHES and of_ours:
        return REFRESH if call.key() in sides.ours_before else ""
    if call.op in _REFRESHES and sides.played.name == "class" and call.key() in sides.ours_before:
        return AT_START  # what is asked once a start may come after the first object, upstream being ready so soon
    if call.op in _REFRESHES and call.key() in sides.theirs_before:
        return SHORT if sides.played.seconds < _REFRESH_SECONDS else ""
    return ""


def _found(phase: str, call: Call, inside: Difference, note: str) -> Found:
    kind = "dry run" if call.is_dry else "call"
    whole = inside.path == ""
    return Found(
        phase=phase,
        what=f"{kind} {call.op}",
        path=inside.path,
        theirs=_words(inside.theirs) if whole else inside.theirs,
        ours=_words(inside.ours) if whole else inside.ours,
        context=call.body,
        note=note,
    )


def _words(side: Any) -> Any:
    return dict(side) if isinstance(side, _Body) else side
