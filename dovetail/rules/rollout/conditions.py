"""The conditions of a NodeRollout, in the words of kstatus: Ready when complete, Reconciling while it goes on, Stalled
when a person is needed, Healthy by its gates."""

from typing import Final

from dovetail.model.names import CLASS_READY, INITIALIZED_CONDITION, OWNER, READY
from dovetail.model.nodes import FALSE, TRUE, UNKNOWN
from dovetail.model.own.claim_memory import BACK, memory_of
from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollouts import BEGUN, REFUSED, Intent, Rollout, RolloutState
from dovetail.model.pools import NodePool
from dovetail.model.reasons.refusals import refusal_of
from dovetail.model.snapshot import Claims
from dovetail.model.values.listing import shown
from dovetail.model.values.time import format_time
from dovetail.rules.rollout.gates import named
from dovetail.rules.rollout.nodes import split_by
from dovetail.rules.said import HeldBy, PoolHold

STALLED: Final = "Stalled"
RECONCILING: Final = "Reconciling"
HEALTHY: Final = "Healthy"
STABLE_PINNED: Final = "StablePinned"
LAUNCH_REFUSED: Final = "LaunchRefused"
NOTHING_TO_TAKE_BACK: Final = (
    "no change has begun that could be taken back, and none begins until its intent is another"
)
UNKNOWN_FOR: Final = 1800.0  # seconds after which a person is needed if a gate cannot be asked
REFUSED_FOR: Final = 3600.0  # likewise if no node is taken back, because launches are refused
STANDS_FOR: Final = 3600.0  # likewise if no further node comes to the target, and nobody has said otherwise
_NAMED: Final = 8  # images by name
_DECLARED: Final = frozenset({HeldBy.PAUSE, HeldBy.FREEZE, HeldBy.WINDOW, HeldBy.RATE})
_HEALTH: Final = {
    GateResult.PASSING: (TRUE, "GatesPass"),
    GateResult.UNKNOWN: (UNKNOWN, "GatesUnknown"),
    GateResult.FAILING: (FALSE, "GateFails"),
}

_Said = tuple[str, str, str]  # status, reason, message


def conditions_of(
    rollout: Rollout, pool: NodePool | None, claims: Claims, now: float, hold: PoolHold | None = None
) -> dict[str, _Said]:
    """The conditions of a roll-out that can be read, by type. `hold`: what keeps nodes of its pool from drifting."""
    state, intent = rollout.status.state, rollout.intent
    is_complete = state == RolloutState.COMPLETE
    stalled = _stalled(rollout, pool, claims, now)
    if stalled[0] == FALSE and pool is not None and state in BEGUN and not rollout.keeps_all:
        stalled = _standing(rollout, split_by(pool, claims), now, hold)
    goes_on = (state in BEGUN or rollout.goes_back) and stalled[0] != TRUE and intent != Intent.PAUSE
    reason = str(intent) if intent == Intent.PAUSE else str(state)
    said = {
        HEALTHY: (*_HEALTH[rollout.verdict.result], rollout.doubts or rollout.status.gate.message),
        READY: (TRUE, reason, "") if is_complete else (FALSE, reason, rollout.words),
        STALLED: stalled,
        RECONCILING: (TRUE if goes_on else FALSE, reason, ""),
    }
    if state in BEGUN | REFUSED:
        said[STABLE_PINNED] = _pinned(rollout)
    return said


