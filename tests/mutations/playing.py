"""Plays mutations one after the other in a copy of the project, so that nothing is left behind however this ends."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.mutations.rules import Mutation, StaleMutation, named_tests, spoiled

ROOT = Path(__file__).parents[2]
CHOSEN = {  # tests by their marks
    "none": "not cluster and not temporal and not soak",
    "temporal": "not cluster and not soak",
    "all": "",
}
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "node_modules")
VERDICTS = {0: "unnoticed", 1: "noticed", 5: "not played"}  # by pytest's exit code; any other says that none ran
GOOD = {"noticed", "not played"}
LONGEST = 300.0  # seconds; a spoiled product may wait for ever


def play(mutations: Iterable[Mutation], servers: str) -> Iterator[tuple[Mutation, str]]:
    """Each with one of the verdicts, or with what kept its tests from answering."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy = Path(folder, "copy")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=LEFT_OUT)
        for mutation in mutations:
            yield mutation, _verdict(copy, mutation, CHOSEN[servers])


def _verdict(copy: Path, mutation: Mutation, marks: str) -> str:
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
        return _run_tests(copy, named_tests(mutation.rule), marks)
    finally:
        file.write_text(text)
        compiled.unlink(missing_ok=True)


def _run_tests(copy: Path, tests: Sequence[str], marks: str) -> str:
    """A product that waits for ever is noticed."""
    command = [sys.executable, "-m", "pytest", "-x", "--tb=no", "-m", marks, *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    try:
        ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return "noticed"
    return VERDICTS.get(ran.returncode, f"pytest ended with {ran.returncode}")
