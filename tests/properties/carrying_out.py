"""A plan carried out in one stroke: what the cluster looks like when every step has gone well.

Pods go where the plan made room for them, the rest to the first destination that has some.
"""

from dataclasses import replace
from itertools import count
from typing import Final

from dovetail.messages.plans import DisruptionCommand, DisruptionPlan
from dovetail.model import names
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import fits, subtract
from worlds.disruption import TYPES, a_pair

_numbers: Final = count(1)


def carry_out(world: Snapshot, plan: DisruptionPlan) -> Snapshot:
    """The cluster after every command of the plan."""
    for command in plan.commands:
        world = _one(world, plan, command)
    return world


def _one(world: Snapshot, plan: DisruptionPlan, command: DisruptionCommand) -> Snapshot:
    gone = {t.node for t in command.targets}
    claims = {t.claim for t in command.targets}
    homes: dict[str, str] = {}
    nodes = {n: node for n, node in world.nodes.items() if n not in gone}
    kept = {c: claim for c, claim in world.claims.items() if c not in claims}
    for made in command.replacements:
        name = f"new{next(_numbers):08}"
        pair = a_pair(name, plan.type_lists[made.type_list][0], pool=made.pool)
        assert pair.claim.labels[names.INSTANCE_TYPE] in {t.name for t in TYPES}
        nodes[name], kept[pair.claim.name] = pair.node, pair.claim
        homes.update({pod.uid: name for pod in made.pods})
    pods = {uid: p for uid, p in world.pods.items() if p.node_name not in gone}
    for pod in world.pods.values():
        if pod.node_name in gone:
            home = homes.get(pod.uid) or _destination(pod, command, nodes, pods)
            pods[pod.uid] = replace(pod, node_name=home)
    return replace(world, nodes=nodes, claims=kept, pods=pods)


def _destination(pod: Pod, command: DisruptionCommand, nodes: dict, pods: dict[str, Pod]) -> str:  # type: ignore[type-arg]
    for name in command.destinations:
        left = dict(nodes[name].allocatable)
        for other in pods.values():
            if other.node_name == name:
                left = subtract(left, other.requests)
        if fits(pod.requests, left):
            return name
    raise AssertionError(f"{pod.key} has no home after {command.summary}")