def _stalled(rollout: Rollout, pool: NodePool | None, claims: Claims, now: float) -> _Said:
    """Whether a person is needed, and for what."""
    state = rollout.status.state
    if pool is None:
        return TRUE, "NodePoolNotFound", f"there is no NodePool {rollout.pool}"
    if rollout.intent == Intent.ABORT and state != RolloutState.COMPLETE:
        return TRUE, "Aborted", "its nodes are held until its intent is Run, or it is deleted"
    if rollout.intent == Intent.ROLL_BACK and state == RolloutState.WAITING:
        return TRUE, "NothingToTakeBack", NOTHING_TO_TAKE_BACK
    if state == RolloutState.FAILED:
        return TRUE, "TargetRefused", f"{rollout.words}; change spec.intent, or the target"
    if rollout.goes_back:
        return _back(rollout, pool, claims, now)
    if state == RolloutState.COMPLETE:
        return FALSE, "Advancing", ""
    if rollout.is_failing:
        return TRUE, "GateFails", f"no further node begins: {rollout.doubts}"
    return _held(rollout, now) if state in BEGUN else (FALSE, "Advancing", "")


def _back(rollout: Rollout, pool: NodePool, claims: Claims, now: float) -> _Said:
    """For one that goes back: Unknown from the first launch that is refused until one more node is back, so that the
    condition itself remembers since when. It becomes Stalled only by a launch that is refused then."""
    known = next((c for c in rollout.status.conditions if (c.type, c.reason) == (STALLED, LAUNCH_REFUSED)), None)
    backs = [claim for claim in claims if memory_of(claim.annotations).roll_out.how == BACK]
    initialized = (each for claim in backs if (each := claim.condition(INITIALIZED_CONDITION)) is not None)
    if known is not None and any(c.status == TRUE and c.changed >= known.changed for c in initialized):
        known = None
    unready = next((c for c in pool.conditions if (c.type, c.status) == (CLASS_READY, FALSE)), None)
    of_class = f"{unready.reason}: {unready.message}" if unready is not None else ""
    why = next(filter(None, map(refusal_of, backs)), of_class)
    words = f"no node takes the place of one at the target: {why}" if why else ""
    if known is None:
        return (UNKNOWN, LAUNCH_REFUSED, words) if words else (FALSE, "Advancing", "")
    is_late = known.status == TRUE or (words and now - known.changed >= REFUSED_FOR)
    return TRUE if is_late else UNKNOWN, LAUNCH_REFUSED, words or known.message


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


def _standing(rollout: Rollout, sides: tuple[Claims, Claims], now: float, hold: PoolHold | None) -> _Said:
    """Where no further node has come to the target for an hour: what people have declared is named, anything else
    needs a person."""
    status, (old, target) = rollout.status, sides
    came = [
        each.changed for claim in target if (each := claim.condition(INITIALIZED_CONDITION)) and each.status == TRUE
    ]
    last = max([status.since, *came])
    waits = status.state == RolloutState.AWAITING or (status.until is not None and now < status.until)
    if waits or now - last < (STANDS_FOR if rollout.stands_for is None else rollout.stands_for):
        return FALSE, "Advancing", ""
    if hold is not None and hold.rule in _DECLARED:
        return FALSE, str(hold.rule), hold.message
    leaving = [claim.name for claim in old if claim.deleting_since is not None or claim.annotations.get(OWNER)]
    coming = [claim.name for claim in target if not claim.is_true(INITIALIZED_CONDITION)]
    whys = (
        rollout.doubts,
        f"{named(leaving)} is still leaving" if leaving else "",
        f"{named(coming)} is not ready yet" if coming else "",
        hold.message if hold is not None and hold.rule != HeldBy.ROLLOUT else "",
        f"{named([claim.name for claim in old])} stays: `dovetail explain node` says what keeps it" if old else "",
        rollout.words,
    )
    return TRUE, "NoProgress", f"no node has come to the target since {format_time(last)}: {next(filter(None, whys))}"


def _pinned(rollout: Rollout) -> tuple[str, str, str]:
    """Whether launches are pinned to the images of before, or why not."""
    stable = rollout.status.stable
    if rollout.keeps_images:
        return TRUE, "Pinned", f"launches take {shown([image.id for image in stable.images], _NAMED)}"
    if stable.why_not:
        return FALSE, "NotPossible", f"launches take the target: {stable.why_not}"
    return FALSE, "NotAskedFor", "launches take the target: newLaunches says so"
