"""What the status of DisruptionPolicies, Freezes and NodeRollouts should say: whether they are understood, and more.

In the words of kstatus: Ready where it is understood, or a roll-out complete; Stalled where a person must change it. A
step of a roll-out is permitted by this very write.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Final

from dovetail.activities.shared.look import Look, Write, earliest
from dovetail.disruption.upkeep.rollout_gates import nodes_gate
from dovetail.disruption.upkeep.rollout_moves import looks_again, next_move
from dovetail.lifecycle.conditions import FALSE, TRUE, UNKNOWN
from dovetail.model.beginnings import readiness_for
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.health import HealthState
from dovetail.model.names import READY
from dovetail.model.nodes import Condition
from dovetail.model.notice import Notice
from dovetail.model.policies import Freeze, Opening, Policy, PolicyStatus, TakenRate, next_opening, policies_of
from dovetail.model.policy_rollouts import conflict
from dovetail.model.pools import NodePool
from dovetail.model.rates import pace_of, slides_at
from dovetail.model.rollout_nodes import is_old, nodes_of
from dovetail.model.rollouts import BEGUN, REFUSED, GateResult, Intent, Rollout, RolloutState, RolloutStatus
from dovetail.model.snapshot import Snapshot
from dovetail.model.time import format_time, parse_time
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.objects import Notices, TimeObjects

ACTIVE: Final = "Active"
STALLED: Final = "Stalled"
RECONCILING: Final = "Reconciling"
HEALTHY: Final = "Healthy"
STABLE_PINNED: Final = "StablePinned"
_HEALTH: Final = {
    GateResult.PASSING: (TRUE, "GatesPass"),
    GateResult.UNKNOWN: (UNKNOWN, "GatesUnknown"),
    GateResult.FAILING: (FALSE, "GateFails"),
}


class TimeRuleUpkeep:
    """Finds what differs in the status of policies, freezes and roll-outs."""

    def __init__(
        self,
        times: TimeObjects,
        now: Callable[[], float],
        catalogues: Catalogues | None = None,
        notices: Notices | None = None,
    ) -> None:
        self.times, self.now, self.catalogues, self.notices = times, now, catalogues, notices
        self.refused: dict[str, str] = {}  # roll-out UID -> what has been published of its failure

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due, and when time alone changes a status."""
        writes: list[Write] = []
        moments: list[float | None] = []
        for policy in snapshot.policies.values():
            wanted = policy_status(policy, snapshot, self.now())
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
            place = rollout_status(rollout, snapshot, self.now(), makes)
            moments += looks_again(place, rollout.longest_stable, self.now())
            if place != rollout.status:
                writes.append(partial(self.times.patch_rollout, rollout, place))
            writes += self._refusals(rollout, place, snapshot)
        return Look(due=writes, again=earliest(*[m for m in moments if m is not None and m > self.now()]))

    async def _makes(self, rollout: Rollout, snapshot: Snapshot) -> str:
        """What a launch for its pool is made of now; empty where nobody knows."""
        pool = snapshot.pools.get(rollout.pool)
        if pool is None or self.catalogues is None or rollout.status.state == RolloutState.COMPLETE:
            return ""
        try:
            return (await self.catalogues.node_class(pool.template.node_class)).makes
        except Failure:
            return ""

    def _refusals(self, rollout: Rollout, place: RolloutStatus, snapshot: Snapshot) -> list[Write]:
        """That its target is refused, on the NodeClass whose change it is: nothing of that is ever edited."""
        pool, failure = snapshot.pools.get(rollout.pool), place.failure
        known = self.refused.pop(rollout.uid, "")
        if pool is None or failure is None or self.notices is None or place.state not in REFUSED:
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


def policy_status(policy: Policy, snapshot: Snapshot, now: float) -> PolicyStatus:
    """What is to stand there now."""
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
        health=_health(policy, snapshot, now),
    )


def _conflicts(policy: Policy, snapshot: Snapshot, pools: Iterable[str]) -> Iterator[str]:
    """For each NodePool of which another policy has a roll-out too."""
    for name in pools if policy.rollout is not None else ():
        words = conflict(policies_of(snapshot.policies, snapshot.pools[name]))
        if words:
            yield f"NodePool {name}: {words}"


def _health(policy: Policy, snapshot: Snapshot, now: float) -> HealthState | None:
    if policy.health is None:
        return policy.status.health if policy.fault else None
    return policy.health.remembered(policy.status.health, readiness_for(policy, snapshot), now)


def _openings(policy: Policy, now: float) -> Iterator[Opening]:
    """One for each reason that a window is about; all of them where the policy cannot be understood."""
    for reason in DisruptionReason:
        if not policy.fault and not any(window.names(reason) for window in (*policy.allow, *policy.deny)):
            continue
        why = policy.why_closed(reason, now)
        yield Opening(reason=str(reason), open=not why, until=next_opening((policy,), reason, now), why=why)


