"""A drill that passes says something only if it fails where a version breaks what is in flight."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.upgrade.crews import Version, all_at_once
from tests.upgrade.play import OLD, changes, versions
from tests.upgrade.previous import installed, named
from tests.upgrade.scenes import DETACHING, DRAINING, JOINING, TAINTING, TERMINATING
from tests.upgrade.simulated import SimulatedFlight
from worlds.stage.stage import Stage

pytestmark = [pytest.mark.temporal, pytest.mark.soak]

# Volumes are waited for before the pods leave: every termination that has come as far as its drain replays otherwise.
FILE = "workflows/terminate_node.py"
DRAINS = "            Draining.drain_node, departure,"
DETACHES = "            Detaching.await_detached, departure,"


def spoiled(python: Path, folder: Path) -> Version:
    """The version of that environment, with one workflow that carries out its steps in another order."""
    environment = folder / "spoiled"
    shutil.copytree(python.parents[1], environment, symlinks=True)
    [file] = environment.glob(f"lib/python3*/site-packages/dovetail/{FILE}")
    text = file.read_text()
    assert text.count(DRAINS) == 1 and text.count(DETACHES) == 1
    before, between, after = text.partition(DRAINS)[0], *text.partition(DRAINS)[2].split(DETACHES)
    file.write_text(f"{before}{DETACHES}{between}{DRAINS}{after}")
    return Version(name="spoiled", command=(str(environment / "bin" / "python"), "-I", "-m", "dovetail.cli.main"))


async def test_a_version_that_carries_out_steps_in_another_order_is_noticed(stage: Stage) -> None:
    python = await asyncio.to_thread(installed, named())
    legs = [versions(python)[OLD], await asyncio.to_thread(spoiled, python, stage.folder)]

    played = await changes(SimulatedFlight(stage), "spoiled", all_at_once, legs)

    assert {DRAINING.pool, DETACHING.pool, TERMINATING.pool} <= set(played.wrong)
    assert not {JOINING.pool, TAINTING.pool} & set(played.wrong)
