"""What a command loads before it does anything: nothing that it does not need."""

import os
import subprocess
import sys

import pytest

SDKS = {"temporalio", "boto3", "botocore", "kubernetes", "aiohttp", "pydantic", "numpy", "opentelemetry", "yaml"}
LOADED = """
import os, sys
from dovetail.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("loaded:", *sys.modules, flush=True)
os._exit(0)  # as the command itself does with Temporal's library loaded
"""


@pytest.mark.parametrize("asked", [["--version"], ["--help"], ["explain", "--help"], ["doctor", "--help"]])
def test_a_question_about_the_command_itself_loads_no_sdk(asked: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *asked], capture_output=True, text=True, check=True)
    loaded = done.stdout.rpartition("loaded:")[2].split()
    assert "dovetail.cli.main" in loaded
    assert {name.partition(".")[0] for name in loaded} & SDKS == set()


def test_who_looks_at_all_clusters_loads_no_library_of_a_cloud_nor_of_kubernetes() -> None:
    """`fleet` asks Temporal alone: the AWS library was half of the time that its start took (decision 241)."""
    nowhere = {**os.environ, "TEMPORAL_ADDRESS": "127.0.0.1:1", "DOVETAIL_CLOUD": "aws"}
    command = [sys.executable, "-c", LOADED, "fleet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=nowhere)
    loaded = done.stdout.rpartition("loaded:")[2].split()
    assert "temporalio.client" in loaded
    needless = SDKS - {"temporalio", "pydantic", "yaml"}
    assert {name.partition(".")[0] for name in loaded} & needless == set()
    assert [name for name in loaded if name.startswith("dovetail.adapters.")] == []
