"""`make vectors DIR=…`: run every *.jsonl.gz of recorded results in a folder against our engines.

Prints a line per file and closes with `N passed, N failed`. A kind of file that nothing here knows counts as failed,
case by case: an engine that does not exist yet has not passed. A difference that is meant (named.py) is printed with
its rule and is neither. Files of recorded AWS traffic are known by what they
hold, not by name, and are played on real servers (acceptance/traffic), all of a folder together.
"""

import argparse
import gzip
import importlib
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

import acceptance.vectors
from acceptance.traffic.__main__ import LANES, Choice, play_files
from acceptance.traffic.cases import holds_traffic
from acceptance.vectors.named import rule_of

Compare = Callable[[dict[str, Any]], str | None]

SHOWN_PER_FILE = 5


def known_kinds() -> dict[str, Compare]:
    """Every kind of file that a kind_*.py module knows."""
    kinds: dict[str, Compare] = {}
    for module in pkgutil.iter_modules(acceptance.vectors.__path__):
        if module.name.startswith("kind_"):
            kinds.update(importlib.import_module(f"acceptance.vectors.{module.name}").KINDS)
    return kinds


def read_cases(file: Path) -> Iterator[dict[str, Any]]:
    """The cases of one file, one per line."""
    with gzip.open(file, "rb") as lines:
        for line in lines:
            if line.strip():
                yield orjson.loads(line)


def name_of(case: dict[str, Any], number: int) -> str:
    """What to call a case in a report."""
    return str(case.get("id") or case.get("name") or f"line {number}")


def compare(kind: Compare | None, case: dict[str, Any]) -> str | None:
    """One case: None where equal. An exception of ours is a difference like any other."""
    if kind is None:
        return "this kind of file is not implemented"
    try:
        return kind(case)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"


def run_file(file: Path, kind: Compare | None, verbose: bool) -> tuple[int, int]:
    """Run one file, print its line and its first differences; how many passed and failed."""
    passed, meant, differences = 0, [], []
    for number, case in enumerate(read_cases(file), 1):
        difference, name = compare(kind, case), name_of(case, number)
        if difference is None:
            passed += 1
        elif rule := rule_of(name, difference):
            meant.append(f"    {name}: otherwise on purpose ({rule}): {difference}")
        else:
            differences.append(f"    {name}: {difference}")
    print(f"{file.name}: {passed} passed, {len(differences)} failed")
    for line in [*meant, *(differences if verbose else differences[:SHOWN_PER_FILE])]:
        print(line)
    return passed, len(differences)


def main(arguments: list[str]) -> int:
    """Run a folder, or only those files in it whose name contains a further argument."""
    asked = _parser().parse_args(arguments)
    folder = Path(asked.folder)
    found = [folder] if folder.is_file() else sorted(folder.glob("*.jsonl.gz"))
    files = [f for f in found if not asked.files or any(x in f.name for x in asked.files)]
    if not files:
        print(f"no *.jsonl.gz in {asked.folder}")
        return 2
    traffic = [file for file in files if holds_traffic(file)]
    kinds = known_kinds()
    results = [
        run_file(f, kinds.get(f.name.removesuffix(".jsonl.gz")), asked.verbose) for f in files if f not in traffic
    ]
    if traffic:
        results.append(play_files(traffic, Choice(only=asked.only, lanes=asked.lanes, out=asked.out, keep=asked.keep)))
    passed, failed = sum(r[0] for r in results), sum(r[1] for r in results)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m acceptance.vectors", description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="a folder of *.jsonl.gz, or one such file")
    parser.add_argument("files", nargs="*", help="parts of file names: only these")
    parser.add_argument("-v", dest="verbose", action="store_true", help="all differences, not a few for each file")
    parser.add_argument("--only", nargs="*", default=[], help="recorded traffic: ids of cases, or beginnings with a *")
    parser.add_argument("--lanes", type=int, default=LANES, help="recorded traffic: control planes side by side")
    parser.add_argument("--out", type=Path, help="recorded traffic: a file for everything that differed")
    parser.add_argument("--keep", type=Path, help="recorded traffic: a folder for the logs, kept")
    return parser


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # Python 3.11 now and then aborts at interpreter exit with Temporal's SDK loaded
