"""A worker over a simulated world to which something has happened, asked as a person asks it: by the command line."""

import asyncio
import contextlib
import io
import json
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from dovetail.cli.main import main
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from dovetail.wiring.world import open_world
from dovetail.worker.http_server import Endpoint
from testbed.simulated_world import SimulatedWorld
from tests.cli.test_troubles import Stage, a_state
from tests.cli.worlds import a_world, settings_of


@dataclass(frozen=True, slots=True)
class Asks:
    """A command, the words that must be in its answer, those that must not, and its exit code."""

    command: str
    says: tuple[str, ...]
    never: tuple[str, ...] = ()
    code: int = 0

    @property
    def typed(self) -> list[str]:
        return shlex.split(self.command)

    def faults(self, code: int, text: str) -> list[str]:
        """What is wrong with the answer; how it is wrapped does not matter."""
        said = " ".join(text.split())
        found = [f"does not say: {words}" for words in self.says if words not in said]
        found += [f"says: {words}" for words in self.never if words in said]
        return found + ([f"exit code {code}, not {self.code}"] if code != self.code else [])


async def answered(asks: Asks, address: str) -> tuple[int, str]:
    """The exit code of the command, and all that it said. One at a time: they write where this process writes."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = await asyncio.to_thread(main, [*asks.typed, "--url", address])
    return code, said.getvalue()


Happens = Callable[[Stage], None]
Ends = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What stands in the cluster, what has happened to the worker, and what it must say: by its commands, and, where
    `page` has words, by the page as well, which has none of `page_never`; `after` is asked once `ends` has come
    about."""

    name: str
    objects: tuple[Json, ...] = ()
    deletes: tuple[tuple[str, str], ...] = ()  # kind and name: deleted, and held by their finalizers
    later: float = 0.0  # seconds that have passed since
    happens: Happens | None = None
    away: bool = False  # Temporal has not answered for longer than a blip
    asks: tuple[Asks, ...]
    page: tuple[str, ...] = ()
    page_never: tuple[str, ...] = ()
    ends: Ends | None = None
    after: tuple[Asks, ...] = ()


JUST_NOW: Final = "{just now}"  # in an object: when its situation is played, which may be long after the table was read
ITS_UID: Final = "{uid}"  # in an object: that of the pod lone, which the simulated API server has given


def dated(body: Json, uid: str = "") -> Json:
    text = json.dumps(body).replace(JUST_NOW, format_time(time.time()))
    found: Json = json.loads(text.replace(ITS_UID, uid))
    return found


def _with_uids(simulated: SimulatedWorld, objects: tuple[Json, ...]) -> None:
    """Those that name the pod lone, which must stand before."""
    uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in simulated.objects("Pod")}
    for body in objects:
        simulated.apply(dated(body, uids["lone"]))


@dataclass(frozen=True, slots=True)
class Played:
    """The address at which the worker answers, and how what has happened ends."""

    address: str
    ends: Callable[[], Awaitable[None]]


@asynccontextmanager
async def played(situation: Situation, folder: Path) -> AsyncIterator[Played]:
    """The situation has come about."""
    named = tuple(body for body in situation.objects if ITS_UID in json.dumps(body))
    simulated = a_world(folder, *(dated(body) for body in situation.objects if body not in named))
    _with_uids(simulated, named)
    for each in situation.deletes:
        simulated.delete(*each)
    world = await open_world(settings_of(simulated))
    view: Any = world.view
    view._clock = lambda: time.time() + situation.later
    stage = Stage(world, settings_of(simulated))
    stage.server.scheduler = lambda: a_state(world)
    if situation.happens is not None:
        situation.happens(stage)
    if situation.away:
        await stage.goes_away()
    endpoint = Endpoint(host="127.0.0.1", port=0, routes={}, pages={"/api/v1/": stage.api.reply})
    await endpoint.start()
    assert endpoint.server is not None
    try:
        address = f"http://127.0.0.1:{endpoint.server.sockets[0].getsockname()[1]}"
        yield Played(address, partial(situation.ends or _nothing, stage))
    finally:
        await endpoint.stop()
        await world.close()


async def _nothing(stage: Stage) -> None:
    return None


# What happens, and how it ends


def scheduler_silent(stage: Stage) -> None:
    """It is known not to answer, so that nobody waits for it."""
    stage.server.scheduler = lambda: None
    stage.source._unanswered = "the Scheduler could not be asked (no worker answers)"


async def scheduler_back(stage: Stage) -> None:
    stage.server.scheduler = lambda: a_state(stage.world)


async def temporal_back(stage: Stage) -> None:
    """It was looked for every second."""
    await scheduler_back(stage)
    stage.server.hangs = False
    await stage.presence.look()


async def step_done(stage: Stage) -> None:
    stage.fails.clear()


def step_fails(stage: Stage) -> None:
    stage.fails.append("launch_instance of demo/claim/x has failed 4 times in a row: 403")


def watch_broken(*kinds: str) -> Happens:
    """Of these kinds; of all where none is named. They had been seen before."""

    def happens(stage: Stage) -> None:
        view: Any = stage.world.view
        view._problem = lambda kind: f"{kind}: the watch is broken: 503" if not kinds or kind in kinds else ""
        view.silent_for = lambda _: 95.0
        stage.source._saw_all = True

    return happens


async def watch_whole(stage: Stage) -> None:
    view: Any = stage.world.view
    view._problem, view.silent_for = (lambda _: ""), (lambda _: 0.0)


async def sold_again(stage: Stage) -> None:
    stage.source.opened = replace(stage.source.opened, catalogues=stage.world.catalogues)


def sold_out(stage: Stage) -> None:
    """The cloud has run out of everything, for an hour by now and for two and a half minutes more."""
    stage.source.opened = replace(stage.world, catalogues=_SoldOut(stage.world.catalogues))


def a_worker_alone(stage: Stage) -> None:
    """Of two pods of one ReplicaSet the other one is not ready."""
    stage.source.settings = stage.source.settings.model_copy(update={"namespace": "dovetail", "pod": "worker-0"})


class _SoldOut:
    def __init__(self, catalogues: Any) -> None:
        self._catalogues = catalogues

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalogues, name)

    async def catalogue(self, pool: NodePool) -> Catalogue:
        found: Catalogue = await self._catalogues.catalogue(pool)
        until = time.time() + 150.0

        def short(each: Any) -> Any:
            return replace(each, available=False, short_since=until - 3750.0, short_until=until)

        return replace(
            found, types=tuple(replace(t, offerings=tuple(short(o) for o in t.offerings)) for t in found.types)
        )
