"""Workers with nothing to do, as processes, and what they hold.

In each the simulated cloud has an empty queue of warnings, as a real one nearly always is. Waits have an hour of grace
when their worker stops, so that a worker which waits for the end of its grace is noticed.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.service import RPCError

from dovetail.connection.identity import place_of
from dovetail.messages.workflow_ids import caretaker_id, interruptions_id, scheduler_id
from worlds.stage.stage import Stage

REST_SECONDS = 3.0
LOADED_SECONDS = 150.0  # for what takes two seconds on a machine with nothing else to do

QUIET_QUEUE = """
import asyncio
from dataclasses import replace
from unittest.mock import patch
from dovetail.cli.main import run
from dovetail.wiring import world as wiring
from dovetail.worker.task_queues import GRACE

GRACE["control"] = 3600.0

class Queue:
    async def receive(self):
        await asyncio.Event().wait()
    async def acknowledge(self, receipts): ...
    async def troubles(self):
        return ()
    async def learn_from(self, interruption, claim): ...

async def open_world(settings):
    return replace(await wiring.open_world(settings), interruptions=Queue())

with patch("dovetail.worker.absence.opening.open_world", open_world):
    run()
"""

Pending = dict[str, tuple[int, int, str]]  # by step: the process that holds it, the attempt, the last failure


def start(stage: Stage, pod: str = "") -> "subprocess.Popen[bytes]":
    """A worker. `pod`: it says that it runs there, so that others do not look for its process on this host."""
    command = [sys.executable, "-c", QUIET_QUEUE]
    return stage.start_installed(command, "worker.log", POD_NAME=pod)


async def pending(stage: Stage) -> Pending:
    """The waits of the singletons that workers hold now."""
    found: Pending = {}
    client = await stage.client()
    for identity in (scheduler_id, caretaker_id, interruptions_id):
        try:
            described = await client.get_workflow_handle(identity(stage.cluster)).describe()
        except RPCError:
            continue
        for step in described.raw_description.pending_activities:
            place = place_of(step.last_worker_identity)
            if step.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED and place is not None:
                found[step.activity_type.name] = place.number, step.attempt, step.last_failure.message
    return found


async def at_rest(stage: Stage) -> None:
    """Until the singletons have had no task for a while: a task held by a killed worker alone costs ten seconds."""
    client, lengths, since = await stage.client(), list[int](), time.monotonic()
    deadline = since + LOADED_SECONDS
    while time.monotonic() < since + REST_SECONDS:
        assert time.monotonic() < deadline, "the singletons do not come to rest\n" + "\n".join(stage.evidence())
        handles = [client.get_workflow_handle(i(stage.cluster)) for i in (scheduler_id, caretaker_id, interruptions_id)]
        found = [(await handle.describe()).history_length for handle in handles]
        if found != lengths:
            lengths, since = found, time.monotonic()
        await asyncio.sleep(0.1)


async def until(look: Callable[[Pending], bool], stage: Stage, words: str) -> Pending:
    deadline = time.monotonic() + LOADED_SECONDS
    while not look(found := await pending(stage)):
        assert time.monotonic() < deadline, f"{words}: {found}\n" + "\n".join(stage.evidence())
        await asyncio.sleep(0.1)
    return found


def held_by(worker: "subprocess.Popen[bytes]", steps: int = 5) -> Callable[[Pending], bool]:
    return lambda found: len(found) == steps and {number for number, _, _ in found.values()} == {worker.pid}


async def idle_pair(stage: Stage, **disruption: str) -> "tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]":
    """A worker that holds all waits, on a cluster with a node, and a second worker."""
    first = start(stage, "first")
    stage.apply_pool(**disruption)
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), LOADED_SECONDS, "the pod runs")
    second = start(stage, "second")
    log = stage.folder / "worker.log"
    await stage.until(lambda: log.read_text().count("serving cluster") == 2, LOADED_SECONDS, "both serve")
    await at_rest(stage)
    await until(held_by(first), stage, "the first holds all waits")
    return first, second
