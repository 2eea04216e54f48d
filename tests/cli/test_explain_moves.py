"""`dovetail explain node` and `status`: what is said of pods that a roll-out of their Deployment moves, or could."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.answers.explain.explain_node import held_pods
from dovetail.answers.status.moves import blockers_of
from dovetail.model import names
from dovetail.model.objects.workloads import Begun, Failed, PodDisruptionBudget
from dovetail.model.pods import LabelSelector
from dovetail.model.snapshot import Snapshot
from dovetail.placement.pdbs import pdbs_of
from tests.lifecycle.objects import a_joined_node
from tests.model.move_worlds import NODE, NOW, a_moved_pod, a_roll_out, a_world

BUDGET = PodDisruptionBudget(name="ledger", namespace="apps", selector=LabelSelector(), min_available="1")


def of(**roll_out: Any) -> Snapshot:
    world = a_world(a_roll_out(**roll_out), pdbs={"apps/ledger": BUDGET}, nodes={"node-1": a_joined_node()})
    return replace(world, pods={"uid-ledger-1": a_moved_pod()})


def said(world: Snapshot) -> list[tuple[str, str]]:
    return [(held.by, held.detail) for held in held_pods(world, list(world.pods.values()))]


PDB = ("PodDisruptionBudget apps/ledger", "allows 0 disruptions now")


@pytest.mark.parametrize(
    ("roll_out", "words"),
    [
        (
            {"wish": None},
            [
                PDB,
                (
                    names.MOVE,
                    (
                        "one replica: `kubectl annotate -n apps deployment ledger dovetail.sh/move=restart` would let "
                        "it go without downtime"
                    ),
                ),
            ],
        ),
        ({"wish": None, "replicas": 2}, [PDB]),
        ({}, [("a move", "it is rolled out anew when its node leaves, and no PDB is asked")]),
        (
            {"surges": False},
            [
                PDB,
                (
                    names.MOVE,
                    (
                        "it cannot be moved (Strategy): its Deployment's strategy makes no pod available before it "
                        "takes one away"
                    ),
                ),
            ],
        ),
        ({"wish": "hold"}, [PDB, (names.MOVE, "dovetail.sh/move says 'hold'")]),
        (
            {"failed": Failed(generation=4, at=NOW - 60)},
            [PDB, (names.MOVE, "moving it failed at 2023-11-14T22:12:20Z and is tried again 15 min later")],
        ),
        (
            {"begun": Begun(node=NODE, former="", generation=4, since=NOW), "settled": False},
            [("a move", "it is being moved")],
        ),
    ],
)
def test_a_pod_that_is_moved_or_not_is_explained(roll_out: dict[str, Any], words: list[tuple[str, str]]) -> None:
    """TRM-44."""
    assert said(of(**roll_out)) == words


def test_status_names_a_move_among_what_a_drain_waits_for() -> None:
    begun = Begun(node=NODE, former="", generation=4, since=NOW)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"begun": begun, "settled": False}, ["move of apps/ledger-1"]),
        ({"wish": "hold"}, ["PDB apps/ledger", "apps/ledger-1: dovetail.sh/move says 'hold'"]),
        ({}, []),
    ]
    for roll_out, words in cases:
        world = of(**roll_out)
        assert list(blockers_of(list(world.pods.values()), pdbs_of(world), NOW)) == words
