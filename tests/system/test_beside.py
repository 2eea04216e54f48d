"""Plays beside each other: a run of the real command on small ones, whose stage is nothing but a word."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CONFTEST = """
from contextlib import asynccontextmanager

import pytest_asyncio
from tests.system import beside

@asynccontextmanager
async def a_stage(folder, server):
    yield folder("stage").name

beside.BEGINNINGS["stage"] = a_stage

@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plays(request, tmp_path_factory):
    found = beside.playing(request.session, tmp_path_factory.mktemp, None)
    yield found
    await found.stop()
"""
PLAYS = """
import asyncio
import pytest
from tests.system.beside import beside

CAME = asyncio.Event()
STAGES = []

@beside
async def test_waits_for_the_last(stage):
    STAGES.append(stage)
    async with asyncio.timeout(60):
        await CAME.wait()

@pytest.mark.parametrize("number", [1, 2])
@beside
async def test_is_wrong_once(stage, number):
    STAGES.append(stage)
    assert number == 1

@beside
async def test_comes(stage):
    CAME.set()
    assert stage not in STAGES, "another's"
"""


def played(folder: Path, *words: str) -> tuple[str, list[str]]:
    """How many passed and failed, and which failed."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_plays.py").write_text(PLAYS)
    settings = (
        "asyncio_mode=auto",
        "asyncio_default_test_loop_scope=session",
        "asyncio_default_fixture_loop_scope=session",
    )
    options = [word for setting in settings for word in ("-o", setting)]
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", *options, "test_plays.py", *words]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()[-1].rpartition(" in ")[0], re.findall(r"^FAILED \S+::(\S+)", done.stdout, re.M)


def test_one_waits_for_another_and_each_test_says_how_its_own_play_ended(tmp_path: Path) -> None:
    assert played(tmp_path) == ("1 failed, 3 passed", ["test_is_wrong_once[2]"])


def test_one_that_is_chosen_is_played_alone(tmp_path: Path) -> None:
    assert played(tmp_path, "-k", "comes") == ("1 passed, 3 deselected", [])
    assert played(tmp_path, "-k", "wrong") == ("1 failed, 1 passed, 2 deselected", ["test_is_wrong_once[2]"])
