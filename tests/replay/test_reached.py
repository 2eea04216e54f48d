"""The recorded histories run every line of the workflows, so that a change of any of them meets one."""

import subprocess
import sys

import pytest

from tests.replay.reached import UNREACHED

pytestmark = pytest.mark.soak  # up to two minutes of tracing each line


def test_a_recorded_history_reaches_every_line_of_the_workflows() -> None:
    """Record what is missing: make record VERSION=…, after a test in tests/workflows that drives it."""
    command = [sys.executable, "-m", "tests.replay.reached"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert {line.partition(":")[0]: line for line in ran.stdout.splitlines()}.keys() == UNREACHED.keys(), ran.stdout
