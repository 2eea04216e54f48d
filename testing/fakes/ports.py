"""The ports that the steps get in such a world."""

import time
from dataclasses import replace
from typing import Any

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkPorts
from dovetail.activities.launch.await_registered_and_initialized import JoinPorts
from dovetail.activities.termination.drain_node import EvictionLimits
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.owner_turns import OwnerTurns
from dovetail.notices.notice import Notice
from testing.fakes.lookups import FakeLookups
from testing.fakes.nodes import FakeClaims, FakeNodes
from testing.fakes.pods import FakePods
from testing.fakes.world import World


class FakeNotices:
    """Events."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def publish(self, *notices: Notice) -> None:
        self.world.notices += notices


def unlimited(pace: EvictionPace) -> EvictionLimits:
    """No pod waits for others of its owner."""
    return EvictionLimits(pace=pace, turns=OwnerTurns(0.0, tuple, time.time))


def mark_ports(world: World, **others: Any) -> MarkPorts:
    """The ports of the steps that mark in this world, some of them replaced."""
    made = MarkPorts(claims=FakeClaims(world), nodes=FakeNodes(world), pods=FakePods(world), lookups=FakeLookups(world))
    return replace(made, **others)


def join_ports(world: World, **others: Any) -> JoinPorts:
    """The ports of the wait for a node in this world."""
    made = JoinPorts(lookups=FakeLookups(world), claims=FakeClaims(world), nodes=FakeNodes(world))
    return replace(made, **others)
