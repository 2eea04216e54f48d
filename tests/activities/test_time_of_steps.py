"""A drain and a plan run for hours. No answer that is not the API servers' own, or of one of them alone, changes the
time that they go by, and none of them goes on while this worker may not act."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from pathlib import Path

import pytest
from aiohttp import web
from temporalio.testing import ActivityEnvironment

from dovetail.activities.shared.every_step.step_guard import time_of_steps
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.requests import Request
from dovetail.messages.orders import OrdersRequest
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model import names
from dovetail.ports.clock import unfit_clock
from dovetail.ports.failures import Failure, Retryable
from dovetail.wiring.world import open_world
from tests.adapters.kube.fake_server import Reply, fake_server, says
from tests.adapters.kube.test_server_clock import Machine
from tests.cli.worlds import settings_of
from tests.worker.test_pauses import an_expired_world, step_of
from worlds.disruption import a_pair, a_pod
from worlds.fakes import (
    FakePods,
    World,
    drain_ports,
    unlimited,
)

HOURS = 7200.0
RIGHT = says(200, {"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": []})
OTHERS: dict[str, Reply] = {
    "a page": says(502, b"<html>bad gateway</html>"),
    "no route": says(404, b"<html>nothing here</html>"),
    "a page for done": says(200, b"<html>We will be back soon</html>"),
    "an answer that something kept": says(200, {"kind": "NodeList"}, {"Age": "60"}),
    "one of the API servers": RIGHT,
}
ASKED = Request(method="GET", path="/api/v1/nodes", subject="Nodes")


class Enough(Exception):
    """The test has seen enough."""


@dataclass
class Drain:
    """A node with an hour of grace, and a pod that a PDB keeps. Between two looks one answer arrives."""

    machine: Machine
    client: Client
    say: Callable[[Reply, float], None]
    answers: list[tuple[Reply, float]] = field(default_factory=list)
    kept: bool = True

    def __post_init__(self) -> None:
        begun = self.machine.server()
        self.world = World(clock=begun)
        claim = {
            "deleting_since": begun,
            "termination_grace": 3600.0,
            "finalizers": (names.TERMINATION_FINALIZER,),
        }
        pair = a_pair("n0", claim=claim, node={"deleting_since": begun, "finalizers": ("x",)})
        pod = a_pod("n0", name="db-0", grace_seconds=60)
        self.world.put(pair.claim, pair.node, pod)
        self.pods = FakePods(self.world)
        self.pods.answers[pod.uid] = "blocked"
        self.departure = Departure(
            claim=ClaimRef(name=pair.claim.name, uid=pair.claim.uid, pool="a"),
            provider_id=pair.claim.provider_id,
            nodes=("n0",),
            node_uids=(pair.node.uid,),
            is_final=True,
            tainted=begun,
        )

    async def run(self, answers: Sequence[tuple[Reply, float]]) -> None:
        """Until these have arrived, a second apart, and one more look has been made."""
        world, clock, left = self.world, self.machine.clock, [*answers, None]
        now = time_of_steps(clock.now, lambda: unfit_clock(clock))

        async def pause(seconds: float) -> None:
            self.machine.uptime += 1.0
            answer = left.pop(0)
            if answer is None:
                raise Enough
            self.say(*answer)
            with suppress(Failure):
                await self.client.call(ASKED)

        ports = drain_ports(world, pods=self.pods)
        drain = DrainNode(ports, unlimited(EvictionPace(now)), now, pause)
        await drain.drain_node(self.departure)

    def asked(self, what: str) -> list[str]:
        return [line for line in self.world.ledger if line.startswith(what)]


@asynccontextmanager
async def a_drain(folder: Path) -> AsyncIterator[Drain]:
    machine = Machine(0.0)

    def dated(reply: Reply, ahead: float) -> Reply:
        async def answer(request: web.Request) -> web.StreamResponse:
            response = await reply(request)
            response.headers["Date"] = formatdate(machine.server() + ahead, usegmt=True)
            return response

        return answer

    async with fake_server(folder) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()), clock=machine.clock)
        await client.open()
        drain = Drain(machine, client, lambda reply, ahead: server.on(ASKED.path, dated(reply, ahead)))
        drain.say(RIGHT, 0.0)
        await client.call(ASKED)
        try:
            yield drain
        finally:
            await client.close()


@pytest.mark.parametrize("ahead", [HOURS, -HOURS])
@pytest.mark.parametrize("other", OTHERS)
async def test_answers_from_the_side_change_no_drain(tmp_path: Path, other: str, ahead: float) -> None:
    """Two hours ahead it was past every deadline: the pod was deleted with a second of grace in place of its minute."""
    async with a_drain(tmp_path) as drain:
        with pytest.raises(Enough):
            times = 2 if other == "one of the API servers" else 20
            await drain.run([(RIGHT, 0.0), *[(OTHERS[other], ahead)] * times, (RIGHT, 0.0)])
        assert drain.asked("evict") and not drain.asked("force")
        assert abs(drain.machine.clock.now() - drain.machine.server()) < 2.0


@pytest.mark.parametrize("ahead", [HOURS, -HOURS])
async def test_a_drain_ends_while_the_clocks_are_far_apart_and_then_goes_on_as_if_nothing_had_been(
    tmp_path: Path, ahead: float
) -> None:
    """What it remembered by the wrong clock kept a pod for two hours that its PDB had long let go."""
    async with a_drain(tmp_path) as drain:
        with pytest.raises(Retryable, match=r"no step is taken: the clock of this worker is 7(200|199) s"):
            await drain.run([(RIGHT, ahead)] * 20)
        assert unfit_clock(drain.machine.clock) and not drain.asked("force")

        drain.say(RIGHT, 0.0)
        await drain.client.call(ASKED)
        assert not unfit_clock(drain.machine.clock), "this machine's clock and the answer agree"
        drain.pods.answers.clear()
        before = len(drain.asked("evict"))
        with suppress(Enough):
            await drain.run([(RIGHT, 0.0)])
        assert len(drain.asked("evict")) > before and not drain.asked("force")


async def test_a_step_of_the_worker_that_runs_ends_as_soon_as_it_may_not_act(tmp_path: Path) -> None:
    """As the worker wires it, and for each reason: a Karpenter that is started beside it decides on the same nodes. One
    that may not act yet starts all the same."""
    simulated, why = an_expired_world(tmp_path, replicas=1), ["it may not act as it starts"]
    simulated.patch("Namespace", "kube-system", {"metadata": {"annotations": {names.PAUSED: "expiry"}}})
    opened = await open_world(settings_of(simulated))
    world = replace(opened, why_unfit=lambda: why[0])
    try:
        look: Callable[[OrdersRequest], Awaitable[object]] = step_of(settings_of(simulated), world, "await_orders")
        why[0] = ""
        running = asyncio.ensure_future(ActivityEnvironment().run(look, OrdersRequest()))
        done, _ = await asyncio.wait([running], timeout=1.0)
        assert not done
        why[0] = "Karpenter runs in this cluster"
        simulated.patch("Namespace", "kube-system", {"metadata": {"annotations": {names.PAUSED: None}}})
        with pytest.raises(Retryable, match="no step is taken: Karpenter runs in this cluster"):
            await asyncio.wait_for(running, 60.0)
    finally:
        await opened.close()
