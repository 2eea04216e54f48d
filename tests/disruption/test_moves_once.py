"""In a roll-out each pod moves once: room on nodes that are to leave too is the last that is taken."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from acceptance.bench.inputs.disruption import cluster, on_demand_pool
from dovetail.disruption.commands import Command
from dovetail.disruption.methods.drift import DRIFT
from dovetail.disruption.outlook.waves import outlook
from dovetail.disruption.rounds import Round, run
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.pools import Budget
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import NODES
from worlds.disruption import NOW, a_pair, a_pod, a_pool, a_world, condition


def all_drifted(nodes: int, cpu: str, budget: str) -> Snapshot:
    """A pool of that many nodes of 8 cpus with twenty such pods each, all of which have drifted."""
    pool = replace(on_demand_pool(), disruption=replace(on_demand_pool().disruption, budgets=(Budget(nodes=budget),)))
    world = cluster(nodes, 20, cpu, pool)
    drifted = condition(names.DRIFTED, changed=NOW - 60)
    return replace(world, claims={n: replace(c, conditions=(*c.conditions, drifted)) for n, c in world.claims.items()})


def moves_of(world: Snapshot) -> Counter[str]:
    """How often each pod moves until the last node has been replaced."""
    found = outlook(world, DisruptionSettings(), NOW + 86400.0)
    assert not found.stays and {each.node for each in found.departures} >= world.nodes.keys()
    return Counter(pod for each in found.departures for pod in each.moved)


@pytest.mark.slow
@pytest.mark.parametrize(("cpu", "budget"), [("350m", "10%"), ("250m", "10%"), ("390m", "10%"), ("350m", "100%")])
def test_a_pod_moves_once_in_a_roll_out(cpu: str, budget: str) -> None:
    """Nodes 89, 63 and 100 % full. Packed onto nodes that leave later, pods moved 1.09 and 1.50 times each."""
    world = all_drifted(100, cpu, budget)
    moves = moves_of(world)
    assert len(moves) == len(world.pods)
    assert moves.total() <= 1.02 * len(world.pods)


@pytest.mark.parametrize(("budget", "waves"), [("20%", [4] * 5), ("100%", [20])])
def test_twenty_nodes_take_no_more_waves_for_it(budget: str, waves: list[int]) -> None:
    """As many as the budget makes of them; a node that took in others' pods on its way out made ten of the five."""
    found = outlook(all_drifted(20, "250m", budget), DisruptionSettings(), NOW + 86400.0)
    assert [len(wave.departures) for wave in found.waves] == waves


def the_command(world: Snapshot) -> Command:
    """What drift does about the one node that its budget lets go."""
    [command] = run(DRIFT, Round(world, DisruptionSettings())).found.commands
    return command


@pytest.mark.parametrize(
    "due",
    [
        {"also": [condition(names.DRIFTED, changed=NOW - 60)]},
        {"claim": {"expire_after": 3600.0}},
        {"claim": {"annotations": {names.REPLACE: "old kernel"}}},
    ],
    ids=["drifted", "expired", "asked for"],
)
def test_a_node_that_is_to_leave_too_is_the_last_choice(due: dict[str, Any]) -> None:
    """A new node comes before it; where none may come, the pod goes there all the same."""
    pairs = [a_pair("n1", also=[condition(names.DRIFTED, changed=NOW - 90)]), a_pair("later", **due)]
    budget = (Budget(nodes="1"),)
    for limits, expected in ((None, ((), 1)), ({NODES: 1}, (("later",), 0))):
        first = {names.REPLACE_FIRST: "true"}
        pool = a_pool(consolidate_after=None, budgets=budget, limits=limits, annotations=first)
        world = a_world(pairs, [a_pod("n1", "2"), a_pod("later", "2")], pools=[pool])
        command = the_command(world)
        assert (tuple(command.moved), len(command.replacements)) == expected


def test_pods_that_wait_anyway_use_the_room_of_drifted_nodes() -> None:
    """The scheduler spares no node: were they counted on new ones, a limit would hold back a replacement."""
    drifted = [condition(names.DRIFTED, changed=NOW - 90)]
    pairs = [a_pair("n1", also=drifted), a_pair("n2", also=drifted)]
    waiting = a_pod("", "2", unschedulable=True, phase="Pending")
    pool = a_pool(consolidate_after=None, budgets=(Budget(nodes="1"),), limits={NODES: 2})
    pods = [a_pod("n1", "7"), a_pod("n2", "5"), waiting]
    command = the_command(a_world(pairs, pods, pools=[pool]))
    assert len(command.replacements) == 1
