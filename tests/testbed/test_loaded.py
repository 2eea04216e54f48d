"""A copy of the process that has loaded the product does what the command itself does, and is killed as any process."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.wiring.world import SIMULATED_PLAYER
from testbed.simulated_world import SimulatedWorld
from worlds.loaded.processes import Copied, Server, is_loaded, run_command, start_process
from worlds.stage.stage import FAST

DOVETAIL = [sys.executable, "-m", "dovetail.cli.main"]


@pytest.mark.parametrize("arguments", [["--version"], ["nodes", "--help"], ["nonsense"], ["status"]])
async def test_a_command_says_what_it_says_when_it_is_started_alone(tmp_path: Path, arguments: list[str]) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DOVETAIL_WORLD": str(tmp_path / "none")}
    command = [*DOVETAIL, *arguments]
    alone = await asyncio.to_thread(subprocess.run, command, env=environment, capture_output=True, check=False)

    assert await run_command(command, environment) == (alone.returncode, alone.stdout, alone.stderr)


def test_a_killed_copy_has_ended_by_that_signal_and_the_next_one_starts(tmp_path: Path) -> None:
    world = SimulatedWorld.create(tmp_path / "world.db", FAST)
    with (tmp_path / "log").open("ab") as log:
        players = [start_process([sys.executable, "-m", SIMULATED_PLAYER, str(world.file)], {}, log) for _ in range(2)]
    for player in players:
        assert isinstance(player, Copied)
        assert player.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            player.wait(0.01)
        player.kill()
        player.wait(60)
    world.close()

    assert [player.returncode for player in players] == [-signal.SIGKILL] * 2


def test_it_ends_with_the_process_that_it_serves() -> None:
    server = Server()
    server.stop()

    assert server.process.returncode == 0


def test_a_program_that_changes_the_product_runs_in_a_copy_and_changes_no_other(tmp_path: Path) -> None:
    code = (
        "import dovetail; assert not hasattr(dovetail, 'x'); dovetail.x = 1\nfrom dovetail.cli.main import run\nrun()"
    )
    command = [sys.executable, "-c", code, "--version"]
    with (tmp_path / "log").open("ab") as log:
        processes = [start_process(command, {}, log) for _ in range(2)]

    assert [process.wait(60) for process in processes] == [0, 0]
    assert all(isinstance(process, Copied) for process in processes)
    version = subprocess.run(command, capture_output=True, check=True).stdout
    assert (tmp_path / "log").read_bytes() == 2 * version != b""


def test_what_it_does_not_know_is_started_as_it_is(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os; print(os.environ)"]
    with (tmp_path / "log").open("ab") as log:
        process = start_process(command, {"ONLY": "this"}, log)
    process.wait(60)

    assert not isinstance(process, Copied)
    assert is_loaded(DOVETAIL, {})
    assert not is_loaded([sys.executable, "-I", *DOVETAIL[1:]], {})
    assert not is_loaded(DOVETAIL, {"PYTHONIOENCODING": "ascii"})
    assert "'ONLY': 'this'" in (tmp_path / "log").read_text()
