"""`python -m research.days --nodes 200 --hours 24 OUT.json`: plays a day under both policies and writes figures.

The picture is drawn from them by `python -m research.days.picture`. `--world vendor --hours 168` is a week
beside one that a vendor has published (research.days.vendor). One policy alone is played with
`--policy`, its figures are put beside what the file has.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import orjson

from research.days.play import Course, Play
from research.days.vendor import VendorPlay

Recorded = dict[str, Any]
WORLDS: Final[dict[str, type[Play]]] = {"day": Play, "vendor": VendorPlay}


def played(course: Course, keep: Callable[[Recorded], None] = lambda _: None) -> Recorded:
    """The figures of one play, with what was played. `keep` has them after every hour: a play may be cut short."""
    began, play = time.process_time(), WORLDS[course.world](course)

    def recorded() -> Recorded:
        found = asdict(play.figures) | {"processor_seconds": round(time.process_time() - began, 1)}
        rounded = {key: [round(v, 4) for v in old] if isinstance(old, list) else old for key, old in found.items()}
        return {"course": asdict(course), **rounded}

    def told(line: str) -> None:
        print(f"{'cost' if course.cost else 'default'}, {line}", file=sys.stderr, flush=True)
        keep(recorded())

    play.run(told)
    return recorded()


def totals(one: Recorded) -> Recorded:
    """The figures of one play, those by hour summed up."""
    return {**one, "dollars": round(sum(one["dollars"]), 2), "lowest": round(sum(one["lowest"]), 2)}


def table(recorded: Recorded) -> list[str]:
    """The figures of both policies side by side."""
    rows: list[tuple[str, ...]] = [("", "default", "cost", "cost / default")]
    sums = {name: totals(one) for name, one in recorded.items()}
    for key in ("dollars", "lowest", "moved", "launched", "interrupted", "unready_seconds", "pending_seconds"):
        values = [sums.get(name, {}).get(key) for name in ("default", "cost")]
        ratio = f"{values[1] / values[0]:.3f}" if values[0] and values[1] is not None else "–"
        rows.append((key, *("–" if v is None else f"{v:.0f}" if v >= 1000 else f"{v:.4g}" for v in values), ratio))
    return ["  ".join(cell.ljust(16) for cell in row).rstrip() for row in rows]


def main() -> int:
    """Play, write, print."""
    parser = argparse.ArgumentParser(prog="python -m research.days")
    parser.add_argument("out", type=Path)
    parser.add_argument("--policy", choices=("default", "cost", "both"), default="both")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--nodes", type=float, default=200.0, help="of 16 cpus, that the load fills at its peak")
    parser.add_argument("--steps", type=int, default=30, help="of a search, for each thousand of pods begun")
    parser.add_argument("--worth", type=float, default=Course(cost=True).worth)
    parser.add_argument("--every", type=int, default=5, help="minutes between decisions about disruption")
    parser.add_argument("--nobody-nominated", action="store_true", help="to the nodes planned for them")
    parser.add_argument("--follow", action="store_true", help="nominate pods made in place of planned ones too")
    parser.add_argument(
        "--deep", type=float, default=Course(cost=True).deep, help="chance of much capacity in a spot pool"
    )
    parser.add_argument(
        "--spot-chance", type=float, default=Course(cost=True).spot_chance, help="what the policy believes"
    )
    parser.add_argument("--world", choices=tuple(WORLDS), default="day", help="vendor: a week as a vendor tells of it")
    parser.add_argument("--spot-to-spot", action="store_true", help="with the gate SpotToSpotConsolidation open")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ties", type=int, default=0, help="another number: other nodes of one score are taken")
    parser.add_argument("--slows", action="store_true", help="let consolidation rest where what it took came back")
    given = parser.parse_args()
    course = Course(
        cost=False,
        nominates=not given.nobody_nominated,
        follows=given.follow,
        hours=given.hours,
        nodes=given.nodes,
        steps=given.steps,
        worth=given.worth,
        every=given.every,
        deep=given.deep,
        spot_chance=given.spot_chance,
        slows=given.slows,
        spot_to_spot=given.spot_to_spot,
        world=given.world,
        seed=given.seed,
        ties=given.ties,
    )
    recorded: Recorded = orjson.loads(given.out.read_bytes()) if given.out.exists() else {}
    for name in ("default", "cost") if given.policy == "both" else (given.policy,):

        def keep(found: Recorded, name: str = name) -> None:
            recorded[name] = found
            given.out.write_bytes(orjson.dumps(recorded, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))

        played(replace(course, cost=name == "cost"), keep)
    print("\n".join(table(recorded)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
