"""The conditions of a NodeRollout, in the words of kstatus: Ready when complete, Reconciling while it goes on, Stalled
when a person is needed, Healthy by its gates."""

from typing import Final

from dovetail.model.names import READY
from dovetail.model.nodes import FALSE, TRUE, UNKNOWN
from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollouts import BEGUN, REFUSED, Intent, Rollout, RolloutState

STALLED: Final = "Stalled"
RECONCILING: Final = "Reconciling"
HEALTHY: Final = "Healthy"
STABLE_PINNED: Final = "StablePinned"
UNKNOWN_FOR: Final = 1800.0  # seconds after which a person is needed if a gate cannot be asked
_HEALTH: Final = {
    GateResult.PASSING: (TRUE, "GatesPass"),
    GateResult.UNKNOWN: (UNKNOWN, "GatesUnknown"),
    GateResult.FAILING: (FALSE, "GateFails"),
}

_Said = tuple[str, str, str]  # status, reason, message


def conditions_of(rollout: Rollout, has_pool: bool, now: float) -> dict[str, _Said]:
    """The conditions of a roll-out that can be read, by type."""
    state, intent = rollout.status.state, rollout.intent
    is_complete = state == RolloutState.COMPLETE
    stalled = _stalled(rollout, has_pool, now)
    goes_on = (state in BEGUN or rollout.goes_back) and stalled[0] == FALSE and intent != Intent.PAUSE
    reason = str(intent) if intent == Intent.PAUSE else str(state)
    said = {
        HEALTHY: (*_HEALTH[rollout.verdict.result], rollout.doubts),
        READY: (TRUE, reason, "") if is_complete else (FALSE, reason, rollout.words),
        STALLED: stalled,
        RECONCILING: (TRUE if goes_on else FALSE, reason, ""),
    }
    if state in BEGUN | REFUSED:
        said[STABLE_PINNED] = _pinned(rollout)
    return said


def _stalled(rollout: Rollout, has_pool: bool, now: float) -> _Said:
    """Whether a person is needed, and for what."""
    state = rollout.status.state
    if not has_pool:
        return TRUE, "NodePoolNotFound", f"there is no NodePool {rollout.pool}"
    if rollout.intent == Intent.ABORT and state != RolloutState.COMPLETE:
        return TRUE, "Aborted", "its nodes are held until its intent is Run, or it is deleted"
    if state == RolloutState.FAILED:
        return TRUE, "TargetRefused", f"{rollout.words}; change spec.intent, or the target"
    if rollout.goes_back or state == RolloutState.COMPLETE:
        return FALSE, "Advancing", ""
    if rollout.is_failing:
        return TRUE, "GateFails", f"no further node begins: {rollout.doubts}"
    return _held(rollout, now) if state in BEGUN else (FALSE, "Advancing", "")


def _held(rollout: Rollout, now: float) -> _Said:
    """For a roll-out that has begun and does not go back."""
    state = rollout.status.state
    if now >= rollout.overdue_at():
        return TRUE, "TooLong", f"{rollout.why_not_now(now)}: raise that, promote it, abort it, or go back"
    if state == RolloutState.PAUSED:
        return TRUE, "ApprovalExpired", "nobody approved in time; write its intent anew, and it is asked again"
    if state == RolloutState.JUDGING:
        return TRUE, "NodesNotReady", "nodes at the target are not ready, so that no further step begins"
    blind = next((each for each in rollout.verdicts[1:] if each.result == GateResult.UNKNOWN and rollout.is_held), None)
    if blind is not None and blind.since is not None and now - blind.since >= UNKNOWN_FOR:
        return TRUE, "GateUnknown", f"no further node begins: {blind.words}"
    return FALSE, "Advancing", ""


def _pinned(rollout: Rollout) -> tuple[str, str, str]:
    """Whether launches are pinned to the images of before, or why not."""
    stable = rollout.status.stable
    if rollout.keeps_images:
        return TRUE, "Pinned", f"launches take {', '.join(image.id for image in stable.images)}"
    if stable.why_not:
        return FALSE, "NotPossible", f"launches take the target: {stable.why_not}"
    return FALSE, "NotAskedFor", "launches take the target: newLaunches says so"
