"""One of two workers has another key under the same name: it can read nothing that the others write, nor they it."""

import asyncio
import base64
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.storm.life import storm
from worlds.cluster.ground import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

BEGUN_SECONDS: Final = 30.0
BESIDE_SECONDS: Final = 120.0
ENDED_SECONDS: Final = 120.0


def folder_of_keys(folder: Path) -> Path:
    """A key of its own, called as in every such folder."""
    folder.mkdir(exist_ok=True)
    (folder / "first").write_bytes(base64.b64encode(os.urandom(32)))
    (folder / "current").write_text("first")
    return folder


def start_with(ground: Ground, keys: Path) -> None:
    """One more worker, with these keys."""
    codec = {
        "DOVETAIL_PAYLOAD_CODEC": "dovetail.codecs.aes_gcm:from_folder",
        "DOVETAIL_CODEC_KEYS": str(keys),
    }
    environment = {**ground.everything.environment, **codec}
    ground.workers.append(replace(ground.everything, environment=environment).start_worker())


@pytest.fixture
async def keyed(ground: Ground) -> AsyncIterator[Path]:
    """A worker with a key, and a Temporal that has nothing from before; those that follow have no key."""
    keys = folder_of_keys(ground.everything.folder / "keys")
    ground.kill_workers()
    await ground.lose_database()
    start_with(ground, keys)
    yield keys
    ground.kill_workers()
    await ground.lose_database()
    ground.ensure_workers()


async def test_a_worker_that_is_started_with_another_key_of_the_same_name_ends(ground: Ground, keyed: Path) -> None:
    async with storm(ground, seed=284, patience=300):
        await asyncio.sleep(BEGUN_SECONDS)  # work has begun, with the right key
        start_with(ground, folder_of_keys(ground.everything.folder / "wrong-keys"))
        right, wrong = ground.workers[-2:]
        async with asyncio.timeout(ENDED_SECONDS):
            assert await asyncio.to_thread(wrong.wait) == 1
        ground.workers.remove(wrong)
        assert right.poll() is None
    said = (ground.everything.folder / "worker.log").read_text()
    assert "cannot decode what Temporal keeps: key 'first' is another one" in said


async def test_the_key_of_a_running_worker_becomes_another(ground: Ground, keyed: Path) -> None:
    """A Secret that was written over in one place: the other worker goes on with the right key."""
    copy = ground.everything.folder / "copied-keys"
    shutil.copytree(keyed, copy, dirs_exist_ok=True)
    start_with(ground, copy)
    async with storm(ground, seed=285, patience=BESIDE_SECONDS + 300):
        await asyncio.sleep(BEGUN_SECONDS)
        folder_of_keys(copy)
        await asyncio.sleep(BESIDE_SECONDS)
        wrong = ground.workers.pop()
        print(f"  the worker with the wrong key {'lives' if wrong.poll() is None else f'ended with {wrong.poll()}'}")
        wrong.kill()
        wrong.wait()
