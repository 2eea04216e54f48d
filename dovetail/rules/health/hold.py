"""What the health of a policy's nodes holds."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

from dovetail.model.own.health import HealthRule, Readiness, Unhealthy
from dovetail.model.own.policies import Policy
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from dovetail.rules.said import Cause, HeldBy, PoolHold, Said

_UNSEEN: Final = Readiness(fault="nobody looks at them")


def readiness_of(policies: Iterable[Policy], snapshot: Snapshot) -> Mapping[str, Readiness]:
    """For each policy that asks for the health of nodes, the nodes of all NodePools that it covers."""
    return {policy.name: readiness_for(policy, snapshot) for policy in policies if policy.health is not None}


def readiness_for(policy: Policy, snapshot: Snapshot) -> Readiness:
    """The readiness of one policy's nodes; a node that cannot be read may be any policy's."""
    pools = ["", *(name for name, pool in snapshot.pools.items() if policy.selects(pool))]
    return sum((snapshot.readiness.get(pool, Readiness()) for pool in pools), Readiness())


def by_health(said: Said, cause: Cause) -> PoolHold | None:
    """The policy whose nodes are not healthy enough; of several, the one that holds longest. A roll-out that goes back
    takes away nodes of a target that may be the reason for that, and repair takes away the unhealthy nodes."""
    if said.pool is None or not cause.is_paced or cause is Cause.UNHEALTHY or said.back_since(cause) is not None:
        return None
    found = [
        (policy.name, unhealthy)
        for policy in said.policies
        if policy.health is not None and (unhealthy := _unhealthy(policy, policy.health, said)) is not None
    ]
    if not found:
        return None
    name, unhealthy = max(found, key=lambda each: inf if each[1].until is None else each[1].until)
    end = "until they are well" if unhealthy.until is None else f"until {format_time(unhealthy.until)}"
    ends = f"{end}, by the health of DisruptionPolicy {name}: {unhealthy.why}"
    message = f"{cause} may not begin for NodePool {said.pool.name} {ends}"
    return PoolHold(rule=HeldBy.HEALTH, why=WhyNot.UNHEALTHY, message=message, until=unhealthy.until, ends=ends)


def _unhealthy(policy: Policy, rule: HealthRule, said: Said) -> Unhealthy | None:
    found = said.readiness.get(policy.name, _UNSEEN)
    return rule.unhealthy(policy.status.health, found, said.now, policy.status.alerts)