def _taken(policy: Policy, pools: Iterable[NodePool], now: float) -> Iterator[TakenRate]:
    """For each rate and NodePool of which something is taken."""
    for pool in pools:
        for place, rate in enumerate(policy.rates):
            pace = pace_of(rate, pool, now)
            if pace.begun:
                until = None if pace.until is None else float(ceil(pace.until))
                yield TakenRate(pool=pool.name, rate=place, begun=pace.begun, allowed=pace.allowed, until=until)


def freeze_conditions(freeze: Freeze, now: float) -> tuple[Condition, ...]:
    """What is to stand there now."""
    if freeze.holds(now):
        end = "it is changed or deleted" if freeze.until is None else format_time(freeze.until)
        active = (TRUE, "Begun", f"nothing of it begins until {end}")
    elif freeze.begins is not None and now < freeze.begins:
        active = (FALSE, "NotBegun", f"it begins at {format_time(freeze.begins)}")
    else:
        active = (FALSE, "Ended", "")
    said = (*_understood(freeze.fault, freeze.generation, now), _condition(ACTIVE, active, freeze.generation, now))
    return _settled(freeze.conditions, said, now)


def rollout_status(rollout: Rollout, snapshot: Snapshot, now: float, makes: str = "") -> RolloutStatus:
    """What is to stand there now. `makes`: what a launch is made of."""
    pool, place = snapshot.pools.get(rollout.pool), rollout.status
    if pool is not None:
        nodes = replace(nodes_of(snapshot, pool), makes=makes)
        if place.state in BEGUN:
            place = replace(place, gate=nodes_gate(snapshot, pool, place.gate, now))
        place = next_move(replace(rollout, status=place), pool, nodes, now)
        place = _remembering(rollout, place, snapshot, now)
        place = replace(place, makes=place.makes or makes, total=nodes.total)
        place = replace(place, at_target=nodes.at_target, leaving=nodes.leaving)
    said = _of_rollout(replace(rollout, status=place), pool is not None, now)
    return replace(place, conditions=_settled(rollout.status.conditions, said, now))


def _remembering(rollout: Rollout, place: RolloutStatus, snapshot: Snapshot, now: float) -> RolloutStatus:
    """With the images that nodes of before are seen to run."""
    if place.state not in BEGUN | REFUSED:
        return place
    pool = snapshot.pools[rollout.pool]
    old = [claim for claim in snapshot.claims_by_pool.get(pool.name, ()) if is_old(claim, pool)]
    return replace(place, stable=place.stable.seen(old, now, rollout.longest_stable))


def _of_rollout(rollout: Rollout, has_pool: bool, now: float) -> tuple[Condition, ...]:
    if rollout.fault:
        return _understood(rollout.fault, rollout.generation, now)
    state, intent = rollout.status.state, rollout.intent
    is_complete = state == RolloutState.COMPLETE
    stalled = (FALSE, "Advancing", "")
    if not has_pool:
        stalled = (TRUE, "NodePoolNotFound", f"there is no NodePool {rollout.pool}")
    elif intent == Intent.ABORT and not is_complete:
        stalled = (TRUE, "Aborted", "its nodes are held until its intent is Run, or it is deleted")
    elif state == RolloutState.FAILED:
        stalled = (TRUE, "TargetRefused", f"{rollout.words}; change spec.intent, or the target")
    elif rollout.goes_back:
        stalled = (FALSE, "Advancing", "")
    elif rollout.is_failing:
        stalled = (TRUE, "GateFails", f"no further node begins: {rollout.status.gate.message}")
    elif state == RolloutState.PAUSED:
        stalled = (TRUE, "ApprovalExpired", "nobody approved in time; write its intent anew, and it is asked again")
    elif state == RolloutState.JUDGING:
        stalled = (TRUE, "NodesNotReady", "nodes at the target are not ready, so that no further step begins")
    goes_on = (state in BEGUN or rollout.goes_back) and stalled[0] == FALSE and intent != Intent.PAUSE
    reason = str(intent) if intent == Intent.PAUSE else str(state)
    said = {
        HEALTHY: (*_HEALTH[rollout.status.gate.result], rollout.status.gate.message),
        READY: (TRUE, reason, "") if is_complete else (FALSE, reason, rollout.words),
        STALLED: stalled,
        RECONCILING: (TRUE if goes_on else FALSE, reason, ""),
    }
    if state in BEGUN | REFUSED:
        said[STABLE_PINNED] = _pinned(rollout)
    return tuple(_condition(kind, each, rollout.generation, now) for kind, each in said.items())


def _pinned(rollout: Rollout) -> tuple[str, str, str]:
    """Whether launches are kept to the images of before, and why not."""
    stable = rollout.status.stable
    if rollout.keeps_images:
        return TRUE, "Pinned", f"launches take {', '.join(image.id for image in stable.images)}"
    if stable.why_not:
        return FALSE, "NotPossible", f"launches take the target: {stable.why_not}"
    return FALSE, "NotAskedFor", "launches take the target: newLaunches says so"


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
    """With the time of the last change of each status."""
    since = {(each.type, each.status): each.changed for each in known}
    found = (
        Condition(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            changed=since.get((each.type, each.status), each.changed),
            generation=each.generation,
        )
        for each in wanted
    )
    return tuple(sorted(found, key=lambda each: each.type))
