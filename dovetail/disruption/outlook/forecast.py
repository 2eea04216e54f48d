"""What will happen by time alone: windows of budgets, expiries, ends of pauses, and the waves of drifted nodes.

Each moment comes from the function that decides by it: a window from the budgets' own judgement, a limit from what
budgets allow for the nodes that exist now, a wave from the outlook.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from dovetail.disruption.budgets.budgets import UNBOUNDED, judge_budgets, limit_for
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.outlook.paces import Paces
from dovetail.disruption.outlook.waves import Outlook, Supposing, outlook
from dovetail.disruption.rounds import ShouldStop, never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.pauses import Pause
from dovetail.model.own.policies import next_opening
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import said_in
from dovetail.rules.brake.hold import by_breaker
from dovetail.rules.expiry.expiries import deleted_at, expiry_rules
from dovetail.rules.health.hold import by_health
from dovetail.rules.pause.pauses import pause_of_freeze, pauses
from dovetail.rules.rate.hold import by_rate
from dovetail.rules.said import Cause
from dovetail.rules.window.hold import by_window

MOST_WINDOWS: Final = 400  # changes of one pool's budgets that are followed

What = Literal["window", "expiry", "pause", "wave", "rollout"]

# The reasons that budgets know, each once: other reasons are limited as one of them is.
_REASONS: Final = tuple(dict.fromkeys(reason.budget for reason in DisruptionReason))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """One thing that is due. `nodes`: those that it takes or releases; `text`: the same in words."""

    at: float
    what: What
    pool: str
    text: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Everything until a moment, in order, with the outlook that the waves come from."""

    coming: tuple[Coming, ...]
    drift: Outlook


def foretell(
    snapshot: Snapshot,
    settings: DisruptionSettings,
    until: float,
    paces: Paces | None = None,
    should_stop: ShouldStop = never,
) -> Forecast:
    """Look ahead. `paces`: how long nodes took recently, if the record has it. `should_stop`: ends the look at
    drifted nodes."""
    fleet = Fleet(snapshot, settings)
    drift = outlook(snapshot, settings, until, Supposing(paces=paces or Paces(), should_stop=should_stop))
    found = [
        *_windows(fleet, until),
        *_expiries(fleet, until),
        *_openings(fleet, until),
        *_pauses(snapshot, until),
        *_waves(drift),
        *_rollouts(drift, snapshot.now, until),
    ]
    return Forecast(coming=tuple(sorted(found, key=lambda each: (each.at, each.what, each.pool))), drift=drift)


def _windows(fleet: Fleet, until: float) -> Iterator[Coming]:
    for name, pool in fleet.pools.items():
        nodes = sum(1 for member in fleet.by_pool.get(name, ()) if member.managed)
        before = _limits(pool, fleet.now, nodes)
        moment = _next_window(pool, fleet.now)
        for _ in range(MOST_WINDOWS):
            if moment is None or moment > until:
                break
            after = _limits(pool, moment, nodes)
            changed = [
                f"{why} {_amount(before[why])} → {_amount(after[why])}" for why in after if after[why] != before[why]
            ]
            if changed:
                yield Coming(at=moment, what="window", pool=name, text=f"nodes that may go: {', '.join(changed)}")
            before, moment = after, _next_window(pool, moment)


def _limits(pool: NodePool, at: float, nodes: int) -> dict[str, int]:
    states = judge_budgets(pool.disruption.budgets, at)
    return {reason: limit_for(states, reason, nodes).allowed for reason in _REASONS}


def _next_window(pool: NodePool, after: float) -> float | None:
    moments = (state.until for state in judge_budgets(pool.disruption.budgets, after) if state.until is not None)
    return min((moment for moment in moments if moment > after), default=None)


def _amount(allowed: int) -> str:
    return "all" if allowed == UNBOUNDED else str(allowed)


def _expiries(fleet: Fleet, until: float) -> Iterator[Coming]:
    for member in fleet.members:
        claim, pool = member.claim, fleet.pools.get(member.pool_name)
        if claim is None or pool is None or claim.deleting_since is not None:
            continue
        for moment, text in _of_age(fleet, pool, claim):
            if moment is not None and moment <= until:
                said = f"{member.name} {text}"
                yield Coming(at=max(moment, fleet.now), what="expiry", pool=pool.name, text=said, nodes=(member.name,))


