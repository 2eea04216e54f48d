"""python -m acceptance.adopt FILE: take over every state of a file, and their variants, and count what passed.

Run by `make adopt`. The last line is `N passed, N failed`; the exit code is 1 where any failed. With --keep the folders
of failed takeovers stay: the world's file and the worker's log.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from acceptance.adopt.states import State, read_states
from acceptance.adopt.takeover import Result, take_over
from acceptance.adopt.variants import VARIANTS, variant
from dovetail.cli.demo.temporal_server import TemporalServer, start_temporal


async def run(states: Sequence[State], folder: Path, at_once: int) -> list[Result]:
    """All states on one Temporal server, a few at a time."""
    server = await start_temporal(folder)
    slots = asyncio.Semaphore(at_once)
    try:
        return list(await asyncio.gather(*[_one(state, (server, folder, slots)) for state in states]))
    finally:
        server.stop()


async def _one(state: State, stage: tuple[TemporalServer, Path, asyncio.Semaphore]) -> Result:
    server, folder, slots = stage
    async with slots:
        try:
            result = await take_over(state, server, folder / state.id)
        except Exception as error:  # one broken state must not end the run of all others
            result = Result(id=state.id, seconds=0.0, problems=(f"{type(error).__name__}: {error}",))
    print(
        f"{'FAILED' if result.problems else 'passed'}  {result.seconds:6.1f} s  {state.id:<18} {'; '.join(state.words)}"
    )
    for problem in result.problems:
        print(f"          {problem}")
    sys.stdout.flush()
    return result


def main() -> int:
    """Parse, run, count."""
    parser = argparse.ArgumentParser(prog="python -m acceptance.adopt", description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="states, one JSON object a line; .gz or plain")
    parser.add_argument("--only", nargs="*", default=[], help="ids, or beginnings of ids")
    parser.add_argument("--at-once", type=int, default=4, help="how many states side by side")
    parser.add_argument("--keep", type=Path, help="a new folder for the worlds and logs, kept")
    asked = parser.parse_args()
    if not asked.file.exists():
        print(f"there is no file {asked.file}", file=sys.stderr)
        return 2
    recorded = {state.id: state for state in read_states(asked.file)}
    made = [variant(name, recorded) for name, (base, _) in VARIANTS.items() if base in recorded]
    states = [s for s in (*recorded.values(), *made) if not asked.only or s.id.startswith(tuple(asked.only))]
    folder = asked.keep or Path(tempfile.mkdtemp(prefix="dovetail-adopt-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        results = asyncio.run(run(states, folder.resolve(), asked.at_once))
    finally:
        if not asked.keep:
            shutil.rmtree(folder)
    failed = sum(bool(result.problems) for result in results)
    print(f"{len(results)} states in {time.monotonic() - began:.0f} s")
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # Python 3.11 now and then aborts at interpreter exit with Temporal's SDK loaded
