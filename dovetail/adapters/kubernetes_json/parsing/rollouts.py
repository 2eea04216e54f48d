"""NodeRollouts, and what a DisruptionPolicy defines for them: JSON of the API in, dovetail.model out.

An error makes a `fault`; the object then holds its NodePool or, if not even that can be read, every NodePool.
"""

from collections.abc import Iterable
from typing import Final, TypedDict

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.fields import conditions
from dovetail.adapters.kubernetes_json.parsing.lenient import Fault, metadata_of, read_or, words_of
from dovetail.adapters.kubernetes_json.parsing.reading import number_of, reading, text_of
from dovetail.api.own.disruption_policy import PolicyRollout
from dovetail.api.own.node_rollout import NodeRolloutSpec, RolloutApproval
from dovetail.api.own.questions import FiringAlerts
from dovetail.api.own.rollout_strategy import NodeRolloutStep, NodeRolloutStrategy, RolloutGateRule
from dovetail.api.validation import InvalidSpec, parse_spec
from dovetail.model import names
from dovetail.model.own.gates import AlertsRule, AskedGate, GateResult, GateVerdict, QueryRule
from dovetail.model.own.rollout_approvals import Answered, Approval, Awaits
from dovetail.model.own.rollouts import (
    NODES,
    Intent,
    NodesGate,
    Order,
    Passage,
    Rollout,
    RolloutFailure,
    RolloutPlan,
    RolloutState,
    RolloutStatus,
    RolloutStep,
)
from dovetail.model.own.stable_images import NO_IMAGE, StableImage, StableImages
from dovetail.model.values.durations import parse_seconds
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.quoting import shown
from dovetail.model.values.time import optional_time, time_or_none, written


def parse_rollout(raw: ReadOnlyJson) -> Rollout:
    with reading("NodeRollout", raw):
        return _rollout(raw)


def parse_plan(given: PolicyRollout) -> RolloutPlan:
    """What a DisruptionPolicy defines for them."""
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
    gates: tuple[AskedGate, ...]
    order: Order
    longest: float | None


MOST_OFTEN: Final = 15.0  # seconds between two questions of a gate
LEAST_OFTEN: Final = 600.0
_NOTHING: Final = _Strategy()


def _strategy(given: NodeRolloutStrategy) -> _Strategy:
    return _Strategy(
        steps=_steps(given.steps),
        launches_stable=given.new_launches == "Stable",
        rolls_back=given.on_failure == "RollBack",
        longest_stable=parse_seconds(given.max_stable_age),
        gates=tuple(_rule(each, f"spec.gates[{n}]") for n, each in enumerate(given.gates or ())),
        order=Order(given.order),
        longest=None if given.max_duration is None else parse_seconds(given.max_duration),
    )


def parse_alerts(given: FiringAlerts, place: str) -> AlertsRule:
    if "alertstate" in f"{given.firing}{given.ignore or ''}":
        raise Fault(f"{place}: alertstate cannot be chosen, alerts that fire are meant")
    return AlertsRule(firing=given.firing, ignore=given.ignore or "")


def _rule(given: RolloutGateRule, place: str) -> AskedGate:
    if given.alerts is not None:
        return AskedGate(name=given.name, alerts=parse_alerts(given.alerts, f"{place}.alerts"))
    query = given.query
    assert query is not None  # its rules have been judged
    every = parse_seconds(query.every)
    if not MOST_OFTEN <= every <= LEAST_OFTEN:
        raise Fault(f"{place}.query.every: {shown(query.every)} is not between 15s and 10m")
    least, most = (None if bound is None else float(bound) for bound in (query.min, query.max))
    rule = QueryRule(expression=query.expr, least=least, most=most)
    return AskedGate(name=given.name, query=rule, every=every, failures=query.failures)


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
    return Approval(step=given.step, digest=given.digest, by=given.by, at=written(given.at.timestamp()))


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
    """Empty, that is before its first step, if a part cannot be read."""
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
        gate=next((_gate(each) for each in raw.get("gates") or () if each["name"] == NODES), NodesGate()),
        asked=tuple(parse_verdict(each) for each in raw.get("gates") or () if each["name"] != NODES),
        history=tuple(map(_passage, raw.get("history") or ())),
        makes=text_of(target.get("launches") or ""),
        stable=_stable(raw.get("stable") or {}),
        failure=_failure(raw.get("failure")),
        promoted_before=raw.get("promotedBefore") is True,
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


def parse_verdict(raw: ReadOnlyJson) -> GateVerdict:
    return GateVerdict(
        name=text_of(raw["name"]),
        result=GateResult(raw["result"]),
        asked=optional_time(raw.get("asked")) or 0.0,
        since=optional_time(raw.get("since")),
        failed=number_of(raw.get("failed") or 0),
        message=text_of(raw.get("message") or ""),
    )


def _passage(raw: ReadOnlyJson) -> Passage:
    step, result, message = (text_of(raw.get(key) or "") for key in ("step", "result", "message"))
    began, ended = optional_time(raw["began"]) or 0.0, optional_time(raw.get("ended"))
    return Passage(step=step, began=began, ended=ended, result=result, message=message)


def _gate(raw: ReadOnlyJson) -> NodesGate:
    return NodesGate(
        result=GateResult(raw["result"]),
        since=optional_time(raw.get("since")),
        message=text_of(raw.get("message") or ""),
        asked=optional_time(raw.get("asked")) or 0.0,
    )
