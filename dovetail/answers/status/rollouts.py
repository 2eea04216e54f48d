"""The roll-outs of `status`: those under way or stuck, and what they need from a person."""

from collections.abc import Iterator, Sequence

from dovetail.answers.rollouts.answer import RolloutShown
from dovetail.answers.rollouts.kept import KeptNodes
from dovetail.answers.rollouts.standing import Beside, asks, is_news, shown_of, stalled
from dovetail.answers.status.answer import Need, PoolStatus
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.own.policies import policies_of
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.rules.rollout.by_policy import conflict


def rollouts_shown(
    snapshot: Snapshot, pools: Sequence[PoolStatus] = (), settings: DisruptionSettings | None = None
) -> tuple[RolloutShown, ...]:
    """Those under way or stuck; complete ones and those that wait for a change are left out."""
    kept = KeptNodes(snapshot, settings) if settings is not None else None
    beside = Beside(budgets={pool.name: _budget(pool) for pool in pools}, kept=kept)
    ordered = (snapshot.rollouts[name] for name in sorted(snapshot.rollouts))
    return tuple(shown_of(each, snapshot, beside) for each in ordered if is_news(each))


def rollout_needs(snapshot: Snapshot) -> Iterator[Need]:
    """Roll-outs that ask a person, or are stuck until one acts."""
    for name, rollout in sorted(snapshot.rollouts.items()):
        about, status = f"NodeRollout {name}", rollout.status
        found = stalled(rollout)
        if found is not None:
            resume = f"dovetail rollout resume {name}"
            command = resume if resume in shown_of(rollout, snapshot).commands else f"dovetail rollout status {name}"
            yield Need(about=about, what=found[0], since=found[1], command=command, pool=rollout.pool)
        elif asks(rollout) and status.awaits is not None:
            words = f"waits for an approval: {status.awaits.shows}"
            command = f"dovetail rollout approve {name}"
            yield Need(about=about, what=words, since=status.awaits.since, command=command, pool=rollout.pool)
    for name, pool in sorted(snapshot.pools.items()):
        several = conflict(policies_of(snapshot.policies, pool))
        if several and snapshot.is_ours(pool.template.node_class):
            command = "kubectl get disruptionpolicies.dovetail.sh"
            yield Need(about=f"NodePool {name}", what=several, command=command, pool=name)


def _budget(pool: PoolStatus) -> str:
    """Why budgets let no drifted node leave now."""
    found = next((each for each in pool.may_go if each.reason == DisruptionReason.DRIFTED), None)
    return found.why_not if found is not None and not found.left else ""
