"""A worker that starts in the place of a killed one takes up what that one waited in."""

import os
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client

from dovetail.worker.predecessors import is_gone, take_over

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
HOST = socket.gethostname()


def a_dead_process() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


class Server:
    """Workflows by id, with the worker that each waits in, and the pokes that they got."""

    def __init__(self, waits_in: dict[str, str]) -> None:
        self.waits_in, self.poked = waits_in, list[str]()

    def get_workflow_handle(self, identity: str) -> Any:
        async def describe() -> Any:
            step = SimpleNamespace(state=STARTED, last_worker_identity=self.waits_in[identity])
            return SimpleNamespace(raw_description=SimpleNamespace(pending_activities=[step]))

        async def signal(name: str) -> None:
            assert name == "poke"
            self.poked.append(identity)

        return SimpleNamespace(describe=describe, signal=signal)


def test_a_process_of_this_host_that_does_not_run_is_gone_and_any_other_may_live() -> None:
    assert is_gone(f"{a_dead_process()}@{HOST}")
    assert is_gone(f"{os.getpid()}@{HOST}"), "a container starts again under the same number"
    assert not is_gone(f"{os.getppid()}@{HOST}")
    assert not is_gone(f"{a_dead_process()}@another-host")


@pytest.mark.parametrize("identity", ["", "worker", "@", f"x@{HOST}"])
def test_an_identity_of_another_form_says_nothing(identity: str) -> None:
    assert not is_gone(identity)


async def test_only_what_waits_in_a_dead_process_is_poked() -> None:
    server = Server({"c/scheduler": f"{a_dead_process()}@{HOST}", "c/caretaker": f"{os.getppid()}@{HOST}"})

    assert await take_over(cast(Client, server), list(server.waits_in)) == ["c/scheduler"]
    assert server.poked == ["c/scheduler"]
