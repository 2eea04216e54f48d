"""The history of a roll-out, step by step, as kept in its status: when each began and ended, and how."""

from dataclasses import replace
from typing import Final

from dovetail.model.own.rollouts import BEGUN, REFUSED, STAY, Intent, Passage, Rollout, RolloutState, RolloutStatus
from dovetail.rules.rollout.approvals import is_fresh

MOST: Final = 20  # the latest passages, which are kept
_WORDS: Final = 120  # characters of a message
_SUPERSEDED: Final = "Superseded"
_OVER: Final = frozenset({RolloutState.COMPLETE, RolloutState.FAILED})


def with_history(rollout: Rollout, after: RolloutStatus, now: float) -> RolloutStatus:
    """The status after a move, with what it ended and what it began."""
    before, moment, known = rollout.status, float(int(now)), list(after.history)
    changed = _place(before) != _place(after)
    if known and known[-1].ended is None and (changed or after.state in _OVER):
        result, message = _ending(rollout, after)
        known[-1] = replace(known[-1], ended=moment, result=result, message=message)
    if changed and (after.state in BEGUN or after.state == RolloutState.ROLLING_BACK):
        known.append(Passage(step=after.step, began=moment))
    history = tuple(known[-MOST:])
    return after if history == after.history else replace(after, history=history)


def ended_as(before: RolloutStatus, after: RolloutStatus) -> str:
    """How the change ended with this move; empty if it goes on or had ended before."""
    if before.state not in BEGUN | {RolloutState.ROLLING_BACK}:
        return ""
    if after.state in _OVER:
        return str(after.state)
    going_on = {(each.step, each.began) for each in before.history if each.ended is None}
    left = {(each.step, each.began) for each in after.history if each.result == _SUPERSEDED}
    return _SUPERSEDED if going_on & left else ""


def _place(status: RolloutStatus) -> tuple[str, float, bool, bool]:
    return status.step, status.begun, status.state in REFUSED, status.state == RolloutState.ROLLING_BACK


def _ending(rollout: Rollout, after: RolloutStatus) -> tuple[str, str]:
    """How the open passage ended, and what a person should know about that."""
    before = rollout.status
    another = (before.target, before.makes) != (after.target, after.makes)
    why = after.failure.message if after.failure is not None else ""
    if before.state in REFUSED and not another:
        if after.state != RolloutState.FAILED:
            return "Left", "the target is tried anew"
        _, stay, no_way = why.partition(STAY)
        return ("Failed", f"{stay[2:]}{no_way}"[:_WORDS]) if stay else ("RolledBack", "")
    if after.state in REFUSED:
        return "Failed", why[:_WORDS]
    if another or after.begun != before.begun:
        return _SUPERSEDED, "the NodePool has another target"
    if after.step != before.step and rollout.wants == Intent.PROMOTE:
        return "Promoted", ""
    steps = [step.name for step in rollout.steps]
    known = before.step in steps and after.step in steps
    if after.step != before.step and not (known and steps.index(after.step) > steps.index(before.step)):
        return "Left", "nodes of an earlier step are gone, or the steps were changed"
    approval = rollout.approval if before.state == RolloutState.AWAITING and is_fresh(rollout) else None
    return "Passed", "" if approval is None else f"approved by {approval.by}"[:_WORDS]
