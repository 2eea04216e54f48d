"""`dovetail history` and `dovetail doctor` against a Temporal server, a worker and a simulated world that moves."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client

from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.answers.doctor.doctor import DoctorAnswer, doctor
from dovetail.answers.doctor.text import doctor_text
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import scheduler_state
from dovetail.answers.record.entries import Entry
from dovetail.answers.record.history_text import history_text
from dovetail.answers.record.kept import Archive, keep_up
from dovetail.answers.record.log import log_text
from dovetail.cli.demo.temporal_server import TemporalServer, start_temporal, stop_process
from dovetail.messages.states import SchedulerState
from dovetail.messages.workflow_ids import scheduler_id, task_queue
from dovetail.messages.workflow_types import SCHEDULER
from dovetail.model import names
from dovetail.model.values.time import format_time
from dovetail.settings.settings import Settings, read_settings
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_deployment, a_node_class, a_pdb
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world, answered_here, settings_of
from worlds.manifests import pool_manifest

pytestmark = pytest.mark.temporal

SECONDS = 180.0


@dataclass(frozen=True)
class Stage:
    """What the tests of this file share; each uses its own cluster name where it changes anything."""

    temporal: TemporalServer
    folder: Path


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("temporal")
    server = await start_temporal(folder)
    yield Stage(server, folder)
    server.stop()


@pytest.fixture
def stage(temporal: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal.temporal.address)
    return temporal


@contextmanager
def working(world: SimulatedWorld, cluster: str = CLUSTER) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker, as a process of its own, for as long as the block lasts."""
    command = [sys.executable, "-m", "dovetail.cli.main", "worker", "--cluster", cluster, "--world", str(world.file)]
    with world.file.with_name("worker.log").open("wb") as log:
        worker = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield worker
    finally:
        stop_process(worker)


async def until(look: Callable[[], object], words: str) -> None:
    """Look until it is so."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while not look():
        assert asyncio.get_running_loop().time() < deadline, f"not within {SECONDS} s: {words}"
        await asyncio.sleep(0.1)


def verdicts(answer: DoctorAnswer) -> dict[str, str]:
    return {check.name: check.verdict for check in answer.checks}


async def test_a_claims_whole_life_is_listed_and_a_drain_that_hangs_names_its_pods(
    stage: Stage, tmp_path: Path
) -> None:
    world = SimulatedWorld.create(tmp_path / "world.db")
    settings = settings_of(world)
    for body in (a_node_class(), pool_manifest(), a_pdb(maxUnavailable=0), a_deployment(2)):
        world.apply(body)

    with world.playing(), working(world):
        await until(lambda: initialised(world), "a node is initialised")
        await until(lambda: all(p["spec"].get("nodeName") for p in world.objects("Pod")), "the pods are bound")
        claim = world.objects("NodeClaim")[0]["metadata"]["name"]
        node = world.objects("NodeClaim")[0]["status"]["nodeName"]
        healthy = await doctor(settings)
        namespace = world.get("Namespace", "kube-system")
        assert namespace is not None
        state, note = await scheduler_state(settings, namespace["metadata"]["uid"])
        world.delete("NodeClaim", claim)
        await until(lambda: evictions(world), "an eviction is refused")
        await until_shown(settings, node, "a PDB blocks")
        shown = await answered_here(settings, "history", node)

    text = history_text(shown)
    assert [s.workflow for s in shown.stories] == [f"demo/claim/{claim}"]
    assert shown.stories[0].phase == "draining"
    for words in (
        "LaunchNode starts",
        "wait for the node to be ready for pods -> done",
        "taint the node",
        "a PDB blocks",
    ):
        assert words in text
    assert set(verdicts(healthy).values()) == {"holds", "warns"}, doctor_text(healthy)
    assert verdicts(healthy)["retention"] == "warns"  # a development server keeps a day
    assert state is not None and note == ""


def initialised(world: SimulatedWorld) -> bool:
    claims = world.objects("NodeClaim")
    conditions = [c for claim in claims for c in claim.get("status", {}).get("conditions", [])]
    return any(c["type"] == names.INITIALIZED_CONDITION and c["status"] == "True" for c in conditions)


def evictions(world: SimulatedWorld) -> list[object]:
    return [entry for entry in world.ledger() if "evict" in entry.operation]


async def until_shown(settings: Settings, node: str, words: str) -> None:
    """The progress of a step reaches the server within its heartbeat's throttle."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while words not in (text := history_text(await answered_here(settings, "history", node))):
        assert asyncio.get_running_loop().time() < deadline, f"not within {SECONDS} s: {words!r} in {text}"
        await asyncio.sleep(0.2)


