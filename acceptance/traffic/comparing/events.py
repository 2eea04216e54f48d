"""Events: by type, reason and object, by their cause where the words carry it, and by the error codes that they name.

How often and when an Event came says nothing by itself; that it never came does. What is on one side alone is therefore
looked at once more with the whole case in view: it may have come in another phase, or under a name or a reason that
upstream leaves out. Each such finding is still a difference, to be named; the rest stays what it was.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson

from acceptance.traffic.cases import Case
from acceptance.traffic.comparing.found import Found
from acceptance.traffic.comparing.renaming import Renaming
from acceptance.traffic.comparing.values import ABSENT, Bag, differences
from acceptance.traffic.playing import Played, PlayedPhase
from dovetail.model.values.json import Json

EVENTS: Final = "events"
TRANSITIONS: Final = "transitions"
MOMENT, NAME, REASON, CODES = "moment", "name", "reason", "codes"  # paths of what is told differently
FALSE_CONDITION: Final = "a condition of it is False for that reason"
LEAVES: Final = "it leaves, or has gone"
ITS_CLASS_LEAVES: Final = "its class leaves, or has gone"
ANNOUNCED: Final = "its disruption was announced"
AS_ITS_POOL_SAYS: Final = "as its NodePool says"
AS_IT_SAYS: Final = "as it says itself"
NOBODY: Final = "nobody knows its object"
NOT_ASKED_FOR: Final = "no pod asks for it"
NEVER: Final = "nothing of that reason was ever told"
ANSWERED: Final = "AWS answered with the error that it names"
# Here the message is the cause: which reason for the disruption, which zone. Elsewhere words are free (rule 7).
_CAUSES: Final = frozenset(
    (
        "DisruptionBlocked",
        "DisruptionLaunching",
        "DisruptionTerminating",
        "Evicted",
        "Unconsolidatable",
        "ZonalShiftActive",
        "ZonalShiftCleared",
    )
)
_TEXT: Final = re.compile(r"(\w+) (\w*) (\w+)/([^:]*)(?:: (.*))?", re.DOTALL)
_THEIR_TRANSITION: Final = re.compile(r"(\S+) (\S+) (\S+->\S+) (\w*).*", re.DOTALL)
_OUR_TRANSITION: Final = re.compile(
    r"Status condition transitioned, Type: (\w+), Status: (\w+) -> (\w+), Reason: (\w+).*", re.DOTALL
)
_ZONE: Final = re.compile(r"\b[a-z]{2}(?:-[a-z]+)+-\d[a-z]\b")
_POOL: Final = re.compile(r'NodePool "([^"]+)" has consolidation disabled')
_PROTECTION: Final = b"karpenter.sh/do-not-disrupt"
_STEP_FAILING: Final = "StepFailing"
_KINDS: Final = {"NodeClaim": "nodeClaims", "Node": "nodes", "EC2NodeClass": "nodeClasses", "NodePool": "nodePools"}


def _is_transition(body: Json) -> bool:
    """A condition's change, announced: the recording keeps these apart."""
    return str(body.get("message") or "").startswith("Status condition transitioned")


def _text(body: Json) -> str:
    """One text: two Events of different reasons have nothing in common."""
    kind, name, type_, reason = (body.get(key) or "" for key in ("kind", "name", "type", "reason"))
    cause = f": {_cause(reason, str(body.get('message') or ''))}" if reason in _CAUSES else ""
    return f"{type_} {reason} {kind}/{name}{cause}"


def _cause(reason: str, message: str) -> str:
    """Of a shift the zone: the words around it are each side's own."""
    return " ".join(_ZONE.findall(message)) if reason.startswith("ZonalShift") else message


def codes_in(message: object, known: Iterable[str]) -> frozenset[str]:
    """The error codes that a text names, among those that the case knows."""
    words = set(re.findall(r"[A-Za-z][A-Za-z0-9]*(?:\.[A-Za-z0-9]+)*", str(message or "")))
    return frozenset(words & set(known))


