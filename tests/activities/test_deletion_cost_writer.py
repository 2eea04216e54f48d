"""Deletion costs are written once a minute, beside the decision; what changes or fails waits for the next turn."""

import math
from dataclasses import replace

from dovetail.activities.disruption.deletion_cost_writer import EVERY_SECONDS, DeletionCostWriter
from dovetail.ports.failures import Conflict, Forbidden
from tests.disruption.test_deletion_costs import SETTINGS, on
from worlds.disruption import a_pair, a_pool, a_world
from worlds.fakes import FakePods, World


async def test_a_turn_writes_what_differs_and_the_next_begins_a_minute_later() -> None:
    world = World()
    pods = FakePods(world)
    writer = DeletionCostWriter(pods, SETTINGS, world.now)
    one, other, gone = on("n1"), on("n1"), on("n1")
    pods.fails[other.uid] = Conflict(other.key, "it has changed")
    pods.fails[gone.uid] = Forbidden(gone.key, "no right to patch pods")
    snapshot = a_world([a_pair("n1")], [one, other, gone], pools=[a_pool()])

    began = world.clock
    for again in (math.inf, began + EVERY_SECONDS, began + EVERY_SECONDS):
        assert writer.write_beside(snapshot) == again, "what comes before a turn is due is looked at again then"
        assert writer.turn is not None
        await writer.turn
    first = writer.turn

    assert sorted(world.ledger) == sorted(f"annotate {pod.name} -1" for pod in (one, other, gone))
    world.clock += EVERY_SECONDS
    writer.write_beside(replace(snapshot, now=world.clock))
    assert writer.turn is not None and writer.turn is not first
    await writer.turn
    assert len(world.ledger) == 6