async def test_without_workers_the_doctor_names_each_queue_and_what_to_start(stage: Stage, tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool())
    settings = read_settings({}, cluster="idle", world=world.file)

    answer = await doctor(settings)

    found = verdicts(answer)
    assert [found[f"workers on {queue}"] for queue in ("control", "waits", "watches", "cloud", "plan")] == ["fails"] * 5
    assert (found["Scheduler"], found["Caretaker"], found["Temporal server"]) == ("fails", "fails", "holds")
    assert "dovetail worker --roles plan" in doctor_text(answer)


async def test_a_scheduler_that_was_terminated_is_shown_as_such(stage: Stage, tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool())
    settings = read_settings({}, cluster="ended", world=world.file)
    client = await stage.temporal.client()
    handle = await client.start_workflow("Scheduler", id=scheduler_id("ended"), task_queue="unserved")
    await handle.terminate(reason="for the test")

    answer = await doctor(settings)
    shown = await answered_here(settings, "history", scheduler_id("ended"))

    assert next(c.found for c in answer.checks if c.name == "Scheduler") == "ended/scheduler is terminated"
    assert shown.stories[0].lines[-1].text.endswith("for the test")


async def test_a_pool_whose_node_class_is_missing_fails_with_its_name(stage: Stage, tmp_path: Path) -> None:
    pool = a_ready_pool("lost")
    pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "gone"
    world = a_world(tmp_path, pool)

    answer = await doctor(read_settings({}, cluster="idle", world=world.file))

    found = {c.name: (c.verdict, c.found) for c in answer.checks}
    assert found["NodePool lost"] == ("fails", "EmbeddedNodeClass gone: missing")


@pytest.mark.parametrize("name", ["nope", "demo/claim/nope", "it's", "demo/' OR ''='"])
async def test_a_name_without_a_story_is_one_line(stage: Stage, tmp_path: Path, name: str) -> None:
    world = a_world(tmp_path, a_ready_pool())

    with pytest.raises(CommandFailed):
        await answered_here(settings_of(world), "history", name)


async def test_without_a_temporal_server_the_doctor_still_checks_the_cluster(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool())

    answer = await doctor(settings_of(world))

    found = verdicts(answer)
    assert (found["Temporal server"], found["view"], found["cloud"]) == ("fails", "holds", "holds")


async def test_without_a_cluster_the_doctor_says_what_is_missing(stage: Stage, tmp_path: Path) -> None:
    settings = read_settings({}, cluster="idle", world=tmp_path / "absent.db")

    answer = await doctor(settings)

    assert verdicts(answer)["cluster"] == "fails"
    assert verdicts(answer)["Temporal server"] == "holds"


async def test_the_pollers_of_a_killed_worker_are_not_called_alive(stage: Stage, tmp_path: Path) -> None:
    """A poll stays in the server's list for minutes; a worker that is killed says nothing."""
    world = a_world(tmp_path, a_ready_pool())
    settings = read_settings({}, cluster="killed", world=world.file)
    with working(world, "killed") as worker:
        await until_verdict(settings, "planning", "holds")
        await until_verdict(settings, "workers on plan", "holds")
        os.killpg(worker.pid, signal.SIGKILL)
        await until_verdict(settings, "workers on control", "fails")
        answer = await doctor(settings)

    found = {check.name: check for check in answer.checks}
    assert [found[f"workers on {queue}"].verdict for queue in ("control", "waits", "cloud")] == ["fails"] * 3
    assert "none answers a question" in found["workers on control"].found


async def test_a_scheduler_that_begins_anew_again_and_again_is_not_called_well(stage: Stage, tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool())
    settings = read_settings({}, cluster="anew", world=world.file)
    client = await stage.temporal.client()
    for _ in range(2):
        handle = await client.start_workflow(
            SCHEDULER,
            SchedulerState(cluster="anew"),
            id=scheduler_id("anew"),
            task_queue=task_queue("anew", "control"),
        )
        await handle.terminate("as if the server had done it")
    with working(world, "anew"):
        await until_verdict(settings, "Scheduler", "fails", "begun anew 2 times")


