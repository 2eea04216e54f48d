"""Tests of whole simulated systems that are played beside each other: each has a cluster of its own and mostly waits.

`@beside` makes a test of a play. The first one that is asked for begins all that this session has, AT_ONCE at a time,
the longest first; each test then waits for its own, and `-s` says how long it took. One that is chosen alone is played
alone. The name of a play's first parameter says on what stage it begins (BEGINNINGS); what others it has, pytest's
parametrize gives.
"""

import inspect
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from inspect import Parameter
from pathlib import Path
from typing import Any, Final

import pytest

from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.stage.running import SideBySide, own_stage, shared_stage
from worlds.stage.stage import Stage, has_condition, node_pool

Play = Callable[..., Awaitable[None]]
Disrupted = tuple[Stage, Json]
Folder = Callable[[str], Path]  # a new one of that name

AT_ONCE: Final = 5
LONGEST: Final = "test_versions.py"  # begun last it would be waited for
PLAY: Final = "play"


def beside(play: Play) -> Callable[..., Awaitable[None]]:
    """The test that waits for this play."""

    async def test(request: pytest.FixtureRequest, plays: SideBySide[float], **_: Any) -> None:
        seconds = await plays.outcome(request.node.nodeid, [*plays_of(request.session)])
        print(f"{request.node.name}: {seconds:.0f} s")

    _, *given = inspect.signature(play).parameters.values()
    ours = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("request", "plays")]
    test.__name__ = test.__qualname__ = play.__name__
    test.__doc__, test.__module__ = play.__doc__, play.__module__
    setattr(test, "__signature__", inspect.Signature([*ours, *given]))  # noqa: B010
    setattr(test, PLAY, play)
    return test


def plays_of(session: pytest.Session) -> Mapping[str, pytest.Function]:
    """The tests of this session that are plays, in the order in which they begin."""
    found = [item for item in session.items if isinstance(item, pytest.Function) and hasattr(item.obj, PLAY)]
    return {item.nodeid: item for item in sorted(found, key=lambda item: item.path.name != LONGEST)}


def playing(session: pytest.Session, folder: Folder, server: TemporalServer) -> SideBySide[float]:
    """Plays by the name of their test, and the seconds that each took."""
    tests = plays_of(session)

    async def played(name: str) -> float:
        play: Play = getattr(tests[name].obj, PLAY)
        begun, first = time.monotonic(), next(iter(inspect.signature(play).parameters))
        params = tests[name].callspec.params if hasattr(tests[name], "callspec") else {}
        async with BEGINNINGS[first](folder, server) as beginning:
            await play(beginning, **params)
        return time.monotonic() - begun

    return SideBySide(played, AT_ONCE)


@asynccontextmanager
async def a_stage(folder: Folder, server: TemporalServer) -> AsyncIterator[Stage]:
    """On the session's Temporal server; no worker runs yet."""
    path = folder("stage")
    stage = shared_stage(path, path.name, server)
    try:
        yield stage
    finally:
        await stage.close()


@asynccontextmanager
async def alone(folder: Folder, _: TemporalServer) -> AsyncIterator[Stage]:
    """With a Temporal server of its own, which may be taken away."""
    path = folder("alone")
    stage = await own_stage(path, path.name)
    try:
        yield stage
    finally:
        with suppress(ProcessLookupError):
            stage.own_temporal.process.send_signal(signal.SIGCONT)
        await stage.close()


@asynccontextmanager
async def settled(folder: Folder, server: TemporalServer) -> AsyncIterator[Stage]:
    """With a worker and a node on which a pod runs."""
    async with a_stage(folder, server) as stage:
        await a_settled_node(stage)
        yield stage


@asynccontextmanager
async def disrupted(folder: Folder, server: TemporalServer) -> AsyncIterator[Disrupted]:
    """A drifted node is marked and waits for a replacement that never joins; with its claim."""
    async with a_stage(folder, server) as stage:
        yield stage, await a_disruption_that_waits(stage)


async def a_settled_node(stage: Stage) -> None:
    """A worker, a pod, a node."""
    stage.start_worker()
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")


async def a_disruption_that_waits(stage: Stage) -> Json:
    """A node has drifted and its replacement never joins: the disruption stands before its delete. The marked claim."""
    await a_settled_node(stage)
    stage.world.never_join()
    pool = node_pool(["c-2x-amd64-linux"])
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)
    return await stage.until(lambda: _marked(stage), 120, "the drifted node is marked and its replacement launched")


def _marked(stage: Stage) -> Json | None:
    """A marked claim whose replacement stands beside it."""
    claims = stage.claims()
    owned = [c for c in claims if names.OWNER in (c["metadata"].get("annotations") or {})]
    replaced = any(has_condition(c, names.LAUNCHED) and c not in owned for c in claims)
    return owned[0] if owned and replaced and stage.tainted() else None


BEGINNINGS: Final[Mapping[str, Callable[[Folder, TemporalServer], AbstractAsyncContextManager[Any]]]] = {
    "stage": a_stage,
    "alone": alone,
    "settled": settled,
    "disrupted": disrupted,
}
