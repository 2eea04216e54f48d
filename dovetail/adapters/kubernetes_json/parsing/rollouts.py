"""NodeRollouts, and what a DisruptionPolicy says of them: JSON of the API in, dovetail.model out.

What cannot be understood makes a `fault`; the object then holds its NodePool or, where not even that can be read, every
NodePool.
"""

from collections.abc import Iterable
from typing import Final, TypedDict

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.fields import conditions
from dovetail.adapters.kubernetes_json.parsing.lenient import Fault, metadata_of, read_or, words_of
from dovetail.adapters.kubernetes_json.parsing.reading import number_of, reading, text_of
from dovetail.api.own.disruption_policy import PolicyRollout
from dovetail.api.own.node_rollout import NodeRolloutSpec, RolloutApproval
from dovetail.api.own.rollout_strategy import NodeRolloutStep, RolloutStrategy
from dovetail.api.validation import InvalidSpec, parse_spec
from dovetail.model import names
from dovetail.model.durations import parse_seconds
from dovetail.model.json import ReadOnlyJson
from dovetail.model.rollout_approvals import Answered, Approval, Awaits
from dovetail.model.rollouts import (
    GateResult,
    Intent,
    NodesGate,
    Rollout,
    RolloutFailure,
    RolloutPlan,
    RolloutState,
    RolloutStatus,
    RolloutStep,
)
from dovetail.model.stable_images import NO_IMAGE, StableImage, StableImages
from dovetail.model.time import optional_time, time_or_none


def parse_rollout(raw: ReadOnlyJson) -> Rollout:
    """One NodeRollout."""
    with reading("NodeRollout", raw):
        return _rollout(raw)


def parse_plan(given: PolicyRollout) -> RolloutPlan:
    """What a DisruptionPolicy says of them."""
    return RolloutPlan(**_strategy(given), drifted="1" if given.when is None else given.when.drifted)


def _rollout(raw: ReadOnlyJson) -> Rollout:
    spec = raw.get("spec") or {}
    pool, intent, fault = read_or(lambda: text_of(spec["nodePool"]), ""), Intent.RUN, ""
    approval: Approval | None = None
    strategy = _NOTHING
    try:
        given = parse_spec(NodeRolloutSpec, spec)
        strategy, intent = _strategy(given), Intent(given.intent)
        approval = None if given.approval is None else _approval(given.approval)
    except (InvalidSpec, *RAW_FAULTS) as error:
        fault = words_of(error)
    return Rollout(
        **metadata_of(raw["metadata"]),
        **strategy,
        pool=pool,
        intent=intent,
        approval=approval,
        fault=fault,
        status=read_or(lambda: _rollout_status(raw.get("status") or {}), RolloutStatus()),
        policy=read_or(lambda: text_of((raw["metadata"].get("annotations") or {}).get(names.POLICY) or ""), ""),
    )


class _Strategy(TypedDict, total=False):
    steps: tuple[RolloutStep, ...]
    launches_stable: bool
    rolls_back: bool
    longest_stable: float


_NOTHING: Final = _Strategy()


def _strategy(given: RolloutStrategy) -> _Strategy:
    return _Strategy(
        steps=_steps(given.steps),
        launches_stable=given.new_launches == "Stable",
        rolls_back=given.on_failure == "RollBack",
        longest_stable=parse_seconds(given.max_stable_age),
    )


def _steps(given: Iterable[NodeRolloutStep]) -> tuple[RolloutStep, ...]:
    return tuple(
        RolloutStep(
            name=step.name,
            to=step.to,
            soak=parse_seconds(step.soak),
            approve=None if step.approve is None else parse_seconds(step.approve.expires_after),
        )
        for step in given
    )


def _approval(given: RolloutApproval) -> Approval:
    return Approval(step=given.step, digest=given.digest, by=given.by, at=given.at.timestamp())


def _awaits(raw: ReadOnlyJson) -> Awaits:
    since, expires = (time_or_none(text_of(raw[key])) for key in ("since", "expires"))
    if since is None or expires is None:
        raise Fault("status.awaits: no moment")
    generation = None if raw.get("generation") is None else number_of(raw["generation"])
    digest, shows = text_of(raw["digest"]), text_of(raw.get("shows") or "")
    return Awaits(digest=digest, since=since, expires=expires, shows=shows, generation=generation)


def _answered(raw: ReadOnlyJson) -> Answered:
    step, digest, by = (text_of(raw[key]) for key in ("step", "digest", "by"))
    approval = Approval(step=step, digest=digest, by=by, at=optional_time(raw["at"]) or 0.0)
    return Answered(approval=approval, refused=text_of(raw.get("refused") or ""))


def _rollout_status(raw: ReadOnlyJson) -> RolloutStatus:
    """None of it, that is before its first step, where a part cannot be read."""
    step, target, nodes = (raw.get(key) or {} for key in ("step", "target", "nodes"))
    total, at_target, leaving = (number_of(nodes.get(key) or 0) for key in ("total", "target", "leaving"))
    return RolloutStatus(
        step=text_of(step.get("name") or ""),
        state=RolloutState(step.get("state") or RolloutState.WAITING),
        since=optional_time(step.get("since")) or 0.0,
        until=optional_time(step.get("until")),
        begun=optional_time(target.get("begun")) or 0.0,
        target=text_of(target.get("nodePoolHash") or ""),
        total=total,
        at_target=at_target,
        leaving=leaving,
        gate=next((_gate(each) for each in raw.get("gates") or () if each["name"] == "nodes"), NodesGate()),
        makes=text_of(target.get("launches") or ""),
        stable=_stable(raw.get("stable") or {}),
        failure=_failure(raw.get("failure")),
        awaits=None if raw.get("awaits") is None else _awaits(raw["awaits"]),
        answered=None if raw.get("answered") is None else _answered(raw["answered"]),
        conditions=conditions(raw.get("conditions")),
    )


def _stable(raw: ReadOnlyJson) -> StableImages:
    images = [
        StableImage(id=text_of(each["id"]), types=tuple(map(text_of, each.get("instanceTypes") or ())))
        for each in raw.get("images") or ()
    ]
    why_not = text_of(raw.get("whyNot") or "") or ("" if images else NO_IMAGE)
    return StableImages(since=optional_time(raw.get("since")) or 0.0, images=tuple(images), why_not=why_not)


def _failure(raw: ReadOnlyJson | None) -> RolloutFailure | None:
    if raw is None:
        return None
    return RolloutFailure(generation=number_of(raw["generation"]), message=text_of(raw["message"]))


def _gate(raw: ReadOnlyJson) -> NodesGate:
    return NodesGate(
        result=GateResult(raw["result"]),
        since=optional_time(raw.get("since")),
        message=text_of(raw.get("message") or ""),
    )
