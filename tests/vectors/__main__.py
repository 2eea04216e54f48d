"""`make vectors DIR=…`: run every *.jsonl.gz of recorded results in a folder against our engines.

Prints a line per file and closes with `N passed, N failed`. A kind of file that nothing here knows counts as failed,
case by case: an engine that does not exist yet has not passed.
"""

import gzip
import importlib
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

import tests.vectors

Compare = Callable[[dict[str, Any]], str | None]

SHOWN_PER_FILE = 5


def known_kinds() -> dict[str, Compare]:
    """Every kind of file that a kind_*.py module knows."""
    kinds: dict[str, Compare] = {}
    for module in pkgutil.iter_modules(tests.vectors.__path__):
        if module.name.startswith("kind_"):
            kinds.update(importlib.import_module(f"tests.vectors.{module.name}").KINDS)
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
    passed, differences = 0, []
    for number, case in enumerate(read_cases(file), 1):
        difference = compare(kind, case)
        if difference is None:
            passed += 1
        else:
            differences.append(f"    {name_of(case, number)}: {difference}")
    print(f"{file.name}: {passed} passed, {len(differences)} failed")
    for line in differences if verbose else differences[:SHOWN_PER_FILE]:
        print(line)
    return passed, len(differences)


def main(arguments: list[str]) -> int:
    """Run a folder, or only those files in it whose name contains a further argument."""
    verbose = "-v" in arguments
    folder, *filters = [a for a in arguments if a != "-v"]
    kinds = known_kinds()
    files = sorted(f for f in Path(folder).glob("*.jsonl.gz") if not filters or any(x in f.name for x in filters))
    if not files:
        print(f"no *.jsonl.gz in {folder}")
        return 2
    results = [run_file(f, kinds.get(f.name.removesuffix(".jsonl.gz")), verbose) for f in files]
    passed, failed = sum(r[0] for r in results), sum(r[1] for r in results)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
