"""`python -m acceptance.bench.live [NAME …]`: disruption on a real control plane, timed beside upstream's figures.

Starts its own servers (control plane, Temporal, AWS over HTTP, one worker) and stops them. Every figure is read from
the API server's audit log, which no code of ours can alter. Upstream's were measured on the same kind of plane with
nodes that start in 1 s unless said. Not part of `make test`: it takes some minutes and wants an idle machine.
"""

import argparse
import asyncio
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acceptance.bench.live.at_rest import PODS_PER_NODE, Figure, Readiness, Resources, budget, settle
from acceptance.bench.live.beside import BESIDE
from acceptance.bench.live.bills import BILLS
from acceptance.bench.live.growing import GROWING
from acceptance.bench.live.reactions import CAUSES, Reaction
from acceptance.bench.live.recovering import RECOVERING
from acceptance.bench.live.shrinking import SHRINKING
from dovetail.model import names
from testbed.plane import PlaneSettings
from testbed.up import folder_of
from worlds.cluster.ground import Ground
from worlds.cluster.objects import node_pool
from worlds.cluster.timeline import Timeline, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One run of drift."""

    nodes: int
    boot: float
    budget: str
    upstream: str
    aim: float
    calls: int = 0  # the most that is allowed; 0: not judged
    judge_readiness: bool = False

    async def __call__(self, ground: Ground) -> list[Figure]:
        """Change the template of a pool at rest and wait until none of its old nodes is left."""
        old = await settle(ground, self.nodes, budget(node_pool(consolidate_after="Never"), self.budget))
        gone = {c["metadata"]["name"] for c in old}
        ground.world({"bootSeconds": self.boot})
        since, before = ground.audit.end(), Resources.of(ground)
        await ground.apply(budget(node_pool(colour="green", consolidate_after="Never"), self.budget))

        async def replaced() -> bool:
            left = {c["metadata"]["name"] for c in await ground.claims()}
            return not left & gone and await ground.settled(self.nodes * PODS_PER_NODE)

        readiness = Readiness(wanted=self.nodes * PODS_PER_NODE)
        async with readiness.watched(ground):
            await ground.until(replaced, 600, "all old nodes are gone")
        print(f"    {Resources.of(ground).since(before)}", flush=True)
        print(f"    {readiness.words()}", flush=True)
        line = Timeline(ground.audit.entries(since))
        changed = next(moment(e) for e in line.writes if e.resource == "nodepools" and e.user != "dovetail")
        return [*self.figures(line, changed), *(readiness.figures() if self.judge_readiness else [])]

    def figures(self, line: Timeline, start: float) -> list[Figure]:
        """The whole and its parts."""
        last = max(line.released().values()) - start
        name = f"drift, {self.nodes} nodes, budget {self.budget}, start {self.boot:g} s"
        figures = [
            Figure(what=name, ours=f"{last:.1f} s", upstream=self.upstream, aim=f"{self.aim:g} s", met=last < self.aim)
        ]
        parts = {
            "tainted": line.tainted(),
            "created": line.created(),
            "launched": line.reached(names.LAUNCHED),
            "registered": line.reached(names.REGISTERED_CONDITION),
            "initialised": line.reached(names.INITIALIZED_CONDITION),
            "deleted": line.deleted(),
            "drained": line.reached(names.DRAINED),
            "released": line.released(),
        }
        for part, times in parts.items():
            spread = sorted(t - start for t in times.values())
            print(f"    {part:12} {len(spread):3}  first {spread[0]:6.2f}  last {spread[-1]:6.2f}", flush=True)
        calls = line.calls()
        print(f"    calls: {', '.join(f'{count} {kind}' for kind, count in calls.kinds)}", flush=True)
        share = calls.conflicts / calls.total
        if self.calls:
            figures.append(
                Figure(
                    what=f"  API calls of it, {self.nodes} nodes",
                    ours=f"{calls.total}, {share:.1%} conflicts",
                    upstream="392–407, 7–9 % conflicts",
                    aim=f"< {self.calls}, < 1 %",
                    met=calls.total < self.calls and share < 0.01,
                )
            )
        return figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Warnings:
    """Warnings of AWS, one after the other, beside a process that decides about 5,000 nodes again and again."""

    nodes: int
    pause: float

    async def __call__(self, ground: Ground) -> list[Figure]:
        """From the message in the queue to the taint on the node."""
        claims = await settle(ground, self.nodes, node_pool(consolidate_after="Never"))
        since, sent = ground.audit.end(), dict[str, float]()
        deciding = subprocess.Popen([sys.executable, "-c", DECIDE])
        try:
            for claim in claims:
                sent[claim["status"]["nodeName"]] = time.time()
                await ground.warn(claim)
                await asyncio.sleep(self.pause)

            async def tainted() -> bool:
                return set(sent) <= set(Timeline(ground.audit.entries(since)).tainted())

            await ground.until(tainted, 120, "every warned node is tainted")
        finally:
            deciding.kill()
            deciding.wait()
        marked = Timeline(ground.audit.entries(since)).tainted()
        took = sorted(marked[node] - at for node, at in sent.items())
        late = took[math.ceil(0.99 * len(took)) - 1]
        print(f"    notice to taint: median {took[len(took) // 2]:.2f}, longest {took[-1]:.2f} s", flush=True)
        what = f"{self.nodes} notices to taints, p99"
        return [Figure(what=what, ours=f"{late:.2f} s", upstream="–", aim="1 s", met=late < 1.0)]


DECIDE = """
from acceptance.bench.inputs.disruption import whole_round
while True:
    whole_round([(5000, 20)])
