"""Small simulated worlds that the explaining commands are asked about, and how a command is run in-process."""

import time
from pathlib import Path
from typing import Any

from dovetail.answers.change.answer import ChangeAnswer
from dovetail.answers.change.documents import called, text_of
from dovetail.answers.look.sources import Look, look
from dovetail.answers.questions.asking import Answered, Asked, Source
from dovetail.answers.questions.table import question
from dovetail.cli.local import LocalSource
from dovetail.model.values.json import Json
from dovetail.settings.settings import Settings, read_settings
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_node_class
from worlds.manifests import pool_manifest

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
    pool = pool_manifest(name, **spec)
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


async def asked_of(source: Source, route: str, name: str = "", **words: str) -> Answered:
    """A question, put as a command puts it."""
    return await question(route)(source, Asked(name=name, words=tuple(sorted(words.items()))))


async def answered_here(settings: Settings, route: str, name: str = "", **words: str) -> Any:
    """The answer of a command that asks no worker."""
    return (await asked_of(LocalSource(settings), route, name, **words)).answer


async def planned_change(settings: Settings, file: Path, snapshot: Path | None, ahead: float) -> ChangeAnswer:
    """The answer of `plan -f`."""
    words = {"file": text_of(file), "called": called(file), "for": f"{ahead:.0f}s"}
    answer = (await asked_of(LocalSource(settings, snapshot), "plan", **words)).answer
    assert isinstance(answer, ChangeAnswer)
    return answer