def _of_age(fleet: Fleet, pool: NodePool, claim: NodeClaim) -> Iterator[tuple[float | None, str]]:
    """When the claim's age has consequences, and which."""
    expires, replaced = claim.expires_at, fleet.replaced_from.get(claim.name)
    due = "has expired" if expires is not None and expires <= fleet.now else "expires"
    if replaced is None or not expiry_rules(fleet.snapshot.policies, pool):
        how = "is deleted, and its pods wait for new nodes" if replaced is None else "is replaced first"
        yield expires, f"{due} and {how}"
        return
    yield replaced, "is replaced from then on for its age" if replaced > fleet.now else "is being replaced for its age"
    ends = deleted_at(fleet.snapshot.policies, pool, claim)
    yield ends, "is deleted for its age if it still stands, and its pods wait for new nodes"


def _openings(fleet: Fleet, until: float) -> Iterator[Coming]:
    """When the windows of a pool's policies, taken together, open or close, and for which reasons."""
    for name, pool in fleet.pools.items():
        found: dict[tuple[float, str], list[str]] = {}
        for reason in DisruptionReason:
            for moment, says in _of_reason(fleet, pool, reason, until):
                found.setdefault((moment, says), []).append(str(reason))
            for rule in (by_health, by_breaker, by_rate):
                held = rule(said_in(fleet.snapshot, name), Cause.of(reason))
                if held is not None and held.until is not None and held.until <= until:
                    found.setdefault((held.until, f"may begin again: no more {held.ends}"), []).append(str(reason))
        for (moment, says), reasons in found.items():
            yield Coming(at=moment, what="window", pool=name, text=f"{', '.join(reasons)} {says}")


def _of_reason(fleet: Fleet, pool: NodePool, reason: DisruptionReason, until: float) -> Iterator[tuple[float, str]]:
    said, moment = said_in(fleet.snapshot, pool.name), fleet.now
    for _ in range(MOST_WINDOWS):
        following = next_opening(said.policies, reason, moment)
        if following is None or following > until:
            return
        moment = following
        shut = by_window(said.at(moment), Cause.of(reason))
        yield moment, "may begin" if shut is None else f"may not begin {shut.ends}"


def _pauses(snapshot: Snapshot, until: float) -> Iterator[Coming]:
    for pause in pauses(snapshot):
        if pause.until is not None and snapshot.now < pause.until <= until:
            yield Coming(at=pause.until, what="pause", pool=pause.pool, text=f"{_named(pause)} ends")
    for freeze in snapshot.freezes.values():
        if freeze.begins is None or not snapshot.now < freeze.begins <= until:
            continue
        coming = pause_of_freeze(freeze, freeze.begins)
        if coming is not None:
            yield Coming(at=freeze.begins, what="pause", pool="", text=f"{_named(coming)} begins, {coming.says}")
            if coming.until is not None and coming.until <= until:
                yield Coming(at=coming.until, what="pause", pool="", text=f"{_named(coming)} ends")


def _named(pause: Pause) -> str:
    activities = ", ".join(sorted(str(activity) for activity in pause.what))
    return f"Freeze {pause.freeze} of {activities}" if pause.freeze else f"the pause of {activities}"


def _waves(drift: Outlook) -> Iterator[Coming]:
    for wave in drift.waves:
        by_pool: dict[str, list[str]] = {}
        for departure in wave.departures:
            by_pool.setdefault(departure.pool, []).append(departure.node)
        for pool, nodes in sorted(by_pool.items()):
            made = sum(len(each.successors) for each in wave.departures if each.pool == pool)
            goes = "1 drifted node goes" if len(nodes) == 1 else f"{len(nodes)} drifted nodes go"
            text = f"{goes}, {'1 new one comes' if made == 1 else f'{made} new ones come'}"
            yield Coming(at=wave.begins, what="wave", pool=pool, text=text, nodes=tuple(sorted(nodes)))


def _rollouts(drift: Outlook, now: float, until: float) -> Iterator[Coming]:
    """How far roll-outs are by then, if gates pass and nobody answers their questions."""
    for ahead in drift.steps:
        of, step = f"NodeRollout {ahead.rollout}", ahead.step.name
        moments = (
            (ahead.begins, f"{of}: step {step} may begin, to {ahead.step.to}"),
            (ahead.soaked if ahead.soaked != ahead.ready else None, f"{of}: step {step} has soaked"),
            (ahead.asked, f"{of}: a person is asked before what comes after step {step}"),
            (ahead.paused, f"{of}: nobody has approved what comes after step {step}, and it is Paused"),
            (ahead.complete, f"{of} is complete"),
        )
        for moment, text in moments:
            if moment is not None and now < moment <= until:
                yield Coming(at=moment, what="rollout", pool=ahead.pool, text=text)
