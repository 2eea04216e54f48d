"""What the status of DisruptionPolicies, Freezes and NodeRollouts should say: whether they are understood, and more.

In the words of kstatus: Ready if it is understood, or a roll-out complete; Stalled if a person must change it. This
very write permits a step of a roll-out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Final

from dovetail.activities.shared.looks.look import Look, Write, earliest
from dovetail.activities.upkeep.questions import MetricQuestions
from dovetail.model.names import READY
from dovetail.model.nodes import FALSE, TRUE, Condition
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.own.gates import Answer, GateVerdict
from dovetail.model.own.health import HealthState
from dovetail.model.own.policies import Freeze, Opening, Policy, PolicyStatus, TakenRate, next_opening, policies_of
from dovetail.model.own.rollouts import BEGUN, REFUSED, Rollout, RolloutState, RolloutStatus
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time, parse_time
from dovetail.notices.notice import Notice
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.objects import Notices, TimeObjects
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.health.hold import readiness_for
from dovetail.rules.rate.rates import pace_of, slides_at
from dovetail.rules.rollout.before import with_owners
from dovetail.rules.rollout.by_policy import conflict
from dovetail.rules.rollout.conditions import STALLED, conditions_of
from dovetail.rules.rollout.gates import nodes_gate
from dovetail.rules.rollout.history import ended_as
from dovetail.rules.rollout.moves import SETTLED, looks_again, next_move
from dovetail.rules.rollout.nodes import nodes_of, returned, split_of
from dovetail.rules.said import Cause
from dovetail.telemetry.metrics.ours.rollouts import ended

ACTIVE: Final = "Active"
NO_ANSWERS: Final[Mapping[str, Answer]] = {}


class TimeRuleUpkeep:
    """Finds what differs in the status of policies, freezes and roll-outs."""

    def __init__(
        self,
        times: TimeObjects,
        now: Callable[[], float],
        catalogues: Catalogues,
        notices: Notices,
        questions: MetricQuestions,
    ) -> None:
        self.times, self.now, self.catalogues, self.notices = times, now, catalogues, notices
        self.questions = questions
        self.refused: dict[str, str] = {}  # roll-out UID -> what has been published of its failure

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due, and when time alone changes a status."""
        writes: list[Write] = []
        moments: list[float | None] = []
        answers = self._answers(snapshot)
        for policy in snapshot.policies.values():
            wanted = policy_status(policy, snapshot, self.now(), answers)
            moments += [opening.until for opening in wanted.openings]
            moments += [
                slides_at(policy.rates[each.rate], snapshot.pools[each.pool], self.now()) for each in wanted.rates
            ]
            moments.append(wanted.health.until if wanted.health is not None else None)
            if wanted != policy.status:
                writes.append(partial(self.times.patch_policy, policy, wanted))
        for freeze in snapshot.freezes.values():
            conditions = freeze_conditions(freeze, self.now())
            moments += [moment for moment in (freeze.begins, freeze.until) if moment is not None]
            if conditions != freeze.conditions:
                writes.append(partial(self.times.patch_freeze, freeze, conditions))
        for rollout in snapshot.rollouts.values():
            makes = await self._makes(rollout, snapshot)
            place = rollout_status(rollout, snapshot, self.now(), makes, answers)
            moments += looks_again(place, rollout, self.now())
            if place != rollout.status:
                writes.append(partial(self._move, rollout, place))
            writes += self._refusals(rollout, place, snapshot)
        return Look(due=writes, again=earliest(*[m for m in moments if m is not None and m > self.now()]))

    def _answers(self, snapshot: Snapshot) -> Mapping[str, Answer]:
        """Prometheus' answers; the same call says what to ask from now on."""
        self.questions.want(questions_of(snapshot))
        return self.questions.answers

    async def _makes(self, rollout: Rollout, snapshot: Snapshot) -> str:
        """What a launch for its pool is made of now; empty if nobody knows."""
        pool = snapshot.pools.get(rollout.pool)
        if pool is None or rollout.status.state == RolloutState.COMPLETE:
            return ""
        try:
            return (await self.catalogues.node_class(pool.template.node_class)).makes
        except Failure:
            return ""

    async def _move(self, rollout: Rollout, place: RolloutStatus) -> None:
        """Write where it stands; what has ended counts once it stands there."""
        result = ended_as(rollout.status, place)
        if await self.times.patch_rollout(rollout, place) is not None and result:
            ended(rollout.pool, result)

    def _refusals(self, rollout: Rollout, place: RolloutStatus, snapshot: Snapshot) -> list[Write]:
        """The notices of refused targets, each on the NodeClass whose change it is: nothing there is ever edited."""
        pool, failure = snapshot.pools.get(rollout.pool), place.failure
        known = self.refused.pop(rollout.uid, "")
        if pool is None or failure is None or place.state not in REFUSED:
            return []
        self.refused[rollout.uid] = failure.message
        if known == failure.message:
            return []
        reference = pool.template.node_class
        message = f"NodeRollout {rollout.name} keeps NodePool {pool.name} from it: {failure.message}"
        found = Notice(
            kind=reference.kind, name=reference.name, type="Warning", reason="TargetRefused", message=message
        )
        return [partial(self.notices.publish, found)]