def _told(events: Sequence[Json], known: Iterable[str]) -> dict[str, frozenset[str]]:
    """Each distinct text with the codes that its messages name."""
    told: dict[str, frozenset[str]] = {}
    for body in events:
        if not _is_transition(body):
            text = _text(body)
            told[text] = told.get(text, frozenset()) | codes_in(body.get("message"), known)
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What both sides published in one phase."""

    phase: str
    theirs: Mapping[str, frozenset[str]]
    ours: Mapping[str, frozenset[str]]


def compare_events(
    phase: PlayedPhase, recorded: Json, known: frozenset[str], renaming: Renaming
) -> tuple[list[Found], Told]:
    """What differs in one phase, and what was published, to be looked at with the whole case in view."""
    told = Told(
        phase=phase.name,
        theirs=_told(recorded.get(EVENTS) or [], known),
        ours=_told(phase.objects.get(EVENTS) or [], known),
    )
    found = [
        Found(phase=phase.name, what=EVENTS, path=each.path, theirs=each.theirs, ours=each.ours)
        for each in differences(Bag(told.theirs), Bag(told.ours), renaming)
    ]
    return found + _codes(told, renaming), told


def _codes(told: Told, renaming: Renaming) -> list[Found]:
    """Codes that their text names and ours does not; ours may say more."""
    found = []
    for text, codes in told.theirs.items():
        ours = [named for other, named in told.ours.items() if renaming.copy().match(text, other)]
        if codes and ours and not any(codes <= named for named in ours):
            path, theirs = f"{CODES} of {text}", sorted(codes)
            found.append(Found(phase=told.phase, what=EVENTS, path=path, theirs=theirs, ours=sorted(ours[0])))
    return found


def transitions_of(phase: PlayedPhase) -> list[str]:
    """What we announced of conditions in a phase; not again what had the same words in an earlier one."""
    return [
        f"{each['kind']}/{each['name']} " + _OUR_TRANSITION.sub(r"\1 \2->\3 \4", str(each["message"]))
        for each in phase.objects.get(EVENTS) or []
        if _is_transition(each)
    ]


def compare_transitions(
    phase: PlayedPhase, recorded: Json, renaming: Renaming, before: Sequence[str] = ()
) -> list[Found]:
    """Conditions whose change was announced. `before`: ours of the earlier phases."""
    theirs = [_THEIR_TRANSITION.sub(r"\1 \2 \3 \4", str(each)) for each in recorded.get(TRANSITIONS) or []]
    ours = transitions_of(phase)
    told = [*before, *ours]
    inside = differences(Bag(dict.fromkeys(theirs)), Bag(dict.fromkeys(ours)), renaming)
    return [
        Found(
            phase=phase.name,
            what=TRANSITIONS,
            path=each.path,
            theirs=each.theirs,
            ours=each.ours,
            note=AS_IT_SAYS if each.theirs is ABSENT and _led_there(str(each.ours), told, phase) else "",
        )
        for each in inside
    ]


def _led_there(text: str, told: Sequence[str], phase: PlayedPhase) -> bool:
    """Whether an object's transitions of that condition, in some order, end at what it says at the phase's end."""
    about, type_, *_ = text.split(" ")
    kind, _, name = about.partition("/")
    conditions = ((_object(phase, kind, name) or {}).get("status") or {}).get("conditions") or []
    says = {each["status"] for each in conditions if each["type"] == type_}
    steps = [each.split(" ")[2].partition("->") for each in told if each.startswith(f"{about} {type_} ")]
    left, reached = {step[0] for step in steps}, {step[2] for step in steps}
    return bool(says) and says <= reached and reached - left <= says


# ---- with the whole case in view -----------------------------------------------------------------------------


def with_all_phases(
    found: list[Found], told: Sequence[Told], sides: tuple[Case, Played], renaming: Renaming
) -> list[Found]:
    """The same differences, those of Events as what they are."""
    case, played = sides
    phases = {phase.name: phase for phase in played.phases}
    pools = {pool["metadata"]["name"]: pool["spec"] for pool in case.objects("nodePools")}
    known = _names(played)
    asked = _PROTECTION in orjson.dumps(case.given)
    kept = [each for each in found if each.what != EVENTS or each.path]
    alone = [each for each in found if each.what == EVENTS and not each.path]
    named: list[Found] = []
    for phase in dict.fromkeys(each.phase for each in alone):
        named += _named([each for each in alone if each.phase == phase], phases[phase], renaming)
    settled = [_moment(each, told, renaming) for each in named]

    def with_note(one: Found) -> Found:
        announced = _announced(one, told, renaming)
        if announced is not None:
            return announced
        if one.ours is ABSENT:
            return _never_told(one, told)
        return _unfounded(_noted(one, phases, pools), known, asked)

    return kept + [with_note(each) for each in settled]


def _names(played: Played) -> frozenset[str]:
    """Every object of the play, as `Kind/name`."""
    return frozenset(
        f"{kind}/{(body.get('metadata') or body)['name']}"
        for phase in played.phases
        for kind, listed in _KINDS.items()
        for body in phase.objects.get(listed) or []
    )


def _never_told(one: Found, told: Sequence[Told]) -> Found:
    """One of theirs that ours lacks: whether ours tells of that reason at all."""
    type_, reason, kind, _, _ = _parts(str(one.theirs))
    said = any(text.startswith(f"{type_} {reason} {kind}/") for each in told for text in each.ours)
    return one if said or one.path else replace(one, note=NEVER)


def _unfounded(one: Found, known: Collection[str], asked: bool) -> Found:
    """One of ours about an object that there never was, or about a protection that no pod asks for."""
    _, _, kind, name, cause = _parts(str(one.ours))
    if one.path or kind not in _KINDS:
        return one
    if f"{kind}/{name}" not in known:
        return replace(one, note=NOBODY)
    return one if asked or _PROTECTION.decode() not in cause else replace(one, note=NOT_ASKED_FOR)


def _named(alone: list[Found], phase: PlayedPhase, renaming: Renaming) -> list[Found]:
    """Theirs without a name or a reason, paired with ours that have one: one of theirs with all of ours."""
    left = list(alone)
    for one in [each for each in alone if each.ours is ABSENT]:
        path, pattern = _lacking(str(one.theirs), renaming)
        partners = [
            each
            for each in left
            if pattern is not None
            and each.theirs is ABSENT
            and pattern.fullmatch(str(each.ours))
            and (path == REASON or _leaves(str(each.ours), phase))
        ]
        if partners:
            left = [each for each in left if each is not one and each not in partners]
            left.append(replace(one, path=path, ours=[each.ours for each in partners]))
    return left


def _lacking(text: str, renaming: Renaming) -> tuple[str, re.Pattern[str] | None]:
    """What an Event of theirs has not, and what one of ours looks like that has it."""
    type_, reason, kind, name, _ = _parts(text)
    if not name:
        return NAME, re.compile(rf"{type_} {reason} {kind}/[^:]+(?:: .*)?", re.DOTALL)
    if not reason:
        ours = re.escape(renaming.ours_of.get(name, name))
        return REASON, re.compile(rf"{type_} \w+ {kind}/{ours}(?:: .*)?", re.DOTALL)
    return "", None


def _parts(text: str) -> tuple[str, str, str, str, str]:
    found = _TEXT.fullmatch(text)
    return tuple(part or "" for part in found.groups()) if found else ("", "", "", text, "")  # type: ignore[return-value] # five groups


def _moment(one: Found, told: Sequence[Told], renaming: Renaming) -> Found:
    """Whether the other side has published it, too, in another phase."""
    if one.path or (one.theirs is not ABSENT and one.ours is not ABSENT):
        return one
    for each in told:
        if one.ours is ABSENT:
            other = next((text for text in each.ours if renaming.copy().match(str(one.theirs), text)), None)
        else:
            other = next((text for text in each.theirs if renaming.copy().match(text, str(one.ours))), None)
        if other is not None and each.phase != one.phase:
            there = f"{other} in {each.phase}"
            return replace(one, path=MOMENT, **({"ours": there} if one.ours is ABSENT else {"theirs": there}))
    return one


def _announced(one: Found, told: Sequence[Told], renaming: Renaming) -> Found | None:
    """That something blocks a disruption which was announced here in any phase: it was blocked for a moment."""
    _, reason, kind, name, _ = _parts(str(one.theirs if one.ours is ABSENT else one.ours))
    began = f"Normal DisruptionTerminating {kind}/{renaming.ours_of.get(name, name)}: "
    said = any(text.startswith(began) for each in told for text in each.ours)
    return replace(one, note=ANNOUNCED) if said and reason == "DisruptionBlocked" and not one.path else None


def _noted(one: Found, phases: Mapping[str, PlayedPhase], pools: Mapping[str, Json]) -> Found:
    """An Event that we published alone: whether the objects at the phase's end bear it out."""
    if one.path or one.theirs is not ABSENT:
        return one
    text, phase = str(one.ours), phases[one.phase]
    _, reason, kind, name, cause = _parts(text)
    pool = _POOL.fullmatch(cause)
    note = ""
    if reason == _STEP_FAILING:
        note = ANSWERED if _names_an_answer(text, phase) else ""
    elif _is_false(_object(phase, kind, name), reason):
        note = FALSE_CONDITION
    elif pool is not None:
        note = AS_ITS_POOL_SAYS if _consolidates_never(pools.get(pool.group(1))) else ""
    elif kind == "NodePool":
        note = ITS_CLASS_LEAVES if _leaves(f"Normal x EC2NodeClass/{_class_of(pools.get(name))}", phase) else ""
    elif _leaves(text, phase):
        note = LEAVES
    return replace(one, note=note)


