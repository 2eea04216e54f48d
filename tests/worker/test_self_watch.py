"""What a worker answers of its own health over HTTP: /healthz, /readyz, /metrics."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dovetail.activities.shared.every_step.step_health import STUCK_SECONDS, StepHealth
from dovetail.background import supervised as supervision
from dovetail.background.supervised import stop, supervised
from dovetail.connection.presence import AWAY_AFTER, TemporalPresence
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import NotSeenYet, Throttled, Unauthenticated, Unreachable
from dovetail.telemetry.metrics.sources import Source
from dovetail.worker.endpoints import Answers
from dovetail.worker.http_server import Endpoint, Route
from dovetail.worker.self_watch import SelfWatch
from worlds.fakes import a_scrape


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class View:
    problem: str = ""

    def stale(self) -> dict[str, str]:
        return {}

    def snapshot(self, reads: object = None) -> Snapshot:
        if self.problem:
            raise NotSeenYet("cluster view", self.problem)
        return Snapshot(now=0.0)


@dataclass
class Poller:
    """A worker of one queue."""

    task_queue: str = "dovetail/c/control"
    is_running: bool = True


@dataclass
class Server:
    """Temporal, as far as a probe asks."""

    well: Callable[[], bool] = lambda: True

    @property
    def service_client(self) -> "Server":
        return self

    async def check_health(self, timeout: object) -> bool:
        return self.well()


@dataclass
class Probed:
    """A worker's endpoint, with everything behind it under the test's hand."""

    port: int = 0
    clock: Clock = field(default_factory=Clock)
    view: View = field(default_factory=View)
    poller: Poller = field(default_factory=Poller)
    server: Server = field(default_factory=Server)

    def __post_init__(self) -> None:
        self.steps = StepHealth(self.clock)
        self.presence = TemporalPresence("c", self.clock)
        self.presence.client = self.server  # type: ignore[assignment]
        self.watch = SelfWatch(
            view=self.view,  # type: ignore[arg-type]
            why_unfit=str,
            steps=self.steps,
            presence=self.presence,
            workers=[self.poller],  # type: ignore[list-item]
        )

    async def get(self, path: str) -> tuple[int, str]:
        def ask() -> tuple[int, str]:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        return await asyncio.to_thread(ask)


@pytest.fixture
async def probed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Probed]:
    monkeypatch.setattr(supervision, "_known", {})
    found = Probed()
    scrape = a_scrape(
        sources=(Source(lines=found.watch.lines),),
        view=found.view,
        supported=frozenset,
        settings=DisruptionSettings(),
        reader=InMemoryMetricReader(),
        observed=False,
    )
    answers = Answers(scrape=scrape, watch=found.watch)
    routes: dict[str, Route] = {"/healthz": answers.alive, "/readyz": answers.ready, "/metrics": answers.metrics}
    endpoint = Endpoint(host="127.0.0.1", port=0, routes=routes)
    await endpoint.start()
    assert endpoint.server is not None
    found.port = endpoint.server.sockets[0].getsockname()[1]
    yield found
    await endpoint.stop()


async def test_a_loop_whose_look_does_not_end_makes_the_worker_not_alive(probed: Probed) -> None:
    step = probed.steps.begin("c/scheduler", "await_disruption_plan", None, 1)
    probed.clock.now += STUCK_SECONDS - 1
    assert (await probed.get("/healthz"))[0] == 200
    probed.clock.now += 1

    status, text = await probed.get("/healthz")

    assert status == 503
    assert "the loop disruption has not come to the end of a look for 600 s" in text
    assert 'dovetail_loop_last_look_age_seconds{loop="disruption"} 600' in (await probed.get("/metrics"))[1]
    step.sleeps += 1
    assert (await probed.get("/healthz"))[0] == 200, "it sleeps until something changes, for an hour if need be"


async def test_a_step_that_fails_again_and_again_is_named_with_its_text(probed: Probed) -> None:
    """doctor, probes and metrics said that all was well while one pod's annotation stopped every disruption."""
    for attempt in range(1, 6):
        step = probed.steps.begin("c/scheduler", "await_disruption_plan", None, attempt)
        probed.steps.failed(step, ValueError("Exceeds the limit for integer string conversion"))
        probed.steps.end(step)

    status, text = await probed.get("/healthz")
    metrics = (await probed.get("/metrics"))[1]

    assert status == 200, "others may do what fails here: a restart would not help"
    assert "await_disruption_plan of c/scheduler has failed 5 times in a row" in text
    assert "Exceeds the limit for integer string conversion" in text
    assert 'dovetail_steps_failing{step="await_disruption_plan",failure="ValueError"} 1' in metrics


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (NotSeenYet("cluster view", "Pod: the watch is broken: connection refused"), 200),
        (Unreachable("NodeClaim/a", "connection refused"), 200),
        (Throttled("NodeClaim/a", "too many requests"), 200),
        (Unauthenticated("NodeClaim/a", "Unauthorized"), 503),
        (ValueError("a bug of ours"), 503),
    ],
)
async def test_an_api_server_that_is_away_for_longer_than_ten_minutes_has_no_worker_killed(
    probed: Probed, failure: Exception, status: int
) -> None:
    """All of them were, and none could start before it was back: the outage was followed by minutes of back-off."""
    for attempt in range(1, 70):
        for step in ("await_provisioning_plan", "await_disruption_plan", "await_orders", "keep_up"):
            begun = probed.steps.begin("c/x", step, None, attempt)
            probed.steps.failed(begun, failure)
            probed.steps.end(begun)
        probed.clock.now += 10

    found, text = await probed.get("/healthz")

    assert found == status
    assert "await_orders of c/x has failed 69 times in a row" in text
    assert 'dovetail_loop_last_look_age_seconds{loop="orders"} 690' in (await probed.get("/metrics"))[1]


