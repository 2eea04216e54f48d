"""What is done about a drain that something holds, and when?

There is one clock: the annotation `dovetail.sh/held-since` says what holds it and since when. What is done follows from
that, from the policies of the NodePool and from the time alone, so every worker finds the same, before and after a
crash. What has been said stands beside the clock.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.reasons.endings import ended_of
from dovetail.model.rules.drain_rules import NAMED_ONLY, Blocker, DrainRules, Escalation, Level, hook_rules
from dovetail.model.values.durations import DurationError, parse_seconds
from dovetail.model.values.time import format_time, time_or_none
from dovetail.termination.deadline import written_deadline

HELD_AFTER: Final = 60.0  # seconds for which the same thing must have held a drain
OWN_GRACE: Final = 30.0  # of a pod that names no grace period: what Kubernetes gives it
LONGEST_WAIT: Final = 30 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSince:
    """What holds the drain, since when, what has been said of that, and how long a person has asked to wait."""

    blocker: Blocker
    since: float
    levels: frozenset[Level] = frozenset()
    waits_until: float = 0.0

    @property
    def asks(self) -> bool:
        """Whether a person is asked, and has not answered."""
        return Level.ASK in self.levels and Level.FORCE not in self.levels


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainHold:
    """What holds a drain now. `pods`: all that it waits for; `protected`: whether one of them asks not to be disrupted;
    `held`: the pods that notices name; `reason`: why the node leaves."""

    blockers: frozenset[Blocker]
    reason: str
    says: str = ""
    pods: tuple[Pod, ...] = ()
    held: tuple[Pod, ...] = ()
    protected: bool = False

    @property
    def blocker(self) -> Blocker:
        return next(each for each in Blocker if each in self.blockers)


def began_at(claim: NodeClaim) -> float | None:
    """When its departure began: a clock from before that tells of another one. None where it does not leave."""
    mark = claim.condition(names.DISRUPTION_REASON)
    return mark.changed if mark is not None and mark.status == "True" else claim.deleting_since


def clock_of(claim: NodeClaim, began: float | None) -> HeldSince | None:
    """The clock on the claim; None where there is none that can be read, or where it tells of an earlier time."""
    kind, _, text = claim.annotations.get(names.HELD_SINCE, "").partition("@")
    since = time_or_none(text)
    blocker = next((each for each in Blocker if each == kind), None)
    if blocker is None or since is None or began is None or since < began:
        return None
    words = claim.annotations.get(names.HELD_LEVELS, "").split(",")
    levels = frozenset(level for level in Level if level in words)
    return HeldSince(blocker=blocker, since=since, levels=levels, waits_until=waits_until(claim))


def without_hold(claim: NodeClaim) -> dict[str, str | None]:
    """The annotations without what was said of its drain, where it stays. A deadline that the ladder has fixed would
    else take the pods of its next disruption at once."""
    found: dict[str, str | None] = {key: None for key in names.HOLD_ANNOTATIONS if key in claim.annotations}
    if claim.deleting_since is None and Level.FORCE in claim.annotations.get(names.HELD_LEVELS, "").split(","):
        found[names.TERMINATION_DEADLINE] = None
    return found


def waits_until(claim: NodeClaim) -> float:
    """Until when a person has asked to wait."""
    return time_or_none(claim.annotations.get(names.HELD_WAIT, "")) or 0.0


def new_clock(blocker: Blocker, since: float) -> dict[str, str | None]:
    """The annotations that start it. In whole seconds, upwards: nothing comes before its time."""
    return {names.HELD_SINCE: f"{blocker}@{format_time(math.ceil(since))}", names.HELD_LEVELS: None}


def with_level(clock: HeldSince, level: Level) -> dict[str, str | None]:
    """The annotation that says that it has been said."""
    return {names.HELD_LEVELS: ",".join(each for each in Level if each is level or each in clock.levels)}


def steps(rules: Sequence[DrainRules], hold: DrainHold) -> tuple[tuple[float, Level], ...]:
    """After how many seconds of this hold what is done, the first first.

    Of several policies the earliest word counts; a drain is forced only where all that have a ladder say so, and no
    earlier than the last of them. A hook that is waited for in vain is for a person to judge, whatever they say."""
    if Blocker.PAUSED in hold.blockers:
        return ()
    found: dict[Level, float] = {}
    for level in (Level.NOTIFY, Level.ASK):
        times = [each.after for one in rules for each in one.escalation if each.do is level and _speaks(each, hold)]
        if times:
            found[level] = min(times)
    forced = [_forced_after(each, hold) for each in rules if each.escalation]
    if forced and None not in forced:
        found[Level.FORCE] = max(each for each in forced if each is not None)
    hooks = hook_rules(rules)
    if hold.blocker is Blocker.HOOK_WAITS and not hooks.proceeds:
        found[Level.ASK] = min(hooks.timeout, found.get(Level.ASK, math.inf))
    return tuple(sorted(((after, level) for level, after in found.items()), key=_in_order))


def _in_order(step: tuple[float, Level]) -> tuple[float, int]:
    return step[0], list(Level).index(step[1])


def _speaks(step: Escalation, hold: DrainHold) -> bool:
    return _has_reason(step, hold) and (not step.blockers or hold.blocker in step.blockers)


def _has_reason(step: Escalation, hold: DrainHold) -> bool:
    return not step.reasons or hold.reason in step.reasons


def _forced_after(rules: DrainRules, hold: DrainHold) -> float | None:
    """A deadline takes every pod of the node, so everything that holds it must be meant."""
    all_there = hold.blockers | ({Blocker.DO_NOT_DISRUPT} if hold.protected else frozenset())
    times = [
        each.after
        for each in rules.escalation
        if each.do is Level.FORCE
        and _has_reason(each, hold)
        and (all_there <= each.blockers if each.blockers else not all_there & NAMED_ONLY)
    ]
    return min(times, default=None)


def coming(clock: HeldSince, ladder: Iterable[tuple[float, Level]]) -> Iterator[tuple[float, Level]]:
    """What has not been said yet, with its moment."""
    for after, level in ladder:
        if level not in clock.levels:
            yield max(clock.since + after, clock.waits_until), level


def forced_deadline(claim: NodeClaim, pods: Iterable[Pod], now: float) -> str | None:
    """The deadline that gives the pods their own grace; None where an earlier one stands."""
    graces = [OWN_GRACE if pod.grace_seconds is None else float(pod.grace_seconds) for pod in pods]
    moment = math.ceil(now + max(graces, default=0.0))
    written = written_deadline(claim)
    return None if written is not None and written <= moment else format_time(moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person has decided. `do`: force, wait or cancel; empty where it cannot be understood."""

    text: str
    by: str = ""
    do: str = ""
    seconds: float = 0.0

    @property
    def words(self) -> str:
        return f"{self.text} (by {self.by})" if self.by else self.text


