"""A world with a clock that stands still until a test moves it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dovetail.adapters.simulator.play.player import Player
from dovetail.wiring.simulated import SimulatedAdapter
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_node_class


@dataclass
class Clock:
    """A moment, moved by hand."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Stage:
    """A world, its clock and its player."""

    world: SimulatedWorld
    clock: Clock
    player: Player
    file: Path

    def settle(self) -> None:
        """Let everything happen that happens at this moment."""
        self.player.settle(self.clock.now)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, stopping wherever something happens."""
        end = self.clock.now + seconds
        due = self.player.settle(self.clock.now)
        while due is not None and due <= end:
            self.clock.now = due
            due = self.player.settle(due)
        self.clock.now = end
        self.player.settle(end)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stage(tmp_path: Path, clock: Clock) -> Iterator[Stage]:
    file = tmp_path / "world.sqlite"
    world = SimulatedWorld.create(file, clock=clock)
    world.apply(a_node_class())
    yield Stage(world, clock, world.player(), file)
    world.close()


@pytest.fixture
def adapter(stage: Stage) -> Iterator[SimulatedAdapter]:
    opened = SimulatedAdapter.open(stage.file, "dovetail/test", stage.clock)
    yield opened
    opened.close()
