"""Does the next step of a roll-out need a person's approval, and has that been given?

An approval covers exactly what was shown: its digest has a part for each thing covered, so that a refusal can say which
of them has changed. It is judged once, and the result is kept in the status.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollout_approvals import Answered, Awaits
from dovetail.model.own.rollouts import (
    REFUSED,
    Intent,
    PoolNodes,
    Rollout,
    RolloutState,
    RolloutStatus,
    RolloutStep,
)
from dovetail.model.values.digests import named_digest
from dovetail.model.values.time import format_time

ASKING: Final = frozenset({RolloutState.AWAITING, RolloutState.PAUSED})
_BYTES: Final = 6  # of each part
# What a change in each part of the digest means, in order.
_CHANGED: Final = (
    "what is rolled out has changed",
    "it has been asked anew since",
    "the steps to come have changed",
    "other nodes are concerned",
    "the gates say something else",
)


def asks(rollout: Rollout, number: int, nodes: PoolNodes, now: float) -> RolloutStatus | None:
    """The status while the step after that one waits for a person; None if it may begin."""
    wait, status = rollout.steps[number].approve, rollout.status
    is_open = status.state in ASKING and status.awaits is not None
    concerns = is_open or nodes.old + nodes.draining  # that the last of the old ones leaves is no answer
    if wait is None or not concerns or rollout.wants == Intent.PROMOTE or is_approved(rollout, nodes, now):
        return None
    paused = status.state == RolloutState.PAUSED
    if status.awaits is None or not is_open or (paused and _is_asked_again(rollout)):
        since = float(int(now))
        awaits = Awaits(digest="", since=since, expires=since + wait)
        return replace(status, state=RolloutState.AWAITING, since=since, until=None, awaits=awaits)
    if paused or now < status.awaits.expires:
        return status
    awaits = replace(status.awaits, generation=rollout.generation)
    return replace(status, state=RolloutState.PAUSED, since=float(int(now)), awaits=awaits)


def with_answer(rollout: Rollout, moved: RolloutStatus, nodes: PoolNodes, now: float) -> RolloutStatus:
    """The status after a move, with the current question and the result of an approval."""
    if rollout.fault:
        return moved
    if moved.state in ASKING and moved.awaits is not None:
        digest, shows = digest_of(rollout, moved, nodes), _shows(rollout, moved, nodes)
        moved = replace(moved, awaits=replace(moved.awaits, digest=digest, shows=shows))
    elif moved.awaits is not None:
        moved = replace(moved, awaits=None)
    approval, is_refused = rollout.approval, moved.state in REFUSED
    held = rollout.intent in (Intent.PAUSE, Intent.ABORT) and not is_refused
    if approval is None or not is_fresh(rollout) or held:
        return moved
    went_on = is_approved(rollout, nodes, now) and _place(rollout, moved.step) == _place(rollout, approval.step) + 1
    refused = "" if went_on else why_refused(rollout, moved, nodes, now)
    if moved.state == RolloutState.PAUSED and moved.awaits is not None:
        moved = replace(moved, awaits=replace(moved.awaits, generation=rollout.generation))
    if is_refused and moved.failure is not None:
        moved = replace(moved, failure=replace(moved.failure, generation=rollout.generation))
    return replace(moved, answered=Answered(approval=approval, refused=refused))


def is_approved(rollout: Rollout, nodes: PoolNodes, now: float) -> bool:
    """Whether a person has approved the question in time, and every gate passes now."""
    status, approval = rollout.status, rollout.approval
    if approval is None or status.awaits is None or status.state != RolloutState.AWAITING or not is_fresh(rollout):
        return False
    gates_pass = rollout.verdict.result == GateResult.PASSING and not rollout.why_not_now(now)
    in_time = now < status.awaits.expires and gates_pass
    return in_time and (approval.step, approval.digest) == (status.step, digest_of(rollout, status, nodes))


def digest_of(rollout: Rollout, status: RolloutStatus, nodes: PoolNodes) -> str:
    """A digest of the target, the question, the steps to come, the nodes and the gates, in this order."""
    return "".join(named_digest(part, _BYTES) for part in _parts(rollout, status, nodes))


def _parts(rollout: Rollout, status: RolloutStatus, nodes: PoolNodes) -> Iterator[Mapping[str, object]]:
    """The target by its beginning, whatever version hashes it: another one begins at another moment."""
    yield {"rollout": rollout.name, "uid": rollout.uid, "pool": rollout.pool, "begun": status.begun}
    yield {"step": status.step, "asked": None if status.awaits is None else status.awaits.since}
    to_come = rollout.steps[_place(rollout, status.step) :]
    yield {
        "steps": [{"name": step.name, "to": step.to, "soak": step.soak, "approve": step.approve} for step in to_come]
    }
    yield {"old": nodes.old, "uids": sorted(nodes.staying)}
    yield {"gates": str(replace(rollout, status=status).verdict.result)}


def why_refused(rollout: Rollout, moved: RolloutStatus, nodes: PoolNodes, now: float) -> str:
    """Why the approval lets nothing begin."""
    status = rollout.status
    assert rollout.approval is not None
    step, given = rollout.approval.step, _split(rollout.approval.digest)
    known = _split(digest_of(rollout, status, nodes))
    if moved.begun != status.begun or (len(given) == len(known) and given[0] != known[0]):
        return "it is of another target: what is rolled out has changed since"
    place = f"the roll-out is {status.state} at step {status.step}"
    if step != status.step:
        late = _place(rollout, step) < _place(rollout, status.step)
        return f"it comes too late for step {step}: {place}" if late else f"it is for step {step}: {place}"
    if status.state == RolloutState.PAUSED or (status.awaits is not None and now >= status.awaits.expires):
        ended = "" if status.awaits is None else f" at {format_time(status.awaits.expires)}"
        return f"the question has expired{ended}; resume the roll-out, and it is asked again"
    verdict = rollout.verdict
    if verdict.result != GateResult.PASSING:
        return f"gate {verdict.name} is {verdict.result}: {verdict.message or 'nothing is known yet'}"
    if rollout.why_not_now(now):
        return rollout.why_not_now(now)
    if moved.state == RolloutState.JUDGING:
        return "nodes at the target are not ready any more"
    if status.state != RolloutState.AWAITING or moved.state != RolloutState.AWAITING:
        return f"nothing was asked for: the roll-out was {status.state} at step {status.step}"
    parts = zip(_CHANGED, given, known, strict=True) if len(given) == len(known) else ()
    changed = next(
        (words for words, one, other in parts if one != other), "its digest is not the one that is asked for"
    )
    return f"{changed}; look again with `dovetail rollout approve`"


def _split(digest: str) -> list[str]:
    """Its parts; anybody may have written another number of them."""
    return [digest[at : at + 2 * _BYTES] for at in range(0, len(digest), 2 * _BYTES)]


def is_fresh(rollout: Rollout) -> bool:
    """Whether nobody has judged the approval yet. It has changed the object, and is no answer to anything but a
    question."""
    answered = rollout.status.answered
    return rollout.approval is not None and (answered is None or answered.approval != rollout.approval)


def _is_asked_again(rollout: Rollout) -> bool:
    """Whether a person has changed the object since it expired, and not by an approval that comes too late."""
    awaits = rollout.status.awaits
    return awaits is not None and awaits.generation != rollout.generation and not is_fresh(rollout)


def _place(rollout: Rollout, name: str) -> int:
    """-1 for a step that is not in the list."""
    return next((number for number, step in enumerate(rollout.steps) if step.name == name), -1)


def _shows(rollout: Rollout, status: RolloutStatus, nodes: PoolNodes) -> str:
    at = _place(rollout, status.step)
    step: RolloutStep = rollout.steps[at]
    then = rollout.steps[min(at + 1, len(rollout.steps) - 1)]
    more = max(0, then.allows(nodes.total) - nodes.taken)
    return f"step {then.name}: from {step.to} to {then.to}, {more} more of {nodes.total} nodes are replaced"
