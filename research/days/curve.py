"""The curve of the policy cost: dollars against pods moved, by what a move must save.

`python -m research.days.curve OUT.json --nodes 60 --seeds 1 2`: plays a day by default and one for each worth
and seed, and writes each play's figures as soon as it is over; what the file has is not played again. The chart is
drawn by `python -m research.days.picture OUT.json`.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import orjson

from research.days.__main__ import played, totals
from research.days.play import Course

WORTHS: Final = (0.2, 0.35, 0.5, 0.7, 1.0, 1.5, 3.0)
KEPT: Final = ("dollars", "lowest", "moved", "launched", "interrupted", "unready_seconds", "pending_seconds")
Point = dict[str, Any]


def play_all(course: Course, seeds: Sequence[int], worths: Sequence[float], out: Path) -> list[Point]:
    """Every point that the file does not have yet, in the order in which they tell most."""
    known: dict[str, Any] = orjson.loads(out.read_bytes()) if out.exists() else {}
    points: list[Point] = known.get("points", [])
    for seed in seeds:
        for worth in (None, *worths):
            if any(each["seed"] == seed and each["worth"] == worth for each in points):
                continue
            chosen = replace(course, cost=worth is not None, seed=seed, worth=worth or course.worth)
            figures = totals(played(chosen))
            points.append({"seed": seed, "worth": worth, **{key: figures[key] for key in KEPT}})
            written = {"course": asdict(course), "points": points}
            out.write_bytes(orjson.dumps(written, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return points


def curve(points: Sequence[Point], over: str = "dollars") -> dict[float, tuple[float, float]]:
    """By worth, pods moved and dollars (or another figure) over the default's, the mean of all seeds. A worth that was
    not played with each seed is left out: it would be held against other days."""
    plain = {each["seed"]: each for each in points if each["worth"] is None}
    found: dict[float, list[tuple[float, float]]] = {}
    for each in points:
        if each["worth"] is not None:
            default = plain[each["seed"]]
            ratios = _ratio(each["moved"], default["moved"]), _ratio(each[over], default[over])
            found.setdefault(each["worth"], []).append(ratios)
    return {
        worth: (fmean(moved for moved, _ in ratios), fmean(value for _, value in ratios))
        for worth, ratios in sorted(found.items())
        if len(ratios) == len(plain)
    }


def _ratio(value: float, default: float) -> float:
    """Not a number where the default policy had none of it, as no interruption in a short play."""
    return value / default if default else nan


def table(points: Sequence[Point]) -> list[str]:
    """The curve, a line for each worth."""
    columns = {key: curve(points, key) for key in KEPT if key != "lowest"}
    rows = [["worth", *columns]]
    rows += [[f"{worth:g}", *(f"{of[worth][1]:.3f}" for of in columns.values())] for worth in columns["dollars"]]
    return ["  ".join(cell.ljust(15) for cell in row).rstrip() for row in rows]


def main() -> int:
    """Play, write, print."""
    parser = argparse.ArgumentParser(prog="python -m research.days.curve")
    parser.add_argument("out", type=Path)
    parser.add_argument("--nodes", type=float, default=60.0)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=5, help="minutes between decisions about disruption")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--worths", type=float, nargs="+", default=WORTHS)
    given = parser.parse_args()
    course = Course(cost=False, nodes=given.nodes, hours=given.hours, steps=given.steps, every=given.every)
    print("\n".join(table(play_all(course, given.seeds, given.worths, given.out))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
