"""Which NodeRollouts DisruptionPolicies ask for, and which complete ones have been kept for long enough."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from dovetail.model.own.policies import policies_of
from dovetail.model.own.rollouts import NewRollout, Rollout, RolloutState
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.rules.rollout.by_policy import unmade
from dovetail.rules.rollout.nodes import nodes_of
from dovetail.rules.said import rollouts_in

MOST_KEPT: Final = 10  # complete ones of a NodePool
KEPT: Final = 30 * 86_400.0  # seconds
_LONGEST_NAME: Final = 253
_DIGITS: Final = 10


def wanted_rollouts(snapshot: Snapshot) -> Iterator[NewRollout]:
    """One for each NodePool with a change that has no roll-out yet; made again it has the same name."""
    if not any(policy.rollout for policy in snapshot.policies.values()):
        return
    for pool in snapshot.pools.values():
        if not snapshot.is_ours(pool.template.node_class) or rollouts_in(snapshot, pool.name):
            continue
        found = unmade(policies_of(snapshot.policies, pool), nodes_of(snapshot, pool), snapshot.now)
        if found is not None and found.policy is not None and found.policy.rollout is not None:
            yield NewRollout(
                name=_name(pool, _complete(snapshot, pool.name)),
                pool=pool.name,
                pool_uid=pool.uid,
                policy=found.policy.name,
                plan=found.policy.rollout,
            )


def outlived_rollouts(snapshot: Snapshot) -> Iterator[Rollout]:
    """The roll-outs that policies made and that may be deleted. Those that people made are theirs to delete."""
    for pool in sorted({rollout.pool for rollout in snapshot.rollouts.values() if rollout.policy}):
        ours = [each for each in _complete(snapshot, pool) if each.policy]
        for place, rollout in enumerate(ours):
            if place >= MOST_KEPT or snapshot.now - rollout.status.since > KEPT:
                yield rollout


def _complete(snapshot: Snapshot, pool: str) -> list[Rollout]:
    """The pool's complete roll-outs, the latest first."""
    complete = RolloutState.COMPLETE
    found = [each for each in snapshot.rollouts_by_pool.get(pool, {}).values() if each.status.state == complete]
    return sorted(found, key=lambda each: (-each.status.since, each.name))


def _name(pool: NodePool, complete: list[Rollout]) -> str:
    """The name, made of the target and of what came before: a change back to an earlier target is another roll-out, and
    a new image of the NodeClass does not change the NodePool."""
    before = complete[0].uid if complete else ""
    digest = sha256(f"{pool.uid}/{pool.hash}/{before}".encode()).hexdigest()[:_DIGITS]
    return f"{pool.name[: _LONGEST_NAME - _DIGITS - 1].rstrip('.-')}-{digest}"
