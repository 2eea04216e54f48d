"""Plays one case from an empty cluster to its last phase: which calls were made, and what the cluster then held.

Phases are those of the recording: `start` until the worker serves, `class` until the classes have settled, `launch`
until every claim is initialised and tagged, and one for each step. A phase does not wait for what was recorded: it
ends when this cluster is at rest, or when its time is over.
"""

import asyncio
import contextlib
import shutil
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import orjson

from acceptance.traffic.cases import Case
from acceptance.traffic.lane import Lane
from acceptance.traffic.looking import Look, as_recorded, is_true, look, status_of
from acceptance.traffic.paths import PODS, collection_of
from acceptance.traffic.steps import Steps, complete_pod, create
from acceptance.traffic.worker import PlayedWorker, environment
from dovetail.cli.demo.temporal_server import stop_process
from dovetail.model.values.json import Json

LOOK_SECONDS: Final = 0.3
QUIET_SECONDS: Final = 1.0  # no call to AWS for this time, polling aside, ends a phase that has settled
START_SECONDS: Final = 20.0  # for what is called beside the worker's start
START_QUIET: Final = 4.0  # the reader of warnings is a workflow, and begins a while after the rest
PATIENCE: Final = 60.0  # to settle, on a busy machine; upstream's recorder gave a class ten seconds on an idle one
POLLING: Final = frozenset({"ReceiveMessage", "DescribeInstanceStatus", "ListInstanceProfiles"})
# An instance without a claim that is half of all is looked at for a minute before it is ended (decision record 75).
ALONE_SECONDS: Final = 90.0
_TAGGED: Final = "karpenter.k8s.aws/tagged"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPhase:
    """One phase: the ledger's lines in it, and the objects at its end."""

    name: str
    seconds: float
    entries: list[Json]
    objects: Json


@dataclass(slots=True, kw_only=True)
class Played:
    """A case as it went."""

    started: bool = True
    prepared: float = 0.0  # seconds until the servers were as new
    phases: list[PlayedPhase] = field(default_factory=list)
    rejected: list[Json] = field(default_factory=list)
    vanished: dict[str, float] = field(default_factory=dict)  # provider id → when its NodeClaim was first missed
    nodes_seen: dict[str, float] = field(default_factory=dict)  # provider id → when its Node was created


@dataclass(slots=True, kw_only=True)
class _Stage:
    """What playing works with."""

    case: Case
    lane: Lane
    worker: PlayedWorker
    played: Played
    since: int = 0
    published: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)


def keep(played: Played, file: Path) -> None:
    """Write it down, to be compared again."""
    file.write_bytes(orjson.dumps(asdict(played)))


def kept(file: Path) -> Played:
    """What was written down."""
    found = orjson.loads(file.read_bytes())
    return Played(**{**found, "phases": [PlayedPhase(**phase) for phase in found["phases"]]})


async def play(case: Case, lane: Lane, folder: Path) -> Played:
    """Play one case; what it leaves is removed by the next."""
    if case.unknown():
        raise ValueError(f"the case gives {', '.join(case.unknown())}, which this runner does not know")
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)  # an earlier run's Temporal would remember what it had under way
    folder.mkdir(parents=True)
    temporal, _ = await asyncio.gather(lane.temporal(folder), lane.emptied())
    try:
        if case.given.get("world"):
            lane.cloud.control("PATCH", "world", case.given["world"])
        declared = case.given.get("env") or {}
        worker = PlayedWorker(environment(lane, temporal.address, declared), folder / "worker.log")
        stage = _Stage(case=case, lane=lane, worker=worker, played=Played(prepared=time.monotonic() - began))
        stage.since = _last(lane)
        try:
            await _phases(stage)
        finally:
            await worker.stop(signal.SIGKILL)
    finally:
        await asyncio.to_thread(stop_process, temporal.process, signal.SIGKILL)
    return stage.played


def _last(lane: Lane) -> int:
    """The number of the ledger's last line."""
    entries = lane.cloud.control("GET", "ledger?since=0")["entries"]
    return int(entries[-1]["seq"]) if entries else 0


async def _phases(stage: _Stage) -> None:
    await _phase(stage, "start", lambda: _start(stage))
    await _phase(stage, "class", lambda: _declare(stage))
    if stage.case.objects("pods"):
        await _phase(stage, "launch", lambda: _launch(stage))
    steps = Steps(stage.lane, stage.worker)
    for number, step in enumerate(stage.case.steps, 1):
        await _phase(stage, f"step{number}", lambda step=step: _step(stage, steps, step))  # type: ignore[misc]


async def _phase(stage: _Stage, name: str, act: Callable[[], Awaitable[None]]) -> None:
    began = time.monotonic()
    await act()
    seen = await _look(stage, with_events=True)
    entries = _entries(stage)
    stage.since += len(entries)
    objects = as_recorded(seen, stage.lane.cloud.instances(), stage.published)
    seconds = time.monotonic() - began
    stage.played.phases.append(PlayedPhase(name=name, seconds=seconds, entries=entries, objects=objects))


