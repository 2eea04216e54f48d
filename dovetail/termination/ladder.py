"""What is done about a drain that something holds, and when?

What is done follows from the clocks on the NodeClaim (`hold_clocks`), from the policies of the NodePool and from the
time alone, so every worker finds the same, before and after a crash. What has been said stands beside the clocks.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_rules import is_protected
from dovetail.model.own.claim_memory import remembering
from dovetail.model.own.drain_rules import NAMED_ONLY, Blocker, DrainRules, Escalation, Level, hook_rules
from dovetail.model.own.held_drains import NOT_HELD, HeldSince
from dovetail.model.pods import Pod
from dovetail.model.reasons.endings import ended_of
from dovetail.model.values.durations import DurationError, parse_seconds
from dovetail.model.values.time import format_time

LONGEST_WAIT: Final = 30 * 86_400.0
LONGEST_FORCE: Final = 3600.0  # from a force until nothing is put off any longer for the grace of a pod
AFTER_THE_PODS: Final = (Blocker.HOOK_WAITS, Blocker.VOLUMES_ATTACHED)  # waits that a force must be meant for


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainHold:
    """What holds a drain now. `protected`: whether one of its pods asks not to be disrupted; `held`: the pods that
    notices name; `reason`: why the node leaves; `first_eviction`: whether the hooks among them hold that, and not the
    end of the instance."""

    blockers: frozenset[Blocker]
    reason: str
    says: str = ""
    held: tuple[Pod, ...] = ()
    protected: bool = False
    first_eviction: bool = False

    @property
    def blocker(self) -> Blocker:
        return next(each for each in Blocker if each in self.blockers)


def began_at(claim: NodeClaim) -> float | None:
    """When its departure began: a clock from before that tells of another one. None where it does not leave."""
    mark = claim.condition(names.DISRUPTION_REASON)
    return mark.changed if mark is not None and mark.status == "True" else claim.deleting_since


def asked_about(clock: HeldSince | None) -> frozenset[Blocker]:
    """What a `force` answers that names nothing. A wait for hooks or volumes is among it only once a person was asked
    about that: before, they answer the question about a pod that has left since."""
    if clock is None or (clock.blocker in AFTER_THE_PODS and Level.ASK not in clock.levels):
        return frozenset()
    return frozenset({clock.blocker})


def without_hold(claim: NodeClaim, **others: Any) -> dict[str, str | None]:
    """The annotations without what was said of its drain, where it stays, and with the `others` of what is remembered.
    What forces it would else take the pods of its next disruption at once."""
    answered = {key: None for key in (names.DECISION, names.DECISION_BY) if key in claim.annotations}
    return {**answered, **remembering(claim.annotations, held=NOT_HELD, **others)}


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
    forced = _forcing(rules, hold)
    if forced:
        found[Level.FORCE] = max(each.after for each in forced)
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


def forced_through(rules: Sequence[DrainRules], hold: DrainHold) -> frozenset[Blocker]:
    """What a force of this hold is meant for: what all policies name, or what holds the drain now where one names
    nothing. Empty where not all say so."""
    meant = [frozenset(each.blockers or _all_there(hold)) for each in _forcing(rules, hold)]
    return frozenset(each for each in Blocker if meant and all(each in blockers for blockers in meant))


def _forcing(rules: Sequence[DrainRules], hold: DrainHold) -> tuple[Escalation, ...]:
    """The first step of each policy with a ladder that forces such a hold; empty where one has none. All pods of the
    node are forced, so everything that holds it must be meant."""
    found = []
    for each in rules:
        steps_of = [step for step in each.escalation if step.do is Level.FORCE and _means(step, hold)]
        if steps_of:
            found.append(min(steps_of, key=lambda step: step.after))
        elif each.escalation or each.unread:
            return ()
    return tuple(found)


def _means(step: Escalation, hold: DrainHold) -> bool:
    there = _all_there(hold)
    return _has_reason(step, hold) and (there <= step.blockers if step.blockers else not there & NAMED_ONLY)


def _all_there(hold: DrainHold) -> frozenset[Blocker]:
    return hold.blockers | ({Blocker.DO_NOT_DISRUPT} if hold.protected else frozenset())


def coming(
    clock: HeldSince, ladder: Iterable[tuple[float, Level]], waits_until: float
) -> Iterator[tuple[float, Level]]:
    """What has not been said yet, with its moment."""
    for after, level in ladder:
        if level not in clock.levels:
            yield max(clock.since + after, waits_until), level


def forced_deadline(pods: Iterable[Pod], now: float) -> float:
    """By when these pods, all that are left on the node, have had their own grace. One with a long grace has it, but
    nothing else is put off for it: most end long before."""
    ends = [now + pod.own_grace if pod.deleting_since is None else pod.deleting_since for pod in pods]
    return float(math.ceil(min(max([now, *ends]), now + LONGEST_FORCE)))


def may_be_protected(pods: Iterable[Pod], now: float) -> bool:
    """Whether one of them asks not to be disrupted, or cannot be judged."""
    judging = Judging()
    found = [judging.judge(pod, "drain", is_protected, pod, now) for pod in pods]
    return any(each is True or isinstance(each, Unjudged) for each in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person has decided. `do`: force, wait or cancel; empty where it cannot be understood. `through`: what they
    name that a force is meant for, besides what it was asked about."""

    text: str
    by: str = ""
    do: str = ""
    seconds: float = 0.0
    through: frozenset[Blocker] = frozenset()

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
    if words == ["cancel"]:
        return Decision(text=shown, by=by, do="cancel")
    if words[:1] == ["force"] and all(word in AFTER_THE_PODS for word in words[1:]):
        through = frozenset(blocker for blocker in AFTER_THE_PODS if blocker in words)
        return Decision(text=shown, by=by, do="force", through=through)
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


def ladder_words(clock: HeldSince, ladder: Sequence[tuple[float, Level]], waits_until: float) -> str:
    """What holds it, since when, and what comes next, for people."""
    words = f"held by {clock.blocker.words} since {format_time(clock.since)}"
    following = next(coming(clock, ladder, waits_until), None)
    if clock.asks:
        words += ", and waits for `dovetail decide`"
    if following is None or Level.FORCE in clock.levels:
        return words
    return f"{words}; next: {following[1]} at {format_time(following[0])}"