def questions_of(snapshot: Snapshot) -> dict[str, float]:
    """The questions of policies and roll-outs under way, each with the shortest interval that one of them asks for."""
    rollouts = (each for each in snapshot.rollouts.values() if each.status.state in BEGUN and not each.fault)
    gates = [gate for rollout in rollouts for gate in rollout.gates]
    gates += [each.health.gate for each in snapshot.policies.values() if each.health and each.health.gate]
    found: dict[str, float] = {}
    for gate in gates:
        found[gate.question] = min(gate.every, found.get(gate.question, gate.every))
    return found


def policy_status(
    policy: Policy, snapshot: Snapshot, now: float, answers: Mapping[str, Answer] = NO_ANSWERS
) -> PolicyStatus:
    alerts = policy.status.alerts
    if policy.health is not None:
        alerts = policy.health.judged(alerts, answers, now)
    pools = tuple(name for name in sorted(snapshot.pools) if policy.selects(snapshot.pools[name]))
    said = _understood(policy.fault, policy.generation, now)
    several = "; ".join(_conflicts(policy, snapshot, pools))
    if several and not policy.fault:
        said = _both(("Conflict", several), policy.generation, now)
    return PolicyStatus(
        pools=pools,
        openings=tuple(_openings(policy, now)),
        rates=tuple(_taken(policy, [snapshot.pools[name] for name in pools], now)),
        conditions=_settled(policy.status.conditions, said, now),
        health=_health(policy, snapshot, now, alerts),
        alerts=alerts if policy.health is not None or policy.fault else None,
    )


def _conflicts(policy: Policy, snapshot: Snapshot, pools: Iterable[str]) -> Iterator[str]:
    """What conflicts, for each NodePool of which another policy has a roll-out too."""
    for name in pools if policy.rollout is not None else ():
        words = conflict(policies_of(snapshot.policies, snapshot.pools[name]))
        if words:
            yield f"NodePool {name}: {words}"


def _health(policy: Policy, snapshot: Snapshot, now: float, alerts: GateVerdict | None) -> HealthState | None:
    if policy.health is None:
        return policy.status.health if policy.fault else None
    return policy.health.remembered(policy.status.health, readiness_for(policy, snapshot), now, alerts)


def _openings(policy: Policy, now: float) -> Iterator[Opening]:
    """One for each reason that a window is about; all of them where the policy cannot be understood."""
    for reason in DisruptionReason:
        if not policy.fault and not any(window.names(reason) for window in (*policy.allow, *policy.deny)):
            continue
        why = policy.why_closed(reason, now)
        yield Opening(reason=str(reason), open=not why, until=next_opening((policy,), reason, now), why=why)


def _taken(policy: Policy, pools: Iterable[NodePool], now: float) -> Iterator[TakenRate]:
    """What is taken of each rate, for each NodePool."""
    for pool in pools:
        for place, rate in enumerate(policy.rates):
            pace = pace_of(rate, pool, now)
            if pace.begun:
                until = None if pace.until is None else float(ceil(pace.until))
                yield TakenRate(pool=pool.name, rate=place, begun=pace.begun, allowed=pace.allowed, until=until)


