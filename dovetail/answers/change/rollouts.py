"""The steps by which a change would reach its nodes, with times."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from dovetail.answers.wording import duration_text, plural
from dovetail.disruption.outlook.rollouts import StepAhead
from dovetail.disruption.outlook.waves import Outlook
from dovetail.model.values.time import format_time, parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswer:
    """One step; times in RFC 3339, if every gate passes and each question is answered at once. What does not happen
    within the outlook has no time."""

    name: str
    to: str
    nodes: int  # that it allows at the target
    begins: str  # when its nodes may leave, by the roll-out alone
    goes: str | None = None  # when the first of them leaves, by windows, budgets and everything else
    ready: str | None = None  # when all of them are
    soaked: str | None = None
    asks: bool = False  # whether a person is asked before the next step
    expires: str | None = None  # of the question, if it is asked at that time
    complete: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutAnswer:
    """One roll-out. `policy`: the one that would create it, or did; empty if a person did."""

    name: str
    pool: str
    policy: str
    is_new: bool
    steps: tuple[StepAnswer, ...]


def rollouts_of(found: Outlook, known: frozenset[str]) -> tuple[RolloutAnswer, ...]:
    """The roll-outs of an outlook. `known`: the NodeRollouts that exist already."""
    answers = []
    for (name, _), steps in groupby(found.steps, key=lambda step: (step.rollout, step.pool)):
        each = list(steps)
        ends = [step.begins for step in each[1:]] + [float("inf")]
        answers.append(
            RolloutAnswer(
                name=name,
                pool=each[0].pool,
                policy=each[0].policy,
                is_new=name not in known,
                steps=tuple(_step(step, end, found) for step, end in zip(each, ends, strict=True)),
            )
        )
    return tuple(answers)


def _step(ahead: StepAhead, end: float, found: Outlook) -> StepAnswer:
    goes = (
        wave.begins
        for wave in found.waves
        if ahead.begins <= wave.begins < end and any(each.pool == ahead.pool for each in wave.departures)
    )
    return StepAnswer(
        name=ahead.step.name,
        to=ahead.step.to,
        nodes=ahead.nodes,
        begins=format_time(ahead.begins),
        goes=_time(next(goes, None)),
        ready=_time(ahead.ready),
        soaked=_time(ahead.soaked),
        asks=ahead.step.approve is not None,
        expires=_time(ahead.expires),
        complete=_time(ahead.complete),
    )


def _time(moment: float | None) -> str | None:
    return None if moment is None else format_time(moment)


def rollout_lines(rollout: RolloutAnswer) -> Iterator[str]:
    by = f" is made of it by DisruptionPolicy {rollout.policy}" if rollout.is_new else ""
    goes = "and goes" if by else " goes"
    steps = plural(len(rollout.steps), "step")
    yield f"NodeRollout {rollout.name}{by}{' ' if by else ''}{goes} by {steps}, if its gates pass:"
    earliest = ""
    for step in rollout.steps:
        yield f"  {step.name}, to {step.to} ({plural(step.nodes, 'node')}): {_course(step, earliest)}"
        earliest = " at the earliest" if step.asks or earliest else ""


def _course(step: StepAnswer, earliest: str) -> str:
    parts = [f"from {step.goes or step.begins}{earliest}"]
    if step.goes is None and step.ready is None:
        parts = [f"may begin {step.begins}{earliest}, and nothing of it goes within that time"]
    if step.ready is not None:
        parts.append(f"ready about {step.ready}")
    if step.soaked is not None and step.ready is not None and step.soaked != step.ready:
        parts.append(f"soaks until {step.soaked}")
    if step.asks:
        parts.append(f"then a person is asked{_within(step)}")
    if step.complete is not None:
        parts.append(f"complete {step.complete}")
    return ", ".join(parts)


def _within(step: StepAnswer) -> str:
    """How long the question stays open."""
    if step.expires is None or step.soaked is None:
        return ""
    return f", for {duration_text(round(parse_time(step.expires) - parse_time(step.soaked)))}"
