"""`python -m testbed.peer [--only TEXT] [--lanes N]`: Karpenter's suites against Dovetail; 1 where a spec failed.

What each spec has shown is kept beside the servers' folders, so that one can be run again by itself; once all have been
run, docs/peer.md is written.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dovetail.answers.failures import CommandFailed
from testbed.cloud.server import CloudError
from testbed.peer.lane import Lane
from testbed.peer.specs import Outcome, listed
from testbed.peer.table import Reasons, page
from testbed.plane import PlaneError, TestbedUnavailable
from testbed.plane.binaries import built_alone
from testbed.plane.building import PEER, SOURCES
from testbed.up import ROOT, folder_of

PAGE = ROOT / "docs" / "peer.md"
LANES = 3  # most of a spec is waiting


def module() -> str:
    """What is compiled, as `path version`."""
    found = re.search(r"sigs\.k8s\.io/karpenter v\S+", (SOURCES / PEER.module / "go.mod").read_text())
    assert found is not None, "testbed/go/peer/go.mod names no Karpenter"
    return found[0]


def all_specs(program: Path, folder: Path) -> list[str]:
    """Every spec's full text, in order; none is run."""
    report = folder / "specs.json"
    said = subprocess.run(
        [str(program), "-ginkgo.dry-run", f"-ginkgo.json-report={report}"], capture_output=True, text=True, check=False
    )
    if said.returncode != 0:
        raise CommandFailed(f"the suite does not list its specs: {said.stdout[-300:]} {said.stderr[-300:]}")
    return listed(report)


class Kept:
    """The last outcome of each spec, in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        said = json.loads(file.read_text()) if file.exists() else []
        self.outcomes = {each["spec"]: Outcome(**each) for each in said}

    def add(self, outcome: Outcome) -> None:
        self.outcomes[outcome.spec] = outcome
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps([asdict(each) for each in self.outcomes.values()], indent=1))
        new.replace(self._file)


async def run(program: Path, folder: Path, specs: Sequence[str], lanes: int) -> list[Outcome]:
    """Run these, some beside one another, first those that took longest; each outcome is said and kept at once."""
    kept, done = Kept(folder / "outcomes.json"), list[Outcome]()
    took = {spec: each.seconds for spec, each in kept.outcomes.items()}
    waiting = sorted(specs, key=lambda spec: -took.get(spec, 0.0))

    async def work(lane: Lane) -> None:
        try:
            while waiting:
                found = await lane.play(waiting.pop(0))
                kept.add(found)
                done.append(found)
                result = "passed" if found.passed else f"FAILED ({found.why})"
                print(f"{len(done)} of {len(specs)}: {result} in {found.seconds:.0f} s: {found.spec}", flush=True)
        finally:
            await lane.close()

    port = asyncio.Lock()
    async with asyncio.TaskGroup() as group:
        for number in range(min(lanes, len(specs))):
            group.create_task(work(Lane(folder=folder / f"lane-{number}", program=program, port=port)))
    return done


async def _command(asked: argparse.Namespace) -> int:
    folder = folder_of("peer")
    folder.mkdir(parents=True, exist_ok=True)
    program = built_alone(PEER, lambda line: print(line, flush=True))
    specs, reasons = all_specs(program, folder), Reasons.read()
    if unknown := sorted(set(reasons.specs) - set(specs)):
        raise CommandFailed(f"reasons.toml names specs that are not there: {', '.join(unknown)}")
    wanted = [spec for spec in specs if asked.only in spec and spec not in reasons.specs]
    if not wanted:
        raise CommandFailed(f"no spec's text has {asked.only!r} in it, or only those that reasons.toml names")
    done = await run(program, folder, wanted, asked.lanes)
    outcomes = Kept(folder / "outcomes.json").outcomes
    if not asked.only or all(spec in outcomes or spec in reasons.specs for spec in specs):
        PAGE.write_text(page(module(), specs, outcomes, reasons))
    failed = [each for each in done if not each.passed]
    print(f"{len(done) - len(failed)} passed, {len(failed)} failed; logs of failures in {folder / 'failed'}")
    return 1 if failed else 0


def main() -> int:
    """Parse and run; what cannot be had is one line."""
    parser = argparse.ArgumentParser(prog="python -m testbed.peer", description="Karpenter's suites against Dovetail.")
    parser.add_argument("--only", default="", help="specs whose text has this in it")
    parser.add_argument("--lanes", type=int, default=LANES, help="how many specs run beside one another")
    try:
        return asyncio.run(_command(parser.parse_args()))
    except* (PlaneError, TestbedUnavailable, CommandFailed, CloudError) as group:
        print(f"peer: {group.exceptions[0]}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
