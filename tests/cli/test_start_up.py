"""What a command loads before it does anything: nothing that it does not need."""

import subprocess
import sys

import pytest

SDKS = {"temporalio", "boto3", "botocore", "kubernetes", "aiohttp", "pydantic", "numpy", "opentelemetry", "yaml"}
LOADED = """
import sys
from dovetail.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("loaded:", *sys.modules)
"""


@pytest.mark.parametrize("asked", [["--version"], ["--help"], ["explain", "--help"], ["doctor", "--help"]])
def test_a_question_about_the_command_itself_loads_no_sdk(asked: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *asked], capture_output=True, text=True, check=True)
    loaded = done.stdout.rpartition("loaded:")[2].split()
    assert "dovetail.cli.main" in loaded
    assert {name.partition(".")[0] for name in loaded} & SDKS == set()
