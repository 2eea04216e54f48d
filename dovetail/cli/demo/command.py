"""`dovetail demo`: play the story on the embedded stage, in a fresh folder."""

import shutil
from pathlib import Path

from dovetail.cli.demo.embedded_stage import EmbeddedStage
from dovetail.cli.demo.story import Story
from dovetail.cli.output import say


async def demo(folder: Path) -> None:
    """Start, play, stop. Raises where anything that the story asserts did not hold."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    say("dovetail demo: starting")
    stage = EmbeddedStage(folder)
    try:
        await Story(stage).play()
    finally:
        await stage.close()
