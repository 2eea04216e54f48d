"""Scenes of every cause for which a node leaves under every rule that may hold it, through the code that decides.

Each scene is a small cluster in which a node would leave now for that cause alone; each rule changes the cluster so
that the rule holds, without knowing which scene it changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.lifecycle.repair import find_repairs
from dovetail.lifecycle.static_pools import surplus
from dovetail.lifecycle.unfinished import expired, owners
from dovetail.messages.plans import DisruptionPlan
from dovetail.messages.workflow_types import TERMINATE_NODE
from dovetail.model import names
from dovetail.model.nodes import RepairPolicy
from dovetail.model.objects.workloads import Namespace
from dovetail.model.own.health import HealthRule
from dovetail.model.own.openings import Window
from dovetail.model.own.policies import Freeze, Policy
from dovetail.model.own.rates import Rate
from dovetail.model.own.rollouts import Rollout, RolloutPlan
from dovetail.model.pools import Budget, NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.rules.brake.breakers import Breaker, Happened, with_breaker
from dovetail.rules.rate.rates import BegunNodes, with_begun
from worlds.disruption import HOUR, NOW, a_pair, a_pdb, a_pod, a_pool, a_world, condition
from worlds.time_rules import with_rules

Play = Callable[[Callable[[Snapshot], Snapshot]], bool]  # whether a node begins to leave under the rule

_SETTINGS: Final = DisruptionSettings(repairs=True)
_STAYS: Final = (a_pool(consolidate_after=None),)  # nothing is consolidated
_SILENT: Final = RepairPolicy(condition="Ready", status="Unknown", toleration=600.0, grace=300.0)
_DRIFTED: Final = a_world([a_pair("n1", also=(names.DRIFTED,))], [a_pod("n1")], _STAYS)
_PLAN: Final = RolloutPlan()
_FOR_A_REQUEST: Final = {names.REPLACE: "a new disk"}


def _disruption(world: Snapshot, reason: str, *methods: str) -> Play:
    def begins(rule: Callable[[Snapshot], Snapshot]) -> bool:
        choice = choose(rule(world), _SETTINGS, never)
        if not isinstance(choice, DisruptionPlan):
            return False
        assert {(each.reason, each.method in methods) for each in choice.commands} == {(reason, True)}
        return True

    return begins


def _asked_for(annotations: Mapping[str, str]) -> Snapshot:
    return a_world([a_pair("n1", claim={"annotations": annotations})], [a_pod("n1")], _STAYS)


def _old(**pool: Any) -> Snapshot:
    claim = {"expire_after": HOUR}
    return a_world([a_pair("n1", claim=claim)], [a_pod("n1")], [a_pool(consolidate_after=None, **pool)])


def _scaled_down(rule: Callable[[Snapshot], Snapshot]) -> bool:
    return bool(surplus(rule(a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1")], [a_pool(replicas=1)])), {}))


def _sick() -> Snapshot:
    silent = {"conditions": (condition("Ready", status="Unknown"),)}
    world = a_world([a_pair("n1", node=silent), *(a_pair(f"n{n}") for n in range(2, 8))], [a_pod("n1")], _STAYS)
    return replace(world, repair_policies=(_SILENT,))


def _repaired(rule: Callable[[Snapshot], Snapshot]) -> bool:
    return bool(find_repairs(rule(_sick()), (_SILENT,)).orders)


def _deleted(rule: Callable[[Snapshot], Snapshot]) -> bool:
    world = rule(
        a_world(
            [a_pair("n1", claim={"deleting_since": NOW - 1, "finalizers": (names.TERMINATION_FINALIZER,)})],
            [a_pod("n1")],
            _STAYS,
        )
    )
    return any(order.workflow_type == TERMINATE_NODE for order in owners(world))


CAUSES: Final[Mapping[str, Play]] = {
    "Empty": _disruption(a_world([a_pair("n1")]), "Empty", "emptiness"),
    "Underutilized": _disruption(
        a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2")]),
        "Underutilized",
        "multi",
    ),
    "Drifted": _disruption(_DRIFTED, "Drifted", "drift"),
    "Unhealthy": _disruption(_sick(), "Unhealthy", "repair"),
    "Expired, replaced first": _disruption(_old(annotations={names.REPLACE_FIRST: "true"}), "Expired", "expiration"),
    "Requested": _disruption(_asked_for(_FOR_A_REQUEST), "Requested", "requests"),
    "Requested, --now": _disruption(_asked_for({**_FOR_A_REQUEST, names.REPLACE_NOW: "true"}), "Requested", "requests"),
    "Expired, deleted": lambda rule: bool(expired(rule(_old()))),
    "Static pool scaled down": _scaled_down,
    "Repaired as until 1.14": _repaired,
    "Deleted by a person": _deleted,
}


def _with_pools(change: Callable[[NodePool], NodePool]) -> Callable[[Snapshot], Snapshot]:
    return lambda world: replace(world, pools={name: change(pool) for name, pool in world.pools.items()})


def _paused(world: Snapshot) -> Snapshot:
    return replace(world, namespaces={"kube-system": Namespace(name="kube-system", annotations={names.PAUSED: ""})})


def _failing(pool: NodePool) -> NodePool:
    for reason in DisruptionReason:
        pool = with_breaker(pool, Breaker(reason=reason, failures=(Happened(NOW, "00000001"),), opened=NOW))
    return pool


def _unhealthy(world: Snapshot) -> Snapshot:
    """A node of another NodePool of the policy is not ready: at least an eighth of all."""
    other = a_pool("other", consolidate_after=None)
    sick = a_pair("sick", pool=other.name, node={"conditions": (condition("Ready", status="False"),)})
    world = replace(
        world,
        pools={**world.pools, other.name: other},
        claims={**world.claims, sick.claim.name: sick.claim},
        nodes={**world.nodes, sick.node.name: sick.node},
    )
    return with_rules(world, Policy(name="p", health=HealthRule(max_not_ready="10%", stable_for=600.0)))


def _protected(world: Snapshot) -> Snapshot:
    return replace(world, pods={uid: replace(pod, do_not_disrupt="true") for uid, pod in world.pods.items()})


def _with_pdb(world: Snapshot) -> Snapshot:
    pdb = a_pdb()
    return replace(world, pdbs={f"{pdb.namespace}/{pdb.name}": pdb})


def _changed(world: Snapshot) -> Snapshot:
    """What has drifted has for a change."""
    changed = {
        name: replace(claim, conditions=tuple(replace(each, reason="NodePoolDrifted") for each in claim.conditions))
        for name, claim in world.claims.items()
    }
    return replace(world, claims=changed)


RULES: Final[Mapping[str, Callable[[Snapshot], Snapshot]]] = {
    "pause": _paused,
    "Freeze": lambda world: with_rules(world, Freeze(name="f", until=NOW + HOUR)),
    "Freeze that is not understood": lambda world: with_rules(world, Freeze(name="f", fault="spec.until: no date")),
    "nodes that are not ready": _unhealthy,
    "replacements that failed": _with_pools(_failing),
    "closed window": lambda world: with_rules(world, Policy(name="p", deny=(Window(),))),
    "policy that is not understood": lambda world: with_rules(world, Policy(name="p", fault="spec.timeZone: none")),
    "change whose roll-out is not made yet": lambda world: with_rules(_changed(world), Policy(name="p", rollout=_PLAN)),
    "roll-out that waits": lambda world: with_rules(world, Rollout(name="r")),
    "rate that is reached": lambda world: with_rules(
        _with_pools(lambda pool: with_begun(pool, [BegunNodes(NOW - 60, "Drifted", nodes=2)], {HOUR}, NOW))(world),
        Policy(name="p", rates=(Rate(nodes="2", per=HOUR),)),
    ),
    "budget of no node": _with_pools(
        lambda pool: replace(pool, disruption=replace(pool.disruption, budgets=(Budget(nodes="0"),)))
    ),
    "pod with do-not-disrupt": _protected,
    "PDB that allows none": _with_pdb,
}