async def _look(stage: _Stage, *, with_events: bool = False) -> Look:
    """Look, and note which claims have gone since and which Nodes have come: orders are judged by that."""
    seen = await look(stage.lane, with_events=with_events)
    now = time.time()
    present = {(each.get("status") or {}).get("providerID") or "" for each in seen.node_claims} - {""}
    for gone in stage.claimed - present:
        stage.played.vanished.setdefault(gone, now)
    stage.claimed |= present
    for node in seen.managed_nodes():
        stage.played.nodes_seen.setdefault(node["spec"]["providerID"], now)
    return seen


# ---- phases ------------------------------------------------------------------------------------------------


async def _start(stage: _Stage) -> None:
    stage.played.started = await stage.worker.start()
    if stage.played.started and "start" in stage.case.phases:
        await _until(stage, lambda _: _reads_warnings(stage), START_SECONDS, START_QUIET)


def _reads_warnings(stage: _Stage) -> bool:
    """Whether the reader of warnings, where there is a queue, has begun: it comes last, some seconds later."""
    if not stage.worker.environment.get("INTERRUPTION_QUEUE"):
        return True
    return any(each["op"] == "ReceiveMessage" for each in _entries(stage))


async def _declare(stage: _Stage) -> None:
    case = stage.case
    for body in [*case.objects("nodeClasses"), *case.objects("nodePools"), *case.objects("otherObjects")]:
        await _create(stage, collection_of(body), body)
    if not stage.played.started:
        await asyncio.sleep(1.0)
        return
    await _until(stage, _class_settled, PATIENCE)


def _settled(node_class: Json) -> bool:
    return status_of(node_class, "Ready") in {"True", "False"}


def _class_settled(seen: Look) -> bool:
    return all(
        _settled(each)
        and all(
            condition.get("observedGeneration") == each["metadata"]["generation"]
            for condition in each["status"]["conditions"]
        )
        for each in seen.node_classes
    ) and all(status_of(each, "Ready") in {"True", "False"} for each in seen.node_pools)


async def _launch(stage: _Stage) -> None:
    for pod in stage.case.objects("pods"):
        await _create(stage, PODS, complete_pod(pod))
    expected = stage.case.seconds("launch")
    if stage.case.expected.get("settled"):
        await _until(stage, _launched, max(PATIENCE, 3 * expected))
    else:
        await _until(stage, lambda _: False, expected)


def _launched(seen: Look) -> bool:
    """Every pod has its node, every claim is ready and tagged."""
    return all(each["spec"].get("nodeName") for each in seen.pods) and all(
        is_true(each, "Initialized") and (each["metadata"].get("annotations") or {}).get(_TAGGED) == "true"
        for each in seen.node_claims
    )


async def _step(stage: _Stage, steps: Steps, step: Json) -> None:
    before = {each["metadata"]["uid"] for each in (await _look(stage)).node_claims}
    await steps.do(step)
    left = wait_of(step)
    match step.get("until"):
        case None:
            await _until(stage, lambda _: False, left)
        case "noclaims":
            await _until(stage, lambda seen: not seen.node_claims, left)
        case "noclass":
            await _until(stage, lambda seen: not seen.node_classes, left)
        case "ready":
            await _until(stage, _launched, left)
        case "replaced":
            await _until(stage, lambda seen: _replaced(seen, before), left)
        case other:
            raise ValueError(f"a step waits until {other!r}, which this runner does not know")


def wait_of(step: Json) -> float:
    """How long to wait after what the step does: the recorder began to count there, too."""
    given = float(step.get("wait", 0))
    return max(given, ALONE_SECONDS) if "addInstance" in step else given


def _replaced(seen: Look, before: set[str]) -> bool:
    """Old NodeClaims gone and new initialised."""
    now = {each["metadata"]["uid"] for each in seen.node_claims}
    return bool(now) and not now & before and _launched(seen)


async def _create(stage: _Stage, path: str, body: Json) -> None:
    answer = await create(stage.lane.api, path, body)
    if answer.status >= 300:
        stage.played.rejected.append({"kind": body.get("kind", "Pod"), "message": answer.text})


async def _until(stage: _Stage, settled: Callable[[Look], bool], seconds: float, quiet: float = QUIET_SECONDS) -> None:
    """Until the cluster is as it should be and AWS has not been called for a moment; no longer than that."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            quiet_since, known = time.monotonic(), -1
            while True:
                seen = await _look(stage)
                calls = _calls_made(stage)
                if calls != known or not settled(seen):
                    quiet_since, known = time.monotonic(), calls
                if time.monotonic() - quiet_since >= quiet:
                    return
                await asyncio.sleep(LOOK_SECONDS)


def _calls_made(stage: _Stage) -> int:
    return sum(each["op"] not in POLLING for each in _entries(stage))


def _entries(stage: _Stage) -> list[Json]:
    """The ledger's lines of this phase."""
    found: list[Json] = stage.lane.cloud.control("GET", f"ledger?since={stage.since}")["entries"]
    return found
