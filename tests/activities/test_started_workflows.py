"""What a step starts is found by the same attributes as what a workflow starts, the cluster's name first of all."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from dovetail.activities.interruptions.direct_answers import DirectAnswers
from dovetail.activities.interruptions.watch_interruptions import WatchInterruptions
from dovetail.activities.orders.carry_out_orders import CarryOutOrders, OrderPorts
from dovetail.messages.interruptions import Interruption
from dovetail.messages.orders import StartOwner, StartRelease, TakeOffMark
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_types import LAUNCH_NODE, TERMINATE_NODE
from tests.lifecycle.objects import a_joined_claim
from worlds.fakes import FakeClaims, World

CLAIM = ClaimRef(name="pool-1", uid="uid-1", pool="pool")


class Temporal:
    """Remembers what is started."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []

    async def start_workflow(self, *_: Any, **options: Any) -> None:
        pairs = options["search_attributes"]
        self.started.append({pair.key.name.removeprefix("Dovetail"): pair.value for pair in pairs})

    def get_workflow_handle(self, identity: str) -> Any:
        raise AssertionError(f"{identity} is another cluster's: whether it runs says nothing here")


class Marking:
    """Takes every mark off."""

    def __init__(self) -> None:
        self.unmarked: list[str] = []

    async def unmark_nodes(self, request: Any) -> str:
        self.unmarked.append(request.owner)
        return "unmarked"


def caretaking(marking: Any = None, claims: Any = None) -> CarryOutOrders:
    nobody: Any = None
    return CarryOutOrders("mine", OrderPorts(claims=claims, cloud=nobody, fleet=nobody, again={}), marking, lambda: 0.0)


async def started(step: Any, order: object) -> list[dict[str, Any]]:
    temporal: Any = Temporal()
    client: Client = temporal
    await ActivityEnvironment(client=client).run(step, order)
    found: list[dict[str, Any]] = temporal.started
    return found


@pytest.mark.parametrize(("kind", "phase"), [(LAUNCH_NODE, "launching"), (TERMINATE_NODE, "draining")])
async def test_an_owner_that_the_caretaker_starts_has_all_attributes(kind: str, phase: str) -> None:
    world = World()
    world.put(replace(a_joined_claim(), uid=CLAIM.uid, deleting_since=1.0 if kind == TERMINATE_NODE else None))
    order = StartOwner(claim=CLAIM, workflow_type=kind, node="node-1")

    assert await started(caretaking(claims=FakeClaims(world)).start_owner, order) == [
        {"Cluster": "mine", "NodePool": "pool", "NodeClaim": "pool-1", "Node": "node-1", "Phase": phase}
    ]


async def test_a_release_is_found_by_its_node() -> None:
    order = StartRelease(node="node-1", uid="n-1")

    assert await started(caretaking().start_release, order) == [{"Cluster": "mine", "Node": "node-1"}]


async def test_an_answer_to_a_warning_is_found_by_its_reason() -> None:
    warning = Interruption(id="w", reason="spot_interrupted", instances=("i-1",), at=0.0)
    nobody: Any = None
    answering: Any = SimpleNamespace(ours=list)
    watching = WatchInterruptions(
        "mine",
        nobody,
        lambda: 0.0,
        DirectAnswers(answering, nobody, lambda: 0.0, lambda: False, why_unfit=str),
        client=activity.client,
    )

    assert await started(watching._start, [warning]) == [{"Cluster": "mine", "Reason": "spot_interrupted"}]


async def test_a_mark_that_names_another_clusters_workflow_is_taken_off() -> None:
    """Copied with its claim from a backup of another cluster, whose disruption may well run there."""
    marking = Marking()
    order = TakeOffMark(claim=CLAIM, owner="theirs/disrupt/plan-1")

    await started(caretaking(marking).take_off_mark, order)

    assert marking.unmarked == ["theirs/disrupt/plan-1"]
