"""`dovetail demo`: play a story on the embedded stage, in a fresh folder; with --keep leave it running."""

import asyncio
import shutil
import signal
from pathlib import Path

from dovetail.cli.demo.change import ChangeStory
from dovetail.cli.demo.embedded_stage import EmbeddedStage
from dovetail.cli.demo.story import DemoStory
from dovetail.cli.output import say


async def demo(folder: Path, keep: bool = False, change: bool = False) -> None:
    """Start, play, stop. Raises if an assertion of the story fails. `keep`: stop only when interrupted. `change`: the
    story of a change."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    say("dovetail demo: starting")
    stage = EmbeddedStage(folder, moves=change)
    try:
        story = ChangeStory(stage) if change else DemoStory(stage)
        await story.play()
        if keep:
            await story.leave_running()
            await _until_stopped()
    finally:
        await stage.close()


async def _until_stopped() -> None:
    """Wait for Ctrl-C or the end of the terminal: what was started must not keep running."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    say("stopping")
