"""A fleet of unlike nodes that have all drifted: how large do a wave and what is made of it become?

Every node holds a pod of another size, so that each replacement may be of other instance types, and a real catalogue's
list of them is ten thousand bytes long. Fleets of like nodes share one list and hide that.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.inputs import DisruptInput
from dovetail.messages.plans import DisruptionPlan
from dovetail.messages.sizes import encoded_bytes
from dovetail.messages.type_lists import command_with_own_lists
from dovetail.model.pools import InstanceType
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources
from dovetail.workflows.claim_owners import STARTS_AT_ONCE
from worlds.disruption import NOW, Pair, a_pair, a_pod, a_pool, a_type, a_world, condition

CATALOGUE = 700
NAME = "unlike_nodes_100"
LONG = "u-family-with-a-long-name"


def catalogue(count: int = CATALOGUE) -> tuple[InstanceType, ...]:
    """Types of 4 to 64 cpus, several of each size at slightly different prices."""
    return tuple(a_type(f"{LONG}-{n:03}.xlarge", 4 + n % 61, 0.05 * (4 + n % 61) + n / 1e6) for n in range(count))


def unlike_fleet(millicores: Sequence[int], pods_per_node: int = 1, types: int = CATALOGUE) -> Snapshot:
    """A drifted node for each of these amounts of cpu that its pods ask for together."""
    drifted = condition("Drifted", changed=NOW - 60)
    pairs = [_large(a_pair(f"node-{n:03}", "m16", also=(drifted,))) for n in range(len(millicores))]
    pods = [
        a_pod(f"node-{n:03}", f"{cpu // pods_per_node}m", name=f"pod-{n:03}-{each:03}")
        for n, cpu in enumerate(millicores)
        for each in range(pods_per_node)
    ]
    return a_world(pairs, pods, pools=[a_pool(consolidate_after=None)], types=catalogue(types))


def _large(pair: Pair) -> Pair:
    amounts = parse_resources({"cpu": "64", "memory": "512Gi", "pods": "400"})
    return Pair(
        node=replace(pair.node, capacity=amounts, allocatable=amounts),
        claim=replace(pair.claim, capacity=amounts, allocatable=amounts),
    )


def inputs_of(plan: DisruptionPlan) -> list[int]:
    """The encoded bytes of what each disruption of the plan is given."""
    sizes = []
    for number, command in enumerate(plan.commands):
        own, lists = command_with_own_lists(command, plan.type_lists)
        given = DisruptInput(cluster="c", plan_id=f"{number:036}", command=own, type_lists=lists, seen=plan.seen)
        sizes.append(encoded_bytes(given))
    return sizes


def parts_of(sizes: Sequence[int]) -> list[int]:
    """The bytes of each part that is started together."""
    return [sum(sizes[n : n + STARTS_AT_ONCE]) for n in range(0, len(sizes), STARTS_AT_ONCE)]


def line_of(nodes: int = 100) -> dict[str, Any]:
    """The waves in which that many unlike nodes drift, and the largest of what crosses Temporal for them."""
    left = [1500 + 580 * (n % 100) for n in range(nodes)]
    waves, plans, tasks, most = [], [], [], 0
    while left:
        plan = choose(unlike_fleet(left), DisruptionSettings(), never)
        if not isinstance(plan, DisruptionPlan):
            break
        sizes = inputs_of(plan)
        waves.append(len(plan.commands))
        plans.append(encoded_bytes(plan))
        tasks += parts_of(sizes)
        most = max(most, *sizes)
        left = left[len(plan.commands) :]
    figures = {"waves": waves, "plan": max(plans), "disruption": most, "workflow task": max(tasks)}
    return {"input": NAME, "nodes": nodes, "bytes": figures}
