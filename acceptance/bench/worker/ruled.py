"""A cluster whose NodePools stand under DisruptionPolicies, for what looks over it cost."""

from dataclasses import replace
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.health import HealthRule
from dovetail.model.own.openings import Window
from dovetail.model.own.policies import Policy
from dovetail.model.own.rates import Rate
from dovetail.model.own.rollouts import Rollout, RolloutPlan, RolloutState, RolloutStatus, RolloutStep
from dovetail.model.own.stable_images import StableImages
from dovetail.model.pods import Expression, LabelSelector
from dovetail.model.snapshot import Snapshot
from worlds.disruption import HOUR, condition
from worlds.time_rules import with_rules

STEPS: Final = (
    RolloutStep(name="canary", to="1"),
    RolloutStep(name="tenth", to="10%"),
    RolloutStep(name="rest", to="100%"),
)
KEPT: Final = 10  # roll-outs of earlier changes, of each NodePool
DRIFTED: Final = condition(names.DRIFTED, reason="AMIDrift")


def ruled(found: Snapshot, policies: int) -> Snapshot:
    """Its nodes in as many pools of equal size, each with a policy of its own that has a window, a rate, a health and
    a roll-out, which is half through."""
    [pool] = found.pools.values()
    [catalogue] = found.catalogues.values()
    pools = [f"pool-{number:02}" for number in range(policies)]
    of = {claim.node_name: (pools[n % policies], n % (2 * policies) < policies) for n, claim in _numbered(found)}
    rules: list[Policy | Rollout] = [_policy(name) for name in pools]
    for name in pools:
        rules += [_rollout(f"{name}-{number}", name, found.now) for number in range(KEPT + 1)]
    ruled_ = replace(
        found,
        pools={name: replace(pool, name=name, uid=name, hash="2", labels={"team": name}) for name in pools},
        catalogues=dict.fromkeys(pools, catalogue),
        nodes={
            name: replace(node, labels={**node.labels, names.NODE_POOL: of[name][0]})
            for name, node in found.nodes.items()
        },
        claims={name: _in_pool(claim, *of[claim.node_name]) for name, claim in found.claims.items()},
    )
    return with_rules(ruled_, *rules)


def _numbered(found: Snapshot) -> list[tuple[int, NodeClaim]]:
    return list(enumerate(found.claims.values()))


def _in_pool(claim: NodeClaim, pool: str, drifted: bool) -> NodeClaim:
    conditions = (*claim.conditions, DRIFTED) if drifted else claim.conditions
    labels = {**claim.labels, names.NODE_POOL: pool}
    return replace(claim, labels=labels, conditions=conditions, image_id="ami-1" if drifted else "ami-2")


def _policy(pool: str) -> Policy:
    team = Expression(key="team", operator="In", values=(pool,))
    return Policy(
        name=pool,
        selector=LabelSelector(expressions=(team,)),
        zone="Europe/Berlin",
        deny=(Window(start=0, end=3600, days=frozenset({6})),),
        rates=(Rate(nodes="20%", per=HOUR),),
        health=HealthRule(max_not_ready="10%", stable_for=600.0),
        rollout=RolloutPlan(steps=STEPS),
    )


def _rollout(name: str, pool: str, now: float) -> Rollout:
    """The first of them goes on; the others are of changes of before."""
    goes_on = name.endswith("-0")
    state = RolloutState.REPLACING if goes_on else RolloutState.COMPLETE
    begun = now - HOUR
    status = RolloutStatus(
        state=state, step="rest", since=begun, begun=begun, target="2", stable=StableImages(since=begun)
    )
    return Rollout(name=name, uid=name, created=begun, pool=pool, policy=pool, steps=STEPS, status=status)
