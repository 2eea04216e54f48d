"""A node that only PDBs of pods hold which leave by a roll-out is a candidate, and one such pod needs one place."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.nodes.screening import screen
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.objects.workloads import Begun, Deployment, Failed, RollOut, SelectorSource
from dovetail.model.places.moved_pods import passed_on
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.placement.index.index import Index
from dovetail.placement.place_pods import place
from dovetail.placement.settings import PlacementSettings
from tests.model.move_worlds import ABOVE, GUARDS, a_roll_out
from worlds.disruption import NOW, a_pair, a_pdb, a_pod, a_pool, a_world, condition

OWNED: dict[str, Any] = {
    "guards": GUARDS,
    "selector_sources": {
        "ReplicaSet/default/o": SelectorSource(kind="ReplicaSet", name="o", namespace="default", owners=(ABOVE,))
    },
}
FOR_GOOD = a_pdb(min_available="100%", max_unavailable=None)


def a_held_world(roll_out: RollOut, *more: Any, claim: dict[str, Any] | None = None, **fields: Any) -> Snapshot:
    """A drifted node whose pod is the one replica of a Deployment, under a PDB that never allows an eviction."""
    pair = a_pair("n1", also=[condition(names.DRIFTED, changed=NOW - 60)], claim=claim or {})
    deployment = Deployment(name="ledger", namespace="default", uid="uid-ledger", roll_out=roll_out)
    world = a_world(
        [pair], [a_pod("n1", "3", name="ledger"), *more], pools=[a_pool(consolidate_after=None)], pdbs=[FOR_GOOD]
    )
    return replace(world, **{"deployments": {"default/ledger": deployment}, **OWNED, **fields})


def blocks(world: Snapshot) -> list[WhyNot]:
    return [block.why for _, block in screen(Fleet(world, DisruptionSettings())).blocked]


def test_a_node_that_only_a_pod_holds_which_is_moved_goes_and_its_replacement_holds_that_pod() -> None:
    """TRM-44. Upstream takes a pod that no PDB ever lets go for one that needs no other place."""
    world = a_held_world(a_roll_out())

    found = choose(world, DisruptionSettings(), never)

    assert isinstance(found, DisruptionPlan)
    [command] = found.commands
    assert {pod.uid for pod in command.replacements[0].pods} == set(world.pods)


@pytest.mark.parametrize(
    ("world", "why"),
    [
        (a_held_world(a_roll_out(wish=None)), WhyNot.PDB_BLOCKS),
        (a_held_world(a_roll_out(wish="evict")), WhyNot.PDB_BLOCKS),
        (a_held_world(a_roll_out(), guards={}), WhyNot.PDB_BLOCKS),
        (a_held_world(a_roll_out(replicas=2)), WhyNot.PDB_BLOCKS),
        (a_held_world(a_roll_out(settled=False)), WhyNot.PDB_BLOCKS),
        (a_held_world(a_roll_out(), claim={"termination_grace": 60.0}), WhyNot.PDB_BLOCKS),
        (a_held_world(a_roll_out(), a_pod("n1", owner="StatefulSet")), WhyNot.PDB_BLOCKS),  # another pod's PDB
        (a_held_world(a_roll_out(wish="hold"), pdbs={}), WhyNot.MOVE_HELD),
        (a_held_world(a_roll_out(failed=Failed(generation=4, at=NOW - 60)), pdbs={}), WhyNot.MOVE_HELD),
    ],
)
def test_else_it_stays(world: Snapshot, why: WhyNot) -> None:
    """TRM-44."""
    assert blocks(world) == [why]


def test_a_move_that_failed_long_ago_is_tried_again() -> None:
    """TRM-42."""
    assert blocks(a_held_world(a_roll_out(failed=Failed(generation=4, at=NOW - 900)))) == []


@pytest.mark.parametrize("bound", ["next", ""])
@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("failed", [None, "n1", "next"])
def test_no_second_node_is_launched_while_both_pods_stand(bound: str, moved: bool, failed: str | None) -> None:
    """TRM-43. The node that was launched for the old pod has room for one of them alone; what is not passed on asks for
    another node. `failed`: where a pod of it that has ended is left over."""
    begun = Begun(node="node-uid-n1", former="", generation=4, since=NOW)
    world = a_held_world(
        a_roll_out(settled=False, begun=begun if moved else None),
        a_pod(bound, "3", name="new", created=NOW),
        *([] if failed is None else [a_pod(failed, "3", name="left-over", phase="Failed", ready=False)]),
        claim={"deleting_since": NOW, "annotations": {names.OWNER: "c/disrupt/p1"}},
        pdbs={},
    )
    [old] = [uid for uid, pod in world.pods.items() if pod.name == "ledger"]
    planned = {names.PLAN: "p1/1", names.PLANNED_PODS: old}
    following = a_pair("next", "m4", claim={"created": NOW - 60, "annotations": planned})
    world = replace(
        world,
        nodes={**world.nodes, "next": following.node},
        claims={**world.claims, following.claim.name: following.claim},
    )

    placement = place(Index(passed_on(world), PlacementSettings()))

    assert len(placement.new) == (0 if moved else 1)


def test_nobody_asks_where_moves_are_off() -> None:
    world = a_held_world(a_roll_out(), deployments={})

    assert isinstance(choose(world, DisruptionSettings(), never), NothingToDo)
    assert Fleet(world, DisruptionSettings()).movable is None
