"""What a worker holds in memory: what it runs, and nothing else."""

import subprocess
import sys

import pytest

from dovetail.worker.allocator import keep_little

# Large packages and rooms that a worker of a cluster never uses.
UNUSED = (
    "kubernetes.client",
    "kubernetes.config",
    "requests",
    "requests_oauthlib",
    "oauthlib",
    "google.auth",
    "sqlite3",
    "dovetail.adapters.simulator",
    "dovetail.cli.demo",
    "dovetail.answers.doctor",
    "dovetail.answers.explain.explain_node",
    "dovetail.answers.record.history",
)
WORKER = """
import sys
import dovetail.cli.main
import dovetail.worker.run
import dovetail.adapters.aws.provider
print(*sys.modules)
"""
WHOLE_CLIENT = """
import dovetail.adapters.kube.official
import kubernetes
print(kubernetes.client.V1Pod.__name__, hasattr(kubernetes, "nothing_of_the_kind"))
"""


def printed(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_a_worker_loads_nothing_large_that_it_does_not_use() -> None:
    loaded = set(printed(WORKER))
    assert {"temporalio.worker", "botocore.session", "kubernetes.aio.client"} <= loaded
    assert [name for name in UNUSED if name in loaded] == []


@pytest.mark.slow
def test_the_official_client_is_whole_for_whoever_asks_for_the_rest() -> None:
    assert printed(WHOLE_CLIENT) == ["V1Pod", "False"]


def test_the_c_library_takes_every_setting() -> None:
    """They are those of glibc; elsewhere there are none to take."""
    assert keep_little() == (sys.platform == "linux")