async def test_a_background_task_that_fails_is_named(probed: Probed) -> None:
    async def work() -> None:
        raise KeyError("an answer that nobody foresaw")

    failed = asyncio.Event()

    async def pause(seconds: float) -> None:
        failed.set()
        await asyncio.Event().wait()

    task = supervised("aws prices", work, pause)
    await failed.wait()
    assert "aws prices has failed 1 times" in (await probed.get("/healthz"))[1]
    await stop(task)


async def test_ready_is_a_worker_whose_view_can_be_used_whose_pollers_run_and_that_temporal_answers(
    probed: Probed,
) -> None:
    def away() -> bool:
        raise RuntimeError("connection refused")

    assert await probed.get("/readyz") == (200, "ok\n")
    probed.view.problem = "the watch of Pods is broken"
    assert await probed.get("/readyz") == (503, "cluster view: the watch of Pods is broken\n")
    probed.view.problem = ""
    probed.poller.is_running = False
    assert await probed.get("/readyz") == (503, "nothing polls dovetail/c/control\n")
    probed.poller.is_running = True
    probed.server.well = away
    assert await probed.get("/readyz") == (503, "Temporal does not answer: connection refused\n")
    probed.server.well = lambda: True
    probed.watch.workers = ()
    assert await probed.get("/readyz") == (503, "the worker has not begun to poll\n")


async def test_a_worker_that_temporal_does_not_answer_says_so_and_is_not_restarted_for_it(probed: Probed) -> None:
    probed.presence.miss("connection refused")
    probed.clock.now += AWAY_AFTER
    probed.presence.miss("connection refused")

    status, text = await probed.get("/healthz")

    assert status == 200, "it still answers warnings and drains nodes; a fresh process could do no more"
    assert text == "ok\nTemporal is away: no answer for 8 s: connection refused\n"
    assert "dovetail_temporal_silent_seconds 8" in (await probed.get("/metrics"))[1]
    probed.watch.workers = ()
    assert await probed.get("/readyz") == (503, "Temporal is away: no answer for 8 s: connection refused\n")
