"""Spoil the product where it carries out a rule, and see whether the tests that the rule book names notice.

`python -m tests.mutations [ID …]` plays the mutations of tests/mutations/rules.toml, or those of some rules (`BEH`: all
with that prefix). The product is spoiled in a copy, so that nothing is left behind however this ends. Tests that need
servers run only with `--servers temporal` or `--servers all`; where no other test is named, the mutation is said to be
not played. The exit code is 1 where one goes unnoticed or no longer fits the code.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.mutations.rules import Mutation, StaleMutation, named_tests, read_mutations, select, spoiled

ROOT = Path(__file__).parents[2]
CHOSEN = {"none": "not cluster and not temporal", "temporal": "not cluster", "all": ""}  # tests by their marks
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "node_modules")
VERDICTS = {0: "unnoticed", 1: "noticed", 5: "not played"}  # by pytest's exit code; any other says that none ran
LONGEST = 300.0  # seconds; a spoiled product may wait for ever


def run_tests(copy: Path, tests: Sequence[str], marks: str) -> str:
    """One of the verdicts, or what kept the tests from answering. A product that waits for ever is noticed."""
    command = [sys.executable, "-m", "pytest", "-x", "--tb=no", "-m", marks, *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    try:
        ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return "noticed"
    return VERDICTS.get(ran.returncode, f"pytest ended with {ran.returncode}")


def play(copy: Path, mutation: Mutation, marks: str) -> str:
    """What becomes of one mutation."""
    file = copy / mutation.file
    text = file.read_text()
    try:
        changed = spoiled(text, mutation)
    except StaleMutation as error:
        return str(error)
    compiled = Path(importlib.util.cache_from_source(str(file)))
    try:
        file.write_text(changed)
        compiled.unlink(missing_ok=True)
        return run_tests(copy, named_tests(mutation.rule), marks)
    finally:
        file.write_text(text)
        compiled.unlink(missing_ok=True)


def main() -> int:
    """Play what was asked for, one line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="rules or prefixes; default: all")
    parser.add_argument("--servers", choices=CHOSEN, default="none", help="what the tests may start (default: none)")
    given = parser.parse_args()
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy = Path(folder, "copy")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=LEFT_OUT)
        for mutation in select(read_mutations(), given.ids):
            verdict = play(copy, mutation, CHOSEN[given.servers])
            verdicts.append(verdict)
            print(f"{verdict:<12} {mutation.rule:<8} {mutation.file}: {mutation.what}", flush=True)
    print(
        f"{verdicts.count('noticed')} of {len(verdicts)} mutations noticed, {verdicts.count('not played')} not played"
    )
    return 0 if set(verdicts) <= {"noticed", "not played"} else 1


if __name__ == "__main__":
    sys.exit(main())
