"""A NodePool drifts as a whole under a budget: `python -m acceptance.bench.live.drifting [NODES [PERCENT [FIRST]]]`.

The simulated world, a Temporal server and one worker, a pod on each node. Of the nodes that come and of those that are
replaced: how many a second, how many were on their way at once, and the longest time in which none was done. On a
machine that has no time that may be as long as a whole wave takes, because all of a wave share it alike; whether
somebody starves says the longest time in which none was even taken and no replacement came or was ready. FIRST: it ends
when so many have been replaced.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dovetail.cli.demo.temporal_server import start_temporal
from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.stage.stage import Stage, has_condition, node_pool

NODES: Final = 5000
PERCENT: Final = 20
PATIENCE: Final = 7200.0
TYPE: Final = "c-2x-amd64-linux"
LOOK_SECONDS: Final = 0.5


@dataclass(slots=True)
class Progress:
    """How many are done, by the looks at it, and how many steps were made towards that."""

    wanted: int
    began: float = field(default_factory=time.monotonic)
    done: int = 0
    longest: float = 0.0
    at_once: int = 0
    last: float = field(default_factory=time.monotonic)
    steps: int = 0
    longest_still: float = 0.0
    moved: float = field(default_factory=time.monotonic)

    def note(self, done: int, under_way: int = 0, steps: int = 0) -> bool:
        """Whether that is all."""
        now = time.monotonic()
        self.longest, self.at_once = max(self.longest, now - self.last), max(self.at_once, under_way)
        self.longest_still = max(self.longest_still, now - self.moved)
        if done > self.done:
            self.done, self.last = done, now
        if steps > self.steps:
            self.steps, self.moved = steps, now
        return done >= self.wanted

    def __str__(self) -> str:
        seconds = time.monotonic() - self.began
        return (
            f"{self.done} nodes in {seconds:.0f} s, {self.done / seconds:.1f} a second, the longest time without one "
            f"{self.longest:.0f} s"
            + (f", without any step {self.longest_still:.0f} s" if self.steps else "")
            + (f", at most {self.at_once} leaving at once" if self.at_once else "")
        )


async def until_all(progress: Progress, stage: Stage, old: frozenset[str] | None) -> None:
    """Wait. `old`: those that must go; None while nodes come."""
    async with asyncio.timeout(PATIENCE):
        while True:
            began = time.monotonic()
            if old is None:
                if progress.note(stage.running_pods()):
                    return
            else:
                claims = stage.claims()
                left = [claim for claim in claims if claim["metadata"]["uid"] in old]
                done, new = len(old) - len(left), [c for c in claims if c["metadata"]["uid"] not in old]
                ready = sum(has_condition(claim, names.INITIALIZED_CONDITION) for claim in new)
                taken = sum(map(is_taken, left))
                if progress.note(done, sum(map(counts, left)), 2 * done + taken + len(new) + ready):
                    return
            await asyncio.sleep(max(LOOK_SECONDS, 9 * (time.monotonic() - began)))  # a tenth of a core at most


def is_taken(claim: Json) -> bool:
    """Whether a disruption has it, or it is being deleted."""
    return "deletionTimestamp" in claim["metadata"] or names.OWNER in claim["metadata"].get("annotations", {})


def counts(claim: Json) -> bool:
    """Whether a budget counts it: it is taken, and its instance does not end yet."""
    return is_taken(claim) and not has_condition(claim, names.INSTANCE_TERMINATING)


async def run(folder: Path, nodes: int, percent: int, first: int) -> None:
    """They come, their pool changes, they are replaced."""
    server = await start_temporal(folder)
    stage = Stage(folder=folder, cluster="drifting", temporal=server)
    rules: dict[str, Any] = {"consolidateAfter": "Never", "budgets": [{"nodes": f"{percent}%"}]}
    try:
        stage.apply_pool(TYPE, **rules)
        stage.start_worker(False)
        stage.deploy(nodes)
        come = Progress(nodes)
        await until_all(come, stage, None)
        print(f"launched: {come}", flush=True)
        old = frozenset(claim["metadata"]["uid"] for claim in stage.claims())
        changed = node_pool([TYPE], **rules)
        changed["spec"]["template"]["metadata"] = {"labels": {"example.com/release": "two"}}
        gone = Progress(min(first, len(old)))
        stage.world.apply(changed)
        await until_all(gone, stage, old)
        print(f"drifted under {percent} %: {gone}; of {nodes} pods {stage.running_pods()} run then", flush=True)
    finally:
        await stage.close()
        server.stop()


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(
        prog="python -m acceptance.bench.live.drifting", description=__doc__.splitlines()[0]
    )
    parser.add_argument("nodes", nargs="?", type=int, default=NODES)
    parser.add_argument("percent", nargs="?", type=int, default=PERCENT)
    parser.add_argument("first", nargs="?", type=int, default=sys.maxsize, help="this many at least are replaced")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder), asked.nodes, asked.percent, asked.first))


if __name__ == "__main__":
    main()