def freeze_conditions(freeze: Freeze, now: float) -> tuple[Condition, ...]:
    if freeze.holds(now):
        end = "it is changed or deleted" if freeze.until is None else format_time(freeze.until)
        active = (TRUE, "Begun", f"nothing of it begins until {end}")
    elif freeze.begins is not None and now < freeze.begins:
        active = (FALSE, "NotBegun", f"it begins at {format_time(freeze.begins)}")
    else:
        active = (FALSE, "Ended", "")
    said = (*_understood(freeze.fault, freeze.generation, now), _condition(ACTIVE, active, freeze.generation, now))
    return _settled(freeze.conditions, said, now)


def rollout_status(
    rollout: Rollout, snapshot: Snapshot, now: float, makes: str = "", answers: Mapping[str, Answer] = NO_ANSWERS
) -> RolloutStatus:
    """The status that a NodeRollout must have now. `makes`: what a launch is made of."""
    pool, place = snapshot.pools.get(rollout.pool), rollout.status
    if pool is not None and not place.fault:
        is_known = returned(place, *split_of(snapshot, pool), now)
        nodes = replace(nodes_of(snapshot, pool), makes=makes, returned=is_known)
        if place.state in BEGUN:
            known = {each.name: each for each in place.asked}
            asked = [gate.judged(known.get(gate.name), answers.get(gate.question), now) for gate in rollout.gates]
            place = replace(place, gate=nodes_gate(snapshot, pool, place.gate, now, rollout), asked=tuple(asked))
        place = with_owners(rollout, next_move(replace(rollout, status=place), pool, nodes, now), snapshot, now)
        place = _remembering(rollout, place, snapshot, now)
        if not rollout.is_over:  # else nodes come and go as they like: what it says is of its own change
            place = replace(place, target=place.target or pool.target, makes=place.makes or makes, total=nodes.total)
            place = replace(place, at_target=nodes.at_target, leaving=nodes.leaving)
    said = _of_rollout(replace(rollout, status=place), snapshot, now)
    return replace(place, conditions=_settled(rollout.status.conditions, said, now))


def _remembering(rollout: Rollout, place: RolloutStatus, snapshot: Snapshot, now: float) -> RolloutStatus:
    """The status with the images that nodes of before are seen to run."""
    if place.state not in BEGUN | REFUSED:
        return place
    old, target = split_of(snapshot, snapshot.pools[rollout.pool])
    # An older node may be there of which is not known yet that it has drifted.
    own = (each for each in target if each.created >= place.begun and not memory_of(each.annotations).roll_out.how)
    made, settled = {each.image_id for each in own}, now - place.begun >= SETTLED
    return replace(place, stable=place.stable.seen(old, now, rollout.longest_stable, made, settled=settled))


def _of_rollout(rollout: Rollout, snapshot: Snapshot, now: float) -> tuple[Condition, ...]:
    if rollout.fault:
        return _understood(rollout.fault, rollout.generation, now)
    pool, claims = snapshot.pools.get(rollout.pool), snapshot.claims_by_pool.get(rollout.pool, ())
    begun = pool is not None and rollout.status.state in BEGUN
    hold = hold_of(said_in(snapshot, rollout.pool), Cause.DRIFTED) if begun else None
    said = conditions_of(rollout, pool, claims, now, hold)
    return tuple(_condition(kind, each, rollout.generation, now) for kind, each in said.items())


def _understood(fault: str, generation: int, now: float) -> tuple[Condition, ...]:
    if not fault:
        return (_condition(READY, (TRUE, "Understood", ""), generation, now),)
    words = f"{fault}; until that is put right it keeps everything that it is about from beginning"
    return _both(("NotUnderstood", words), generation, now)


def _both(said: tuple[str, str], generation: int, now: float) -> tuple[Condition, ...]:
    """Not Ready and Stalled."""
    return tuple(
        _condition(kind, (status, *said), generation, now) for kind, status in ((READY, FALSE), (STALLED, TRUE))
    )


def _condition(kind: str, said: tuple[str, str, str], generation: int, now: float) -> Condition:
    status, reason, message = said
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        changed=parse_time(format_time(now)),
        generation=generation,
    )


def _settled(known: tuple[Condition, ...], wanted: tuple[Condition, ...], now: float) -> tuple[Condition, ...]:
    """The wanted conditions, each with the time of the last change of its status."""
    since = {(each.type, each.status): each.changed for each in known}
    found = (replace(each, changed=since.get((each.type, each.status), each.changed)) for each in wanted)
    return tuple(sorted(found, key=lambda each: each.type))
