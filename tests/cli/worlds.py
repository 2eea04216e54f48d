"""Small simulated worlds that the explaining commands are asked about, and how a command is run in-process."""

import time
from pathlib import Path
from typing import Any

from dovetail.answers.look.sources import Look, look
from dovetail.model.json import Json
from dovetail.settings.settings import Settings, read_settings
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_node_class, a_pool

CLUSTER = "demo"
_CONDITIONS = ("Ready", "ValidationSucceeded", "NodeClassReady")


def a_world(folder: Path, *bodies: Json) -> SimulatedWorld:
    """A world with a NodeClass and these objects. Its pods have been refused by its scheduler."""
    world = SimulatedWorld.create(folder / "world.db")
    world.apply(a_node_class())
    for body in bodies:
        world.apply(body)
    world.player().settle(time.time())
    return world


def a_ready_pool(name: str = "default", taints: list[Json] | None = None, **spec: Any) -> Json:
    """A pool that a worker has found ready."""
    pool = a_pool(name, **spec)
    pool["spec"]["template"]["spec"]["taints"] = taints or []
    moment = "2026-01-01T00:00:00Z"
    pool["status"] = {
        "conditions": [
            {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": moment}
            for kind in _CONDITIONS
        ]
    }
    return pool


def settings_of(world: SimulatedWorld) -> Settings:
    """What the command line would give."""
    return read_settings({}, cluster=CLUSTER, world=world.file)


async def looked(world: SimulatedWorld) -> Look:
    """A look at the world as it is now."""
    return await look(settings_of(world), None)
