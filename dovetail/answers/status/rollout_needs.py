"""What of roll-outs needs a person, and what budgets let none of their nodes go."""

from collections.abc import Iterable, Iterator, Mapping

from dovetail.answers.rollouts.shown import asks_person, shown_of, stalled_by
from dovetail.answers.status.answer import Need, PoolStatus
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.policies import policies_of
from dovetail.model.policy_rollouts import conflict
from dovetail.model.snapshot import Snapshot


def rollout_needs(snapshot: Snapshot) -> Iterator[Need]:
    """What asks a person, or stands still until one acts."""
    for name, rollout in sorted(snapshot.rollouts.items()):
        about, status = f"NodeRollout {name}", rollout.status
        stalled = stalled_by(rollout)
        if stalled is not None:
            resume = f"dovetail rollout resume {name}"
            command = resume if resume in shown_of(rollout, snapshot).commands else f"dovetail rollout status {name}"
            yield Need(about=about, what=stalled[0], since=stalled[1], command=command, pool=rollout.pool)
        elif asks_person(rollout) and status.awaits is not None:
            words = f"waits for an approval: {status.awaits.shows}"
            command = f"dovetail rollout approve {name}"
            yield Need(about=about, what=words, since=status.awaits.since, command=command, pool=rollout.pool)
    for name, pool in sorted(snapshot.pools.items()):
        several = conflict(policies_of(snapshot.policies, pool))
        if several and snapshot.is_ours(pool.template.node_class):
            command = "kubectl get disruptionpolicies.dovetail.sh"
            yield Need(about=f"NodePool {name}", what=several, command=command, pool=name)


def budgets_of(pools: Iterable[PoolStatus]) -> Mapping[str, str]:
    """By NodePool, why its budgets let nothing drifted go now, where they do not."""
    drifted = ((pool, each) for pool in pools for each in pool.may_go if each.reason == DisruptionReason.DRIFTED)
    return {pool.name: each.why_not for pool, each in drifted if not each.left}