def _names_an_answer(text: str, phase: PlayedPhase) -> bool:
    """Whether each Event of that text names an error that a call, or a pool of a fleet, was answered in its phase."""
    entries = [each for each in phase.entries if not each["input"].get("DryRun")]
    refusals = [each for entry in entries for each in (entry.get("output") or {}).get("errors") or ()]
    codes = {*(entry.get("error") for entry in entries), *(each.get("code") for each in refusals)}
    said = [str(body.get("message")) for body in phase.objects.get(EVENTS) or [] if _text(body) == text]
    return bool(said) and all(codes_in(message, (str(code) for code in codes)) for message in said)


def _object(phase: PlayedPhase, kind: str, name: str) -> Json | None:
    for body in phase.objects.get(_KINDS.get(kind, "")) or []:
        if (body.get("metadata") or body).get("name") == name:
            return dict(body)
    return None


def _leaves(text: str, phase: PlayedPhase) -> bool:
    """Whether its object is leaving or has gone at the phase's end."""
    _, _, kind, name, _ = _parts(text)
    body = _object(phase, kind, name)
    return kind in _KINDS and (body is None or bool(body.get("metadata", {}).get("deletionTimestamp")))


def _is_false(body: Json | None, reason: str) -> bool:
    conditions = ((body or {}).get("status") or {}).get("conditions") or []
    return any(each["status"] == "False" and each.get("reason") == reason for each in conditions)


def _consolidates_never(pool: Json | None) -> bool:
    disruption = (pool or {}).get("disruption") or {}
    return bool(disruption.get("consolidateAfter") == "Never")


def _class_of(pool: Json | None) -> str:
    return str(pool["template"]["spec"]["nodeClassRef"]["name"]) if pool is not None else ""
