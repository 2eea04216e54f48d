"""What differs between a recorded case and the same case as it was played here.

Calls are paired by what is least different, those that say most first, so that the renaming is settled by them; then
objects under the same renaming. The caller sorts out the named differences.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from acceptance.traffic.cases import Case
from acceptance.traffic.comparing.calls import Call, read_calls, without_claim_tags
from acceptance.traffic.comparing.objects import comparable, unfolded, unsure
from acceptance.traffic.comparing.orders import disorders
from acceptance.traffic.comparing.renaming import Renaming
from acceptance.traffic.comparing.values import ABSENT, Bag, Difference, differences, pair
from acceptance.traffic.playing import Played, PlayedPhase
from dovetail.model.json import Json

# What says most comes first; a question by name is equal to any other until the name is known.
_FIRST: Final = ("CreateInstanceProfile", "CreateLaunchTemplate", "CreateFleet", "CreateTags")
_LAST: Final = ("DescribeLaunchTemplates", "GetInstanceProfile", "DeleteLaunchTemplate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One difference: in which phase, of which call or kind of object, where in it."""

    phase: str
    what: str  # `call CreateFleet`, `nodeClaims`, `order`, `case`
    path: str
    theirs: Any
    ours: Any
    context: Any = None  # the whole call, for rules that must know which

    def line(self, longest: int = 300) -> str:
        """As it is printed."""
        where = f"{self.phase}: {self.what}{f' {self.path}' if self.path else ''}"
        return f"{where}: theirs {_short(self.theirs, longest)}, ours {_short(self.ours, longest)}"


