"""`python -m testbed.peer [--only TEXT] [--lanes N]`: Karpenter's suites against Dovetail; 1 where a spec failed.

docs/peer.md says how each spec ended last: each outcome is written into it at once, and what is not run keeps its row.
"""

import argparse
import asyncio
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dovetail.answers.failures import CommandFailed
from testbed.cloud.server import CloudError
from testbed.peer.lane import Lane
from testbed.peer.specs import Outcome, listed
from testbed.peer.table import Reasons, outcomes_of, page
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
    """Every spec's full text, in a fixed order; none is run."""
    report = folder / "specs.json"
    said = subprocess.run(
        [str(program), "-ginkgo.dry-run", "-ginkgo.seed=1", f"-ginkgo.json-report={report}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode != 0:
        raise CommandFailed(f"the suite does not list its specs: {said.stdout[-300:]} {said.stderr[-300:]}")
    return listed(report)


async def run(program: Path, folder: Path, specs: Sequence[str], lanes: int, known: Callable[[Outcome], None]) -> None:
    """Run these in this order, some of them concurrently; `known` receives each outcome at once."""
    waiting = list(specs)

    async def work(lane: Lane) -> None:
        try:
            while waiting:
                known(await lane.play(waiting.pop(0)))
        finally:
            await lane.close()

    port = asyncio.Lock()
    async with asyncio.TaskGroup() as group:
        for number in range(min(lanes, len(specs))):
            group.create_task(work(Lane(folder=folder / f"lane-{number}", program=program, port=port)))


async def _command(asked: argparse.Namespace) -> int:
    folder = folder_of("peer")
    folder.mkdir(parents=True, exist_ok=True)
    program = built_alone(PEER, lambda line: print(line, flush=True))
    specs, reasons, outcomes = all_specs(program, folder), Reasons.read(), outcomes_of(PAGE.read_text())
    if unknown := sorted(set(reasons.specs) - set(specs)):
        raise CommandFailed(f"reasons.toml names specs that are not there: {', '.join(unknown)}")
    wanted = [spec for spec in specs if asked.only in spec and spec not in reasons.specs]
    if not wanted:
        raise CommandFailed(f"no spec's text has {asked.only!r} in it, or only those that reasons.toml names")
    done = list[Outcome]()

    def known(found: Outcome) -> None:
        done.append(found)
        outcomes[found.spec] = found
        PAGE.write_text(page(module(), specs, outcomes, reasons))
        result = "passed" if found.passed else f"FAILED ({found.why})"
        print(f"{len(done)} of {len(wanted)}: {result} in {found.seconds} s: {found.spec}", flush=True)

    # First what took longest, and what nobody knows of: it then has the others beside it.
    took = {spec: -each.seconds for spec, each in outcomes.items() if each.seconds is not None}
    await run(program, folder, sorted(wanted, key=lambda spec: took.get(spec, -math.inf)), asked.lanes, known)
    failed = [each for each in done if not each.passed]
    print(f"{len(done) - len(failed)} passed, {len(failed)} failed; logs of failures in {folder / 'failed'}")
    return 1 if failed else 0


def main() -> int:
    """Parse and run; anything unavailable is reported in one line."""
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
