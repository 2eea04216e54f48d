"""The story of "Gates that ask Prometheus" in the guide: a canary is well, an error rate rises, Prometheus falls
silent, and the rest goes once it says that all is well again. Played with one that speaks its API, and with
Prometheus itself."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pytest
import yaml
from aiohttp import web

from dovetail.adapters.prometheus.client import Prometheus
from dovetail.model.own.gates import AlertsRule, Answer, AskedGate, GateResult, QueryRule
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure
from testbed.plane.unavailable import TestbedUnavailable
from testbed.prometheus import find_program
from testbed.prometheus.server import scraping
from tests.system.beside import beside
from tests.system.test_pauses import SMALL, shown
from tests.unavailable import no_prometheus
from tests.waiting import until_answered
from worlds.stage.stage import Stage, has_condition, node_class, node_pool

pytestmark = pytest.mark.temporal

NODES = 3
GOOD, BAD = 0.001, 0.5
ALERT = "CheckoutFails"
POLICY: Json = {
    "apiVersion": "dovetail.sh/v1alpha1",
    "kind": "DisruptionPolicy",
    "metadata": {"name": "careful"},
    "spec": {
        "rollout": {
            "steps": [{"name": "canary", "to": "1", "soak": "45s"}, {"name": "rest", "to": "100%"}],
            "gates": [
                {"name": "alerts", "alerts": {"firing": '{team="platform"}'}},
                {"name": "slo", "query": {"expr": "max(checkout_errors)", "max": "0.01", "every": "15s"}},
            ],
            "order": "Zone",
            "maxDuration": "24h",
        }
    },
}


class Told(Protocol):
    """What answers, and what it is told of the application."""

    url: str
    errors: float

    def silence(self) -> None:
        """It takes questions and answers none."""

    def speak(self) -> None:
        """It answers again."""


@dataclass
class Speaks:
    """One that speaks the API."""

    url: str = ""
    errors: float = GOOD
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    def silence(self) -> None:
        self.answers.clear()

    def speak(self) -> None:
        self.answers.set()

    async def query(self, request: web.Request) -> web.Response:
        asked = str((await request.post())["query"])
        await self.answers.wait()
        found: list[Json] = []
        if asked == 'ALERTS{alertstate="firing",team="platform"}':
            found = [{"metric": {"alertname": ALERT}, "value": [0, "1"]}] if self.errors > 0.9 else []
        elif asked == "max(checkout_errors)":
            found = [{"metric": {}, "value": [0, str(self.errors)]}]
        else:
            return web.json_response({"status": "error", "errorType": "bad_data", "error": "parse error"}, status=400)
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": found}})

    async def metrics(self, _: web.Request) -> web.Response:
        return web.Response(text=f"checkout_errors {self.errors}\n")


@asynccontextmanager
async def speaking() -> AsyncIterator[Speaks]:
    found = Speaks()
    found.speak()
    app = web.Application()
    app.router.add_post("/api/v1/query", found.query)
    app.router.add_get("/metrics", found.metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    found.url = f"http://{host}:{port}"
    try:
        yield found
    finally:
        found.speak()
        await runner.cleanup()


def verdicts(rollout: Json) -> dict[str, str]:
    return {gate["name"]: gate["result"] for gate in (rollout.get("status") or {}).get("gates", [])}


async def play(stage: Stage, told: Told, url: str) -> None:
    """The story. `url`: who is asked."""
    pool = node_pool([SMALL], budgets=[{"nodes": "100%"}])
    stage.world.apply(node_class())
    stage.world.apply(pool)
    stage.world.apply(POLICY)
    stage.deploy(NODES)
    stage.start_worker(DOVETAIL_PROMETHEUS_URL=url)
    await stage.until(lambda: stage.initialised(NODES) and stage.running_pods() == NODES, 120, "all pods run")
    before = {claim["metadata"]["uid"] for claim in stage.claims()}

    def rollout() -> Json:
        found = stage.world.objects("NodeRollout")
        return found[0] if found else {}

    def state() -> str:
        return str(((rollout().get("status") or {}).get("step") or {}).get("state", ""))

    def old() -> list[Json]:
        return [claim for claim in stage.claims() if claim["metadata"]["uid"] in before]

    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)
    await stage.until(lambda: state() == "Soaking", 180, "the canary soaks, as both gates pass")
    await stage.until(lambda: len(old()) == NODES - 1, 120, "the node that it replaced is gone")
    assert verdicts(rollout()) == {"nodes": "Passing", "alerts": "Passing", "slo": "Passing"}
    name = rollout()["metadata"]["name"]

    told.errors = BAD
    await stage.until(lambda: has_condition(rollout(), "Stalled"), 60, "the error rate holds it")
    assert verdicts(rollout())["slo"] == "Failing" and state() == "Judging"
    assert "gate slo: Failing, 0.5 is more than 0.01" in await shown(stage, "rollout", "status", name)
    held = await shown(stage, "explain", "node", old()[0]["status"]["nodeName"])
    assert "as gate slo is Failing: 0.5 is more than 0.01" in held

    told.silence()
    await stage.until(lambda: verdicts(rollout())["slo"] == "Unknown", 90, "nobody answers")
    assert len(old()) == NODES - 1 and stage.tainted() == []
    assert "did not answer" in await shown(stage, "rollout", "status", name)
    stage.world.scale("web", NODES + 1)  # while both questions hang, everything else goes on
    await stage.until(lambda: stage.running_pods() == NODES + 1, 120, "another pod has its node")

    told.errors = GOOD
    told.speak()
    await stage.until(lambda: state() == "Complete", 300, "the rest goes once it passes again")
    assert not old()
    story = await shown(stage, "rollout", "history", name)
    assert "canary: passed after" in story and "rest: passed after" in story


@beside
async def test_an_error_rate_and_a_silent_prometheus_hold_what_a_canary_began(stage: Stage) -> None:
    async with speaking() as told:
        await play(stage, told, told.url)


@dataclass
class Real:
    """Prometheus itself, which reads what the application serves. It is silenced by a stop of its process."""

    served: Speaks
    url: str
    pid: int

    @property
    def errors(self) -> float:
        return self.served.errors

    @errors.setter
    def errors(self, value: float) -> None:
        self.served.errors = value

    def silence(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def speak(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


RULES: Json = {
    "groups": [
        {
            "name": "checkout",
            "rules": [{"alert": ALERT, "expr": "checkout_errors > 0.9", "labels": {"team": "platform"}}],
        }
    ]
}


@contextmanager
def prometheus_of(served: Speaks, folder: Path) -> Iterator[Real]:
    try:
        program = find_program("prometheus", print)
    except TestbedUnavailable as error:
        no_prometheus(error)
    rules = folder / "rules.yaml"
    rules.write_text(yaml.safe_dump(RULES))
    with scraping(program, folder / "prometheus", [int(served.url.rsplit(":", 1)[1])], [rules]) as running:
        real = Real(served, f"http://127.0.0.1:{running.port}", running.pid)
        try:
            yield real
        finally:
            real.speak()


@pytest.mark.soak
async def test_the_same_with_prometheus_itself(stage: Stage, tmp_path: Path) -> None:
    async with speaking() as served:
        with prometheus_of(served, tmp_path) as real:
            await play(stage, real, real.url)


@pytest.mark.soak
async def test_prometheus_itself_is_understood(tmp_path: Path) -> None:
    """Alerts that fire, values, no number, nothing, a slip, and a range in place of a value."""
    async with speaking() as served:
        served.errors = 0.95
        with prometheus_of(served, tmp_path) as real:
            asked = Prometheus(url=real.url, agent="dovetail/test")
            alerts = AskedGate(name="alerts", alerts=AlertsRule(firing='{team="platform"}'))
            ignored = replace(alerts, alerts=AlertsRule(firing='{team="platform"}', ignore=f'{{alertname="{ALERT}"}}'))

            async def says(gate: AskedGate) -> tuple[GateResult, str]:
                try:
                    answer = Answer(at=1.0, samples=await asked.ask(gate.question))
                except Failure as failure:
                    answer = Answer(at=1.0, fault=str(failure))
                found = gate.judged(None, answer, 1.0)
                return found.result, found.message

            def query(expression: str) -> AskedGate:
                return AskedGate(name="slo", query=QueryRule(expression=expression, most=0.01))

            async def fires() -> bool:
                return await says(alerts) == (GateResult.FAILING, f"alerts fire: {ALERT}")

            await until_answered(fires, 60, "the alert fires")
            assert await says(ignored) == (GateResult.PASSING, "")
            assert await says(query("checkout_errors")) == (GateResult.FAILING, "0.95 is more than 0.01")
            assert await says(query("checkout_errors / 100")) == (GateResult.PASSING, "0.0095")
            assert await says(query("vector(0) / 0")) == (GateResult.UNKNOWN, "the answer is no number")
            assert (await says(query("nothing_has_this_name")))[0] == GateResult.UNKNOWN
            assert await says(query("scalar(vector(0))")) == (GateResult.PASSING, "0")
            slip, span = await says(query("sum(")), await says(query("checkout_errors[5m]"))
            assert slip[0] == span[0] == GateResult.UNKNOWN
            assert "parse error" in slip[1] and "(400)" in slip[1]
