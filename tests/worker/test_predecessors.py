"""A worker that starts in the place of a killed one takes up what that one waited in."""

import os
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from dovetail.messages.workflow_ids import scheduler_id
from dovetail.model import names
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import NotSeenYet
from dovetail.ports.view import ClusterView
from dovetail.worker.predecessors import end_lost_steps, is_gone, silent_workers, take_over
from tests.lifecycle.objects import a_joined_claim
from worlds.disruption import a_claim

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
HOST = socket.gethostname()


def a_dead_process() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


class Server:
    """Workflows by id, with the worker that each waits in, and the pokes that they got."""

    def __init__(self, waits_in: dict[str, str]) -> None:
        self.waits_in, self.poked, self.failed = waits_in, list[str](), list[tuple[str, str, str]]()
        self.namespace, self.workflow_service, self.unstuck = "default", self, list[str]()

    async def reset_sticky_task_queue(self, request: Any) -> None:
        self.unstuck.append(request.execution.workflow_id)

    def get_workflow_handle(self, identity: str) -> Any:
        async def describe() -> Any:
            if identity not in self.waits_in:
                raise RPCError("workflow not found", RPCStatusCode.NOT_FOUND, b"")
            step = SimpleNamespace(state=STARTED, last_worker_identity=self.waits_in[identity], activity_id="7")
            info = SimpleNamespace(execution=SimpleNamespace(run_id=f"run of {identity}"))
            return SimpleNamespace(
                raw_description=SimpleNamespace(pending_activities=[step], workflow_execution_info=info)
            )

        async def signal(name: str) -> None:
            assert name == "poke"
            self.poked.append(identity)

        return SimpleNamespace(describe=describe, signal=signal)

    def get_async_activity_handle(self, workflow_id: str, run_id: str, activity_id: str) -> Any:
        async def fail(error: ApplicationError) -> None:
            delay = error.next_retry_delay
            assert not error.non_retryable and delay is not None and delay.total_seconds() < 1
            self.failed.append((workflow_id, run_id, activity_id))

        return SimpleNamespace(fail=fail)


@pytest.mark.parametrize("serving", [False, True])
def test_a_process_of_this_host_that_does_not_run_is_gone_and_any_other_may_live(serving: bool) -> None:
    assert is_gone(f"{a_dead_process()}@{HOST}", serving=serving)
    assert not is_gone(f"{os.getppid()}@{HOST}", serving=serving)
    assert not is_gone(f"{a_dead_process()}@another-host", serving=serving)


def test_what_bears_this_process_s_number_is_a_predecessor_s_only_before_it_takes_steps_itself() -> None:
    """A container starts again under the same number; a minute later the number is that of its own steps."""
    assert is_gone(f"{os.getpid()}@{HOST}", serving=False)
    assert not is_gone(f"{os.getpid()}@{HOST}", serving=True)


def test_a_worker_of_this_version_is_known_by_its_name_and_by_its_pod() -> None:
    """With the host's network all pods of a machine have one host name, and each its own process numbers."""
    assert is_gone(f"dovetail/1.0/{a_dead_process()}@{HOST}", serving=False)
    assert is_gone(f"dovetail/1.0/{a_dead_process()}@a-pod", serving=False, pod="a-pod")
    assert not is_gone(f"dovetail/1.0/{a_dead_process()}@{HOST}", serving=False, pod="a-pod")


@pytest.mark.parametrize("identity", ["", "worker", "@", f"x@{HOST}"])
def test_an_identity_of_another_form_says_nothing(identity: str) -> None:
    assert not is_gone(identity, serving=False)


async def test_only_what_waits_in_a_dead_process_is_poked() -> None:
    server = Server({"c/scheduler": f"{a_dead_process()}@{HOST}", "c/caretaker": f"{os.getppid()}@{HOST}"})

    assert await take_over(cast(Client, server), list(server.waits_in)) == ["c/scheduler"]
    assert server.poked == server.unstuck == ["c/scheduler"], "its next task does not wait for the dead process either"


def test_only_a_worker_that_was_not_heard_for_a_minute_is_looked_for() -> None:
    def step(worker: str, *, heard: int, started: int) -> PendingActivityInfo:
        return PendingActivityInfo(
            last_worker_identity=worker,
            last_heartbeat_time=Timestamp(seconds=heard),
            last_started_time=Timestamp(seconds=started),
        )

    held = {
        "c/scheduler": [step("1@beats", heard=990, started=1), step("2@new", heard=0, started=980)],
        "c/caretaker": [step("3@silent", heard=930, started=1)],
    }
    assert silent_workers(held, 1000.0) == {"3@silent"}


class View:
    """A launch, a disruption, a termination and a node at rest."""

    def snapshot(self, reads: object = None) -> Snapshot:
        claims = [
            a_claim("launching"),
            a_joined_claim("marked", annotations={names.OWNER: "c/disrupt/1"}),
            a_joined_claim("leaving", deleting_since=1.0),
            a_joined_claim("resting"),
        ]
        return Snapshot(now=2.0, claims={claim.name: claim for claim in claims})


async def test_the_steps_of_a_dead_process_are_tried_again_at_once() -> None:
    """Those of a process that lives, or of another host, are left alone."""
    dead, alive = f"{a_dead_process()}@{HOST}", f"{os.getppid()}@{HOST}"
    waits_in = {
        "c/claim/launching": dead,
        "c/claim/leaving": alive,
        "c/claim/resting": dead,  # not looked at: nothing is under way
        "c/disrupt/1": dead,
        scheduler_id("c"): dead,
    }
    server = Server(waits_in)

    assert await end_lost_steps(cast(Client, server), "c", cast(ClusterView, View())) == 3

    failed = {(workflow, step) for workflow, _, step in server.failed}
    assert failed == {("c/claim/launching", "7"), ("c/disrupt/1", "7"), (scheduler_id("c"), "7")}
    assert ("c/claim/launching", "run of c/claim/launching", "7") in server.failed


async def test_a_worker_that_does_not_see_the_claims_starts_all_the_same() -> None:
    def blind(reads: object = None) -> Snapshot:
        raise NotSeenYet("cluster view", "no list yet")

    view = SimpleNamespace(snapshot=blind)

    assert await end_lost_steps(cast(Client, Server({})), "c", cast(ClusterView, view)) == 0
