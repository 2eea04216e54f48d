"""Whether a DisruptionPolicy rolls out a change of a NodePool for which there is no NodeRollout yet.

Until there is one no drifted node may begin to leave: budgets alone would let the change go on meanwhile. Conditions
are written claim by claim, so only after a while is it certain that too few have drifted for a roll-out.
"""

from dataclasses import dataclass
from typing import Final

from dovetail.model.own.policies import Policy
from dovetail.model.own.rollouts import PoolNodes
from dovetail.model.values.time import format_time

SETTLES: Final = 60.0  # seconds after the last node that was found to have drifted


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmade:
    """What is waited for. `policy`: the one by which a NodeRollout should be made now; None if it should not."""

    message: str
    policy: Policy | None = None
    until: float | None = None


def rolling(policies: tuple[Policy, ...]) -> tuple[Policy, ...]:
    """The policies that have a roll-out; one counts, several cancel each other."""
    return tuple(policy for policy in policies if policy.rollout is not None)


def conflict(policies: tuple[Policy, ...]) -> str:
    """The fault if several policies of a pool have one."""
    several = [policy.name for policy in rolling(policies)]
    if len(several) < 2:
        return ""
    named = f"{', '.join(several[:-1])} and {several[-1]}"
    return f"DisruptionPolicies {named} each have a roll-out for it; take one away, none counts until then"


def unmade(policies: tuple[Policy, ...], nodes: PoolNodes, now: float) -> Unmade | None:
    """What holds a pool without a NodeRollout; None if budgets alone count."""
    ours = rolling(policies)
    if not ours or not nodes.changed:
        return None
    if len(ours) > 1:
        return Unmade(message=conflict(policies))
    [policy] = ours
    needs = policy.rollout.needs(nodes.total) if policy.rollout is not None else 0
    if nodes.changed >= needs:
        return Unmade(
            message=f"a NodeRollout is made of its change first, by DisruptionPolicy {policy.name}", policy=policy
        )
    until = nodes.newest_drift + SETTLES
    if until <= now:
        return None
    few = f"{nodes.changed} of the {needs} nodes that are a roll-out by DisruptionPolicy {policy.name} have drifted"
    return Unmade(message=f"{few}; others may follow until {format_time(until)}", until=until)
