"""One takeover: load a state, start the world and a worker, wait until quiet, judge.

The world moves on a thread here; the product runs as a process of its own, as it would. The product is not asked
whether it is done: quiet is seen on the objects, and has to last.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.service import RPCError

from acceptance.adopt.bystanders import Bystanders
from acceptance.adopt.loading import load
from acceptance.adopt.looking import (
    Look,
    allowance,
    disrupted_now,
    is_true,
    look_at,
    unrest,
    without_expiring,
)
from acceptance.adopt.states import State
from acceptance.adopt.verdict import Seen, Story, violations
from dovetail.cli.demo.temporal_server import TemporalServer, stop_process
from dovetail.messages.workflow_ids import caretaker_id, scheduler_id
from dovetail.model import names
from testbed.simulated_world import SimulatedWorld
from worlds.loaded.processes import start_process

LOOK_SECONDS: Final = 0.5
SERVING: Final = "serving cluster"  # the line of a worker that has begun
PATIENCE_SECONDS: Final = 240.0
STILL_SECONDS: Final = 5.0
# A worker that starts decides no disruption for 20 s, and a plan that it makes then waits 15 s for its second look.
STILL_WHERE_CONSOLIDATING: Final = 45.0
EXPIRING_STILL_SECONDS: Final = 1.0  # a pool whose nodes live for 30 s is never quiet for long


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one takeover; `problems` is empty where every outcome came out."""

    id: str
    seconds: float
    problems: tuple[str, ...]


async def take_over(state: State, server: TemporalServer, folder: Path) -> Result:
    """Take one state over, in a folder of its own."""
    folder.mkdir(parents=True)
    cluster = f"adopt-{state.id}"
    began = time.time()
    world, loaded = load(state, folder / "world.db", began)
    before = disrupted_now(look_at(world))
    try:
        async with _worker(cluster, server, folder, _gates(state)) as serving:
            seen = Seen()
            with world.playing():
                await serving()
                started = time.time()
                rest = await _quiet(world, loaded, (started, before, seen))
                last = look_at(world)
        story = Story(state=loaded, began=began, started=started, world=world, seen=seen, last=last)
        problems = [*(f"not quiet after {PATIENCE_SECONDS:.0f} s: {why}" for why in rest), *violations(story)]
    finally:
        world.close()
        await _end_singletons(cluster, server)
    return Result(id=state.id, seconds=time.time() - started, problems=tuple(problems))


async def _quiet(world: SimulatedWorld, state: State, begun: tuple[float, int, Seen]) -> list[str]:
    """Wait until nothing is under way for long enough; what still is when patience ends."""
    started, before, seen = begun
    still, bystanders, since = still_seconds(state), Bystanders(world), time.time()
    while True:
        now = time.time()
        bystanders.move(now)
        look = look_at(world)
        _note(look, before, seen)
        rest = unrest(without_expiring(look, state, now) if expires(state) else look)
        since = now if rest else since
        if now - since >= still:
            return []
        if now - started > PATIENCE_SECONDS:
            return rest or ["it never stayed quiet for long enough"]
        await asyncio.sleep(LOOK_SECONDS)


def _gates(state: State) -> str:
    """As Karpenter has them to have made such NodePools."""
    static = any("replicas" in pool["spec"] for pool in state.every("NodePool"))
    return "StaticCapacity=true,TerminateFirstDrift=true" if static else ""


def still_seconds(state: State) -> float:
    """How long quiet has to last: longer than a decision may take that no object shows yet."""
    pools = [pool["spec"] for pool in state.every("NodePool")]
    if expires(state):
        return EXPIRING_STILL_SECONDS
    consolidating = [(pool.get("disruption") or {}).get("consolidateAfter", "0s") != "Never" for pool in pools]
    return STILL_WHERE_CONSOLIDATING if any(consolidating) else STILL_SECONDS


def expires(state: State) -> bool:
    """Whether the pools' nodes live for a limited time."""
    templates = [pool["spec"]["template"]["spec"] for pool in state.every("NodePool")]
    return any(template.get("expireAfter", "Never") != "Never" for template in templates)


def _note(look: Look, before: int, seen: Seen) -> None:
    """Note what the last look would not show."""
    seen.drifted |= {c["metadata"]["name"] for c in look.claims if is_true(c, names.DRIFTED)}
    now, allowed = disrupted_now(look), max(allowance(look), before)
    if now > allowed and look.pools:
        words = f"{now} nodes were disrupted at once where {allowed} are allowed"
        if words not in seen.over_budget:
            seen.over_budget.append(words)


@asynccontextmanager
async def _worker(
    cluster: str, server: TemporalServer, folder: Path, gates: str
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A worker of the product over that world, as a process; and how to wait until it serves."""
    command = [
        sys.executable,
        "-m",
        "dovetail.cli.main",
        "worker",
        "--cluster",
        cluster,
        "--world",
        str(folder / "world.db"),
    ]
    environment = {**os.environ, "TEMPORAL_ADDRESS": server.address, "FEATURE_GATES": gates}
    with (folder / "worker.log").open("ab") as log:
        process = start_process(command, environment, log)

    async def serving() -> None:
        begun = time.monotonic()
        while SERVING not in (folder / "worker.log").read_text():
            if process.poll() is not None or time.monotonic() - begun > PATIENCE_SECONDS:
                raise RuntimeError(f"the worker does not serve; see {folder / 'worker.log'}")
            await asyncio.sleep(LOOK_SECONDS)

    try:
        yield serving
    finally:
        await asyncio.to_thread(stop_process, process)


async def _end_singletons(cluster: str, server: TemporalServer) -> None:
    """No worker serves that cluster any more; what still runs for it would only load the server."""
    client = await server.client()
    for identity in (scheduler_id(cluster), caretaker_id(cluster)):
        try:
            await client.get_workflow_handle(identity).terminate("the takeover is over")
        except RPCError as error:
            print(f"{identity}: {error}", file=sys.stderr)  # it never started; the verdict says what came of that
