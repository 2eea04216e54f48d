"""What a node costs the API server: `python -m acceptance.bench.live.calls [NODES] [--before FILE]`.

A real control plane, one worker, and pods that each need a node of their own: up, and down to none. The API server's
audit log counts every call of the worker by verb and resource, Events by their reason; leases are not in it. A part
that others had changed counts as a conflict too. What a worker asks at rest stands apart, in calls a minute, and is in
the other columns too. `--out FILE` keeps the counts, `--before FILE` puts kept ones beside those of this run.
"""

import argparse
import asyncio
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acceptance.bench.live.growing import apart, grow, nothing_left, wide_pool
from testbed.plane import AuditEntry, PlaneSettings
from testbed.up import WORKER_USER, folder_of
from worlds.cluster.fleets import workload
from worlds.cluster.ground import Ground

NODES: Final = 30
PATIENCE: Final = 300.0
REST_SECONDS: Final = 30.0  # until upkeep has written what it writes of a new node, the tags of its instance last
GOALS: Final = {"up": 8.0, "down": 10.0}
PHASES: Final = ("up", "down", "rest")
ALL: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The calls of one phase by kind, for each node; at rest for each minute."""

    kinds: dict[str, float]
    conflicts: int
    calls: int

    @classmethod
    def of(cls, entries: Iterable[AuditEntry], parts: float) -> "Counted":
        """What the worker asked, divided by that; a watch is one call that lasts."""
        ours = [e for e in entries if e.user == WORKER_USER and e.verb != "watch"]
        kinds = Counter(kind_of(entry) for entry in ours)
        return cls(
            kinds={kind: count / parts for kind, count in kinds.items()},
            conflicts=sum(1 for e in ours if e.code in (409, 422)),
            calls=len(ours),
        )

    @property
    def total(self) -> float:
        """All kinds together."""
        return sum(self.kinds.values())


def kind_of(entry: AuditEntry) -> str:
    """Verb and resource; an Event that is created says its reason."""
    said = f"{entry.verb} {entry.resource}{'/' + entry.subresource if entry.subresource else ''}"
    reason = (entry.request or {}).get("reason") if entry.resource == "events" else ""
    return f"{said} {reason}" if reason else said


async def measured(ground: Ground, nodes: int) -> dict[str, Counted]:
    """Up, a while of rest, and down."""
    subnets = ground.cloud.control("GET", "world")["subnets"]
    ground.world({"subnets": [{**each, "free": 10_000} for each in subnets]})
    await ground.apply(wide_pool())
    await ground.until(ground.class_is_ready, PATIENCE, "the NodeClass is ready")
    begun = ground.audit.end()  # what the start of a worker asks is no node's
    await grow(ground, wide_pool(), [apart(workload("each", "", nodes, "250m"))])
    await asyncio.sleep(REST_SECONDS)
    settled = ground.audit.end()
    await asyncio.sleep(REST_SECONDS)
    rested = ground.audit.end()
    answer = await ground.api.patch("/apis/apps/v1/namespaces/default/deployments/each", {"spec": {"replicas": 0}})
    assert answer.status == 200, answer.text
    await ground.until(lambda: nothing_left(ground), PATIENCE, "no claim, node or instance is left")
    return {
        "up": Counted.of(ground.audit.entries(begun, settled), nodes),
        "rest": Counted.of(ground.audit.entries(settled, rested), REST_SECONDS / 60.0),
        "down": Counted.of(ground.audit.entries(rested), nodes),
    }


async def run(folder: Path, nodes: int) -> dict[str, Counted]:
    """On servers of its own."""
    ground = await Ground.start(folder, PlaneSettings(node_grace_seconds=40))
    try:
        ground.ensure_workers()
        return await measured(ground, nodes)
    finally:
        await ground.stop()


def table(now: dict[str, Counted], before: dict[str, Counted]) -> list[str]:
    """A line for each kind, the dearest first, and their sums."""
    kinds = {kind for each in (*now.values(), *before.values()) for kind in each.kinds}
    turns = [*([before] if before else []), now]
    words = ["before", "now"] if before else ["now"]
    heads = [f"{phase} {word}" for phase in PHASES for word in words]
    lines = [f"{'calls':44}" + "".join(f"{head:>13}" for head in heads)]

    def cells(of: str) -> str:
        found = [turn[phase] for phase in PHASES for turn in turns]
        return "".join(f"{each.total if of == ALL else each.kinds.get(of, 0.0):13.2f}" for each in found)

    order = sorted(
        kinds, key=lambda kind: -sum(each.kinds.get(kind, 0.0) for each in (*now.values(), *before.values()))
    )
    lines += [f"{kind:44}{cells(kind)}" for kind in order]
    return [*lines, f"{ALL:44}{cells(ALL)}"]


def kept(found: dict[str, Counted]) -> str:
    """As JSON."""
    fields = {phase: {"kinds": c.kinds, "conflicts": c.conflicts, "calls": c.calls} for phase, c in found.items()}
    return json.dumps(fields, indent=1)


def main() -> int:
    """The exit code is 1 where a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m acceptance.bench.live.calls", description=__doc__.splitlines()[0])
    parser.add_argument("nodes", nargs="?", type=int, default=NODES)
    parser.add_argument("--before", type=Path, help="counts of an earlier run")
    parser.add_argument("--out", type=Path, help="where to keep the counts")
    asked = parser.parse_args()
    before: dict[str, Counted] = {}
    if asked.before:
        before = {phase: Counted(**fields) for phase, fields in json.loads(asked.before.read_text()).items()}
    folder = folder_of("bench-calls")
    found = asyncio.run(run(folder, asked.nodes))
    shutil.rmtree(folder, ignore_errors=True)
    if asked.out:
        asked.out.write_text(kept(found))
    print("\n".join(table(found, before)))
    met = True
    for phase, goal in GOALS.items():
        each = found[phase]
        share = each.conflicts / max(each.calls, 1)
        met = met and each.total <= goal and share < 0.01
        print(f"{phase}: {each.total:.1f} calls a node (goal {goal:g}), {each.conflicts} conflicts, {share:.2%}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
