"""Several processes on one file: writers, a player, and a reader that follows them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dovetail.adapters.simulator.api_server.store import Store
from dovetail.adapters.simulator.play.player import Player
from dovetail.wiring.simulated import SimulatedAdapter
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_deployment, ready_pods
from worlds.manifests import node_manifest

ROOT = Path(__file__).parents[3]
WRITERS = ("a", "b", "c")
ROUNDS = 150
PATIENCE_SECONDS = 60.0


def until(look: Callable[[], bool]) -> bool:
    """Whether it becomes true in time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not look() and time.monotonic() < deadline:
        time.sleep(0.02)
    return look()


def run(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "world.sqlite"
    SimulatedWorld.create(path).close()
    return path


@pytest.mark.slow
async def test_three_processes_write_at_once_without_an_error_and_a_watch_sees_all_of_it(file: Path) -> None:
    world = SimulatedWorld.open(file)
    world.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "shared", "labels": {"x": "y"}}, "spec": {}})
    last = world.ledger()[-1].id
    adapter = SimulatedAdapter.open(file)

    writers = [run("-m", "tests.adapters.simulator.writer", str(file), name, str(ROUNDS)) for name in WRITERS]
    ends = [await asyncio.to_thread(writer.communicate, timeout=60) for writer in writers]

    assert [(writer.returncode, err) for writer, (_, err) in zip(writers, ends, strict=True)] == [(0, "")] * 3
    entries = world.ledger(last)
    assert {e.outcome for e in entries} == {"ok"}
    assert len(entries) == len(WRITERS) * ROUNDS * 3
    names = {f"{name}-{index}" for name in WRITERS for index in range(ROUNDS)} | {"shared"}
    assert await asyncio.to_thread(until, lambda: set(adapter.view.snapshot().nodes) == names)
    assert {n.labels.get("round") for n in adapter.view.snapshot().nodes.values()} == {
        None,
        *(str(index) for index in range(ROUNDS)),
    }
    adapter.close()
    world.close()


def test_the_player_as_a_process_moves_the_world_and_ends_when_asked(file: Path) -> None:
    world = SimulatedWorld.open(file)
    world.apply(node_manifest())
    world.apply(a_deployment(3))

    player = run("-m", "dovetail.adapters.simulator.play", str(file), "--speed", "20")
    moved = until(lambda: len(ready_pods(world)) == 3)
    player.send_signal(signal.SIGTERM)
    _, errors = player.communicate(timeout=60)

    assert moved
    assert (player.returncode, errors) == (0, "")
    assert world.settings().speed == 20
    world.close()


# The lock that Event.wait holds for a moment of each of its turns.
ENDED_IN_A_WAIT = """
import os, signal
from dovetail.adapters.simulator.play.__main__ import set_at_end
stop = set_at_end()
with stop._cond:
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
        pass
assert stop.wait(30)
"""


def test_a_player_that_is_asked_to_end_while_it_begins_to_wait_ends() -> None:
    player = run("-c", ENDED_IN_A_WAIT)
    try:
        _, errors = player.communicate(timeout=PATIENCE_SECONDS * 2)
    finally:
        player.kill()

    assert (player.returncode, errors) == (0, "")


def test_the_player_ends_with_the_process_that_started_it(file: Path) -> None:
    play = "['-m', 'dovetail.adapters.simulator.play', sys.argv[1], '--parent', str(os.getpid())]"

    starter = run("-c", f"import os, subprocess, sys; subprocess.Popen([sys.executable, *{play}])", str(file))

    # The player has inherited the starter's output: reading it ends only when both have ended.
    starter.communicate(timeout=PATIENCE_SECONDS)
    assert starter.returncode == 0


def test_a_player_without_a_world_says_so(tmp_path: Path) -> None:
    player = run("-m", "dovetail.adapters.simulator.play", str(tmp_path / "none"))

    _, errors = player.communicate(timeout=60)

    assert player.returncode == 2
    assert "there is no world" in errors


def test_two_players_on_one_world_do_no_harm(file: Path) -> None:
    world = SimulatedWorld.open(file)
    world.apply(node_manifest())
    world.apply(a_deployment(4))
    with world.playing(), world.playing():
        grown = until(lambda: len(ready_pods(world)) == 4)
        world.scale("web", 1)
        shrunk = until(lambda: len(world.objects("Pod")) == 1)

    assert (grown, shrunk) == (True, True)
    made = [e for e in world.ledger() if e.operation == "cluster:create" and e.kind == "Pod"]
    assert len(made) == 4
    world.close()


def test_a_player_that_is_killed_leaves_a_world_that_the_next_one_moves_on(file: Path) -> None:
    world = SimulatedWorld.open(file)
    world.apply(node_manifest(cpu="64"))
    player = run("-m", "dovetail.adapters.simulator.play", str(file), "--speed", "20")
    world.apply(a_deployment(40))
    until(lambda: len(world.objects("Pod")) > 0)
    os.kill(player.pid, signal.SIGKILL)
    player.communicate(timeout=60)

    store = Store(file)
    survivor, moment = Player(store), time.time() + 60
    survivor.settle(moment)
    store.close()

    assert len(ready_pods(world)) == 40
    world.close()
