"""`make demo CHANGE=1`: its story asserts itself what it tells."""

from pathlib import Path

import pytest

from dovetail.cli.demo.command import demo

pytestmark = [pytest.mark.temporal, pytest.mark.soak]


async def test_the_story_of_a_change_holds(tmp_path: Path) -> None:
    await demo(tmp_path / "demo", change=True)
