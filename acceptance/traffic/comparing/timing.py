"""Compares a case whose calls came in a sooner or later step than recorded.

Used where a case differs. Steps last a few seconds each, by a clock that was upstream's on an idle machine; what is
under way at the end of one is done in the next. All steps together are then compared as one, with the objects at their
end; that it was needed is itself a difference, and a named one.
"""

from dataclasses import replace
from typing import Final

from acceptance.traffic.cases import Case
from acceptance.traffic.comparing.events import EVENTS, TRANSITIONS
from acceptance.traffic.comparing.found import Found
from acceptance.traffic.comparing.objects import STATES
from acceptance.traffic.playing import Played, PlayedPhase
from dovetail.model.values.json import Json

OTHER_STEP: Final = Found(phase="steps", what="timing", path="step", theirs="in one step", ours="in another")
_STEP: Final = "step"


def joined(case: Case, played: Played) -> tuple[Case, Played] | None:
    """The case and what was played, with all steps as one; None where there is nothing to join."""
    steps = [phase for phase in played.phases if phase.name.startswith(_STEP)]
    names = [step.name for step in steps]
    if len(steps) < 2 or names != [name for name in case.phases if name.startswith(_STEP)]:
        return None
    one = PlayedPhase(
        name=names[-1],
        seconds=sum(step.seconds for step in steps),
        entries=[entry for step in steps for entry in step.entries],
        objects={**steps[-1].objects, "events": [event for step in steps for event in step.objects["events"]]},
    )
    before = [phase for phase in played.phases if phase not in steps]
    expected = {
        **case.expected,
        "calls": _calls(case.expected.get("calls") or []),
        "objects": _objects(case.expected.get("objects") or []),
        "callsSecondRun": _second(case),
        "differs": [each for each in case.expected.get("differs") or [] if not _is_moment(each)],
    }
    return replace(case, expected=expected), replace(played, phases=[*before, one])


def _split(phases: list[Json]) -> tuple[list[Json], list[Json]]:
    steps = [phase for phase in phases if phase["phase"].startswith(_STEP)]
    return [phase for phase in phases if phase not in steps], steps


def _calls(phases: list[Json]) -> list[Json]:
    before, steps = _split(phases)
    return [*before, {**steps[-1], "calls": [call for step in steps for call in step.get("calls") or []]}]


def _is_moment(doubt: str) -> bool:
    """What was published in one step in one recording and in another in the other is equal in all together."""
    kind, _, phase = doubt.partition(":")
    return kind in (EVENTS, TRANSITIONS) and phase.startswith(_STEP)


def _second(case: Case) -> list[Json]:
    """The second recordings: those before the steps as they are, those of steps as one with the other steps' first."""
    before, steps = _split(case.expected.get("callsSecondRun") or [])
    if not steps:
        return before
    by_name = {step["phase"]: step for step in steps}
    _, first = _split(case.expected.get("calls") or [])
    return [*before, *_calls([by_name.get(step["phase"], step) for step in first])]


def _objects(phases: list[Json]) -> list[Json]:
    """Each kind as it was last written down; of pods only what the last step says."""
    before, steps = _split(phases)
    if not steps:
        return before
    told = {kind: [each for step in steps for each in step.get(kind) or []] for kind in (EVENTS, TRANSITIONS)}
    one: Json = {"phase": steps[-1]["phase"], **told}
    for kind in STATES:
        said = [step[kind] for step in steps if kind in step]
        if said and (kind != "pods" or kind in steps[-1]):
            one[kind] = said[-1]
    return [*before, one]
