"""python -m acceptance.traffic DIR: play recorded cases of upstream's AWS provider through the front door and compare.

`make vectors DIR=…` does the same for a whole folder. The last line is `N passed, N failed`; the exit code is 1 where
any failed. With --only some cases, with --lanes the number of control planes side by side, with --out a file of
everything that differed.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptance.traffic.cases import Case, holds_traffic, read_cases
from acceptance.traffic.named import listed, read_named
from acceptance.traffic.run import Plan, Result, report, run

LANES = 2  # two cores: a third one only makes all of them slower


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the command line says about a run."""

    only: Sequence[str] = ()  # ids of cases, beginnings of ids with a *, or files; empty: all
    lanes: int = LANES
    out: Path | None = None  # a file for everything that differed
    keep: Path | None = None  # a folder for logs, kept
    again: bool = False  # compare what an earlier run with `keep` has played


def play_files(files: Sequence[Path], choice: Choice) -> tuple[int, int]:
    """Play all cases of some files; prints a line per file and the named differences; how many passed and failed."""
    only, keep = choice.only, choice.keep
    cases = [case for file in files for case in read_cases(file) if not only or _wanted(case, only)]
    folder = (keep or Path(tempfile.mkdtemp(prefix="dovetail-traffic-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    named, began = read_named(), time.monotonic()
    try:
        plan = Plan(cases=cases, named=named, folder=folder, lanes=choice.lanes, again=choice.again)
        results = run(plan) if cases else []
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if choice.out is not None:
        report(results, choice.out)
    _summary(files, results)
    met = sum((each.named for each in results), Counter[str]())
    print(f"{len(results)} cases in {time.monotonic() - began:.0f} s; named differences (acceptance/traffic):")
    print("\n".join(listed(named, met)) or "  none was met")
    passed = sum(each.passed for each in results)
    return passed, len(results) - passed


def _wanted(case: Case, only: Sequence[str]) -> bool:
    return (
        case.id in only
        or case.file in only
        or any(case.id.startswith(each.removesuffix("*")) for each in only if "*" in each)
    )


def _summary(files: Sequence[Path], results: Sequence[Result]) -> None:
    for file in files:
        here = [each for each in results if f"{each.case.file}.jsonl.gz" == file.name]
        if here:
            passed = sum(each.passed for each in here)
            print(f"{file.name}: {passed} passed, {len(here) - passed} failed")


def main() -> int:
    """Parse, run, count."""
    parser = argparse.ArgumentParser(prog="python -m acceptance.traffic", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder of *.jsonl.gz, or one such file")
    parser.add_argument("--only", nargs="*", default=[], help="ids of cases, beginnings of ids with a *, or files")
    parser.add_argument("--lanes", type=int, default=LANES, help="how many control planes side by side")
    parser.add_argument("--out", type=Path, help="a file for everything that differed")
    parser.add_argument("--keep", type=Path, help="a folder for the servers' and workers' logs, kept")
    parser.add_argument("--again", action="store_true", help="compare what an earlier run with --keep has played")
    asked = parser.parse_args()
    files = [asked.folder] if asked.folder.is_file() else sorted(asked.folder.glob("*.jsonl.gz"))
    files = [file for file in files if holds_traffic(file)]
    if not files:
        print(f"no recorded traffic in {asked.folder}", file=sys.stderr)
        return 2
    choice = Choice(only=asked.only, lanes=asked.lanes, out=asked.out, keep=asked.keep, again=asked.again)
    passed, failed = play_files(files, choice)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # Python 3.11 now and then aborts at interpreter exit with Temporal's SDK loaded