"""


Scenario = Callable[[Ground], Awaitable[list[Figure]]]

SCENARIOS: dict[str, Scenario] = {
    "drift_5": Drift(nodes=5, boot=1, budget="100%", upstream="46–55 s", aim=12, calls=250),
    "drift_20": Drift(nodes=20, boot=1, budget="100%", upstream="132–142 s", aim=30, judge_readiness=True),
    "drift_20_slow": Drift(nodes=20, boot=15, budget="100%", upstream="345 s", aim=40),
    "warnings": Warnings(nodes=20, pause=3.0),
    "drift_4_budget_2": Drift(nodes=4, boot=15, budget="2", upstream="68–88 s", aim=45),
    **{f"reaction_{name}": Reaction(cause=cause) for name, cause in CAUSES.items()},
    **GROWING,
    **BILLS,
    **SHRINKING,
    **RECOVERING,
    **BESIDE,
}

# A kubelet's own lease; the tests' is a fifth of it, which three hundred nodes would pay for.
GRACE_SECONDS: Final = 40


async def run(chosen: list[str], folder: Path) -> list[Figure]:
    """The scenarios one after another on one set of servers, with a clean cluster each."""
    ground = await Ground.start(folder, PlaneSettings(node_grace_seconds=GRACE_SECONDS))
    figures: list[Figure] = []
    try:
        for name in chosen:
            print(f"{name} …", flush=True)
            started = time.monotonic()
            ground.ensure_workers()
            figures += await SCENARIOS[name](ground)
            await ground.clear()
            print(f"    {time.monotonic() - started:.0f} s in all", flush=True)
    finally:
        await ground.stop()
    return figures


def main() -> int:
    """Run those named, or all; the exit code is 1 where an aim was missed."""
    parser = argparse.ArgumentParser(prog="python -m acceptance.bench.live", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SCENARIOS)}; all without")
    parser.add_argument("--keep", action="store_true", help="keep the folder of logs")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(SCENARIOS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    folder = folder_of("bench-live")
    figures = asyncio.run(run(asked.names or list(SCENARIOS), folder))
    print(f"\n{'what':52} {'Dovetail':22} {'upstream':26} {'aim':16}")
    for figure in figures:
        mark = "" if figure.met else "  missed"
        print(f"{figure.what:52} {figure.ours:22} {figure.upstream:26} {figure.aim:16}{mark}")
    if not asked.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
