"""What differs between a recorded case and the same case as it was played here.

Calls are paired by what is least different, those that say most first, so that the renaming is settled by them; then
objects under the same renaming. The caller sorts out the named differences.
"""

from dataclasses import replace

from acceptance.traffic.cases import Case
from acceptance.traffic.comparing.agreement import disagreements
from acceptance.traffic.comparing.calls import read_calls, without_claim_tags
from acceptance.traffic.comparing.events import (
    EVENTS,
    TRANSITIONS,
    Told,
    compare_events,
    compare_transitions,
    transitions_of,
)
from acceptance.traffic.comparing.events import with_all_phases as events_with_all_phases
from acceptance.traffic.comparing.found import Found
from acceptance.traffic.comparing.matching import Sides, matched
from acceptance.traffic.comparing.objects import comparable, is_more, unfolded, unsure
from acceptance.traffic.comparing.orders import disorders
from acceptance.traffic.comparing.renaming import Renaming
from acceptance.traffic.comparing.values import ABSENT, Bag, differences
from acceptance.traffic.playing import Played, PlayedPhase
from dovetail.model.values.json import Json


def compare(case: Case, played: Played) -> list[Found]:
    """Everything in which they differ."""
    if played.started != case.starts:
        return [Found(phase="start", what="case", path="started", theirs=case.starts, ours=played.started)]
    played = _with_poll(played)
    comparison = _Comparison(case, played)
    found = _rejections(case, played)
    for phase in played.phases:
        found += comparison.of_phase(phase)
    found = events_with_all_phases(found, comparison.told, (case, played), comparison.renaming)
    missing = [name for name in case.phases if name not in {phase.name for phase in played.phases}]
    found += [Found(phase=name, what="case", path="phase", theirs="played", ours=ABSENT) for name in missing]
    found += [
        Found(phase=phase, what="order", path="", theirs="as the README says", ours=words)
        for phase, words in disorders(played)
    ]
    return found + [
        Found(phase=phase, what="agreement", path="", theirs="as the rest of the play", ours=words)
        for phase, words in disagreements(played)
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


def known_codes(case: Case) -> frozenset[str]:
    """Error codes of this case: those that its world declares, and those that the recorded calls were answered."""
    world = case.given.get("world") or {}
    codes = {each.get("code") for key in ("ice", "fail") for each in world.get(key) or ()}
    for phase in case.expected.get("calls") or []:
        for call in phase.get("calls") or []:
            refused = (call.get("output") or {}).get("errors") or ()
            codes |= {call.get("error"), *(each.get("code") for each in refused)}
    return frozenset(str(code) for code in codes if code)


class _Comparison:
    """One case, phase after phase: what either side has named and read so far."""

    def __init__(self, case: Case, played: Played) -> None:
        self._case, self.renaming, self.told = case, Renaming(), list[Told]()
        self._transitions: list[str] = []
        self._codes = known_codes(case)
        self._objects = unfolded(case.expected.get("objects") or [])
        self._ours_read: set[bytes] = set()
        self._theirs_read: set[bytes] = set()
        self._templates = frozenset(_templates(played))
        recorded = case.expected
        self._doubtful = unsure(recorded.get("objects") or [], recorded.get("differs") or [])

    def of_phase(self, phase: PlayedPhase) -> list[Found]:
        """Its calls, then its objects. `start` is the same for the same settings, and recorded in a few cases only."""
        recorded = self._case.phases.get(phase.name)
        found: list[Found] = []
        if recorded is not None:
            sides = Sides(
                played=phase,
                recorded=recorded,
                ours_before=frozenset(self._ours_read),
                theirs_before=frozenset(self._theirs_read),
                restarted=self._restarted(phase.name),
                templates=self._templates,
            )
            found += self._calls(sides)
            if phase.name in self._objects:
                found += self._states(phase, self._objects[phase.name])
        self._transitions += transitions_of(phase)
        self._ours_read |= {call.key() for call in read_calls(phase.entries) if call.is_read}
        theirs = (recorded or {}).get("calls") or []
        self._theirs_read |= {call.key() for call in read_calls(theirs) if call.is_read}
        return found

    def _restarted(self, phase: str) -> bool:
        steps = self._case.steps[: int(phase.removeprefix("step"))] if phase.startswith("step") else []
        return any("restart" in step for step in steps)

    def _calls(self, sides: Sides) -> list[Found]:
        """The better of the recorded runs: both are right."""
        played, recorded = sides.played, sides.recorded
        entries, own = without_claim_tags(played.entries)
        second = [each for each in self._case.expected.get("callsSecondRun") or [] if each["phase"] == played.name]
        best: tuple[list[Found], Renaming] | None = None
        for run in [recorded, *second]:
            trial = self.renaming.copy()
            found = matched(sides, (read_calls(run.get("calls") or []), read_calls(entries)), trial)
            if best is None or len(found) < len(best[0]):
                best = found, trial
        assert best is not None
        self.renaming.become(best[1])
        tags = "input.TagSpecifications.instance"
        return best[0] + [
            Found(
                phase=played.name,
                what="call CreateFleet",
                path=f"{tags}.{key}",
                theirs=ABSENT,
                ours="one for each claim",
            )
            for key in own
        ]

    def _states(self, phase: PlayedPhase, recorded: Json) -> list[Found]:
        """Kind by kind; one that differed between the two recordings says nothing."""
        theirs, ours = comparable(recorded, self._codes), comparable(phase.objects, self._codes)
        found = [
            Found(phase=phase.name, what=kind, path=each.path, theirs=each.theirs, ours=each.ours)
            for kind in theirs
            if f"{kind}:{phase.name}" not in self._doubtful
            for each in differences(theirs[kind], ours.get(kind, Bag()), self.renaming)
            if not is_more(each.path, each.theirs)
        ]
        if f"{TRANSITIONS}:{phase.name}" not in self._doubtful:
            found += compare_transitions(phase, recorded, self.renaming, self._transitions)
        events, told = compare_events(phase, recorded, self._codes, self.renaming)
        self.told.append(told)
        return found + (events if f"{EVENTS}:{phase.name}" not in self._doubtful else [])


def _templates(played: Played) -> set[str]:
    """Names of the templates that were created here."""
    return {
        str(entry["input"].get("LaunchTemplateName"))
        for phase in played.phases
        for entry in phase.entries
        if entry["op"] == "CreateLaunchTemplate" and not entry.get("error")
    }