def decision_of(claim: NodeClaim) -> Decision | None:
    """The answer on the claim; None where there is none."""
    text = claim.annotations.get(names.DECISION)
    if text is None:
        return None
    return read_decision(text, claim.annotations.get(names.DECISION_BY, "")[:120])


def read_decision(text: str, by: str = "") -> Decision:
    words, shown = text.split(), " ".join(text.split())[:60]
    if words in (["force"], ["cancel"]):
        return Decision(text=shown, by=by, do=words[0])
    if len(words) == 2 and words[0] == "wait":
        try:
            seconds = parse_seconds(words[1])
        except DurationError:
            return Decision(text=shown, by=by)
        if 0 < seconds <= LONGEST_WAIT:
            return Decision(text=shown, by=by, do="wait", seconds=seconds)
    return Decision(text=shown, by=by)


def drain_reason(claim: NodeClaim) -> str:
    """Why it leaves, in the words of a policy's reasons where it is one of them."""
    return ended_of(claim, lambda _: True).because


def ladder_words(clock: HeldSince, ladder: Sequence[tuple[float, Level]]) -> str:
    """What holds it, since when, and what comes next, for people."""
    words = f"held by {clock.blocker.words} since {format_time(clock.since)}"
    following = next(coming(clock, ladder), None)
    if clock.asks:
        words += ", and waits for `dovetail decide`"
    if following is None or Level.FORCE in clock.levels:
        return words
    return f"{words}; next: {following[1]} at {format_time(following[0])}"