def _short(value: Any, longest: int) -> str:
    text = repr(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def compare(case: Case, played: Played) -> list[Found]:
    """Everything in which they differ."""
    if played.started != case.starts:
        return [Found(phase="start", what="case", path="started", theirs=case.starts, ours=played.started)]
    played = _with_poll(played)
    renaming = Renaming()
    found = _rejections(case, played)
    earlier: set[bytes] = set()
    theirs_objects = unfolded(case.expected.get("objects") or [])
    for phase in played.phases:
        recorded = case.phases.get(phase.name)
        before = frozenset(earlier)
        earlier |= {call.key() for call in read_calls(phase.entries) if call.is_read}
        if recorded is None:
            continue  # `start` is the same for the same settings, and recorded only in a few cases
        found += _calls(case, _Sides(played=phase, recorded=recorded, before=before), renaming)
        if phase.name in theirs_objects:
            found += _objects(case, (phase, theirs_objects[phase.name]), renaming)
    missing = [name for name in case.phases if name not in {phase.name for phase in played.phases}]
    found += [Found(phase=name, what="case", path="phase", theirs="played", ours=ABSENT) for name in missing]
    return found + [
        Found(phase=phase, what="order", path="", theirs="as the README says", ours=words)
        for phase, words in disorders(played)
    ]


def _with_poll(played: Played) -> Played:
    """The first poll of the queue belongs to the start: our ledger writes it down when it is answered, 20 s later."""
    polls = [entry for phase in played.phases for entry in phase.entries if entry["op"] == "ReceiveMessage"]
    phases = [
        replace(phase, entries=[*phase.entries, *polls[:1]]) if phase.name == "start" else phase
        for phase in played.phases
    ]
    return replace(played, phases=phases)


def _rejections(case: Case, played: Played) -> list[Found]:
    theirs = [str(each.get("kind")) for each in case.expected.get("rejected") or []]
    ours = [str(each.get("kind")) for each in played.rejected]
    inside = differences(sorted(theirs), sorted(ours), Renaming())
    return [Found(phase="class", what="rejected", path=d.path, theirs=d.theirs, ours=d.ours) for d in inside]


# ---- calls -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """One phase of both; `before` are our reads of earlier phases."""

    played: PlayedPhase
    recorded: Json
    before: frozenset[bytes]


def _calls(case: Case, sides: _Sides, renaming: Renaming) -> list[Found]:
    """The better of the recorded runs: both are right."""
    played, recorded = sides.played, sides.recorded
    entries, own = without_claim_tags(played.entries)
    ours = read_calls(entries)
    second = [each for each in case.expected.get("callsSecondRun") or [] if each["phase"] == played.name]
    best: tuple[list[Found], Renaming] | None = None
    for run in [recorded, *second]:
        trial = renaming.copy()
        found = _matched(sides, (read_calls(run.get("calls") or []), ours), trial)
        if best is None or len(found) < len(best[0]):
            best = found, trial
    assert best is not None
    renaming.become(best[1])
    tags = "input.TagSpecifications.instance"
    return best[0] + [
        Found(
            phase=played.name, what="call CreateFleet", path=f"{tags}.{key}", theirs=ABSENT, ours="one for each claim"
        )
        for key in own
    ]


def _matched(phase: _Sides, sides: tuple[list[Call], list[Call]], renaming: Renaming) -> list[Found]:
    theirs, ours = sides
    found: list[Found] = []
    for op in _in_order({each.op for each in [*theirs, *ours]}):
        here = [each for each in theirs if each.op == op], [each for each in ours if each.op == op]
        found += _of_operation(phase, here, renaming)
    return found


def _in_order(ops: Iterable[str]) -> list[str]:
    known = set(ops)
    middle = sorted(known - {*_FIRST, *_LAST})
    return [op for op in (*_FIRST, *middle, *_LAST) if op in known]


def _of_operation(phase: _Sides, sides: tuple[list[Call], list[Call]], renaming: Renaming) -> list[Found]:
    theirs, ours = sides
    found = []
    for polling in (False, True):  # a list by tags is never a question for an id that was changed
        left = [_Body(each) for each in theirs if each.is_background is polling]
        right = [_Body(each) for each in ours if each.is_background is polling]
        for one, other, inside in pair(left, right, renaming):
            present = other if one is ABSENT else one
            if one is ABSENT and (polling or (other.call.is_read and other.call.key() in phase.before)):
                continue  # they have it too, as a count; or it is a refresh, which a longer phase brings
            if other is ABSENT and _is_transport_retry(one.call, theirs, ours):
                continue
            has_classes = bool(phase.played.objects.get("nodeClasses"))
            if ABSENT in (one, other) and has_classes and present.call.op == "DeleteLaunchTemplate":
                continue  # of an idle template (rule 3); where the class has gone it is the class's clean-up
            found += [_found(phase.played.name, present.call, each) for each in inside]
    return found


class _Body(dict[str, Any]):
    """A call's body as a map to be compared, with the call at hand."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.body)
        self.call = call


def _is_transport_retry(call: Call, theirs: list[Call], ours: list[Call]) -> bool:
    """A second dry run of instances, on another subnet (rule 4)."""
    dry = [each for each in theirs if each.is_dry and each.error == "DryRunOperation"]
    return call.op == "RunInstances" and call in dry and len(dry) > 1 and any(each.is_dry for each in ours)


def _found(phase: str, call: Call, inside: Difference) -> Found:
    kind = "dry run" if call.is_dry else "call"
    whole = inside.path == ""
    return Found(
        phase=phase,
        what=f"{kind} {call.op}",
        path=inside.path,
        theirs=_words(inside.theirs) if whole else inside.theirs,
        ours=_words(inside.ours) if whole else inside.ours,
        context=call.body,
    )


def _words(side: Any) -> Any:
    return dict(side) if isinstance(side, _Body) else side


# ---- objects -----------------------------------------------------------------------------------------------


def _objects(case: Case, sides: tuple[PlayedPhase, Json], renaming: Renaming) -> list[Found]:
    """Kind by kind; one that differed between the two recordings says nothing."""
    phase, recorded = sides
    doubtful = unsure(case.expected.get("objects") or [], case.expected.get("differs") or [])
    theirs, ours = comparable(recorded), comparable(phase.objects)
    return [
        Found(phase=phase.name, what=kind, path=each.path, theirs=each.theirs, ours=each.ours)
        for kind in theirs
        if f"{kind}:{phase.name}" not in doubtful
        for each in differences(theirs[kind], ours.get(kind, Bag()), renaming)
    ]