async def until_verdict(settings: Settings, name: str, verdict: str, words: str = "") -> None:
    """What Temporal's lists show may lag."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while True:
        answer = await doctor(settings)
        found = {check.name: check for check in answer.checks}[name]
        if found.verdict == verdict and words in found.found:
            return
        assert asyncio.get_running_loop().time() < deadline, doctor_text(answer)
        await asyncio.sleep(0.3)


async def test_the_log_has_a_launch_and_a_disruption_with_prices_and_savings_add_them_up(
    stage: Stage, tmp_path: Path
) -> None:
    world = SimulatedWorld.create(tmp_path / "world.db")
    settings = read_settings({}, cluster="recorded", world=world.file)
    empty = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
    for body in (a_node_class(), pool_manifest(disruption=empty), a_deployment(1)):
        world.apply(body)
    began = time.time()

    with world.playing(), working(world, "recorded"):
        await until(lambda: initialised(world), "a node is initialised")
        claim = world.objects("NodeClaim")[0]["metadata"]["name"]
        world.apply(a_deployment(0))
        await until(lambda: not world.objects("NodeClaim"), "the empty node is gone")
        entries = await until_recorded(settings, began, 3)
        saved = await answered_here(settings, "savings", since=format_time(began))

    by_kind = {entry.kind: entry for entry in entries}
    launch, disruption, end = by_kind["launch"], by_kind["disruption"], by_kind["termination"]
    assert (launch.claims, launch.outcome, launch.reason) == ((claim,), "initialised", "Provisioned")
    assert launch.instance_type and launch.zone and launch.capacity_type
    assert (disruption.outcome, disruption.reason, disruption.claims) == ("done", "Empty", (claim,))
    assert disruption.price_before and disruption.price_before == disruption.saved
    assert (end.outcome, end.disruption) == ("terminated", disruption.workflow)
    assert (saved.total.moves, saved.total.undone, saved.total.predicted) == (1, 0, disruption.saved)
    emptied = await answered_here(settings, "log", since=format_time(began), reason="empty")
    assert len(log_text(emptied).splitlines()) == 3
    await assert_kept_when_forgotten(await stage.temporal.client(), settings, tmp_path / "kept", entries)


async def assert_kept_when_forgotten(
    client: Client, settings: Settings, folder: Path, entries: tuple[Entry, ...]
) -> None:
    """What was kept is read as it was when Temporal has it no more; and while it has it, nothing comes twice."""
    since, later = min(entry.began for entry in entries), time.time() + 7200.0
    settings = settings.model_copy(update={"record": str(folder)})
    assert await keep_up(client, Archive(FolderObjects(folder), settings.cluster), later) >= 20, (
        "of the day of retention"
    )
    assert (await answered_here(settings, "log", since=format_time(since))).entries == entries
    for entry in entries:
        gone = WorkflowExecution(workflow_id=entry.workflow, run_id=entry.run)
        request = DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=gone)
        await client.workflow_service.delete_workflow_execution(request)

    deadline = asyncio.get_running_loop().time() + SECONDS
    forgetful = settings.model_copy(update={"record": ""})
    while (await answered_here(forgetful, "log", since=format_time(since))).entries:
        assert asyncio.get_running_loop().time() < deadline, "Temporal has not forgotten them"
        await asyncio.sleep(0.3)
    assert (await answered_here(settings, "log", since=format_time(since))).entries == entries
    shown = await answered_here(settings, "history", entries[0].claims[0])
    assert {story.workflow for story in shown.stories} == {entry.workflow for entry in entries}
    with pytest.raises(CommandFailed):
        await answered_here(forgetful, "history", entries[0].claims[0])


async def until_recorded(settings: Settings, since: float, count: int) -> tuple[Entry, ...]:
    """Temporal's list may lag behind the histories."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while True:
        found: tuple[Entry, ...] = (await answered_here(settings, "log", since=format_time(since))).entries
        over = all(entry.outcome not in ("running", "") and entry.ended is not None for entry in found)
        if len(found) == count and over:
            return found
        assert asyncio.get_running_loop().time() < deadline, found
        await asyncio.sleep(0.3)
