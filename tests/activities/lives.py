"""One claim's whole life in the simulated world, with a worker that dies where a test says.

A life is the steps of LaunchNode and TerminateNode in order, each tried until it succeeds, as Temporal would. Every
call of a step to a port is numbered; at one of them the worker is killed before or after its effect, or the attempt
hangs while another one runs (it timed out and lives on). What came of it is judged by the world's ledger alone.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Literal, TypeVar

from dovetail.activities.launch.await_registered_and_initialized import AwaitRegisteredAndInitialized, JoinPorts
from dovetail.activities.launch.kept_places import KeptPlaces
from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.shared.every_step.temporal_errors import NotYet
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.termination.await_detached import AwaitDetached, DetachPorts
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture, DeparturePorts
from dovetail.activities.termination.drain_node import DrainNode, DrainPorts
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.holds import HoldPorts, Holds
from dovetail.activities.termination.mover import NoMoves
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.activities.termination.unused_launches import UnusedLaunches
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model.names import PLAN, TERMINATION_FINALIZER
from dovetail.ports.failures import Retryable
from dovetail.ports.objects import NewClaim
from dovetail.wiring.simulated import SimulatedAdapter
from worlds.fakes import FakeCatalogues, unlimited
from worlds.fakes.ports import no_repairs
from worlds.manifests import EMBEDDED_CLASS

T = TypeVar("T")

Fault = Literal["none", "before", "after", "hang"]
TRIES = 400  # of one step; a step that needs more does not end


class Killed(BaseException):
    """The worker is gone: nothing of the step runs on."""


@dataclass(slots=True)
class Fate:
    """What happens at the n-th call of this life, or at its first call of that name."""

    fault: Fault = "none"
    at: int | str = -1
    calls: list[str] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, name: str, act: Callable[[], Awaitable[Any]]) -> Any:
        struck = self.at in (len(self.calls), name) and not self.reached.is_set()
        self.calls.append(name)
        if not struck or self.fault == "none":
            return await act()
        self.reached.set()
        if self.fault == "before":
            raise Killed
        if self.fault == "hang":
            self.hanging.set()
            await self.go_on.wait()
            return await act()
        await act()
        raise Killed


class Watched:
    """A port whose calls are numbered."""

    def __init__(self, port: object, fate: Fate) -> None:
        self._port, self._fate = port, fate

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if not iscoroutinefunction(method):
            return method  # no call

        async def call(*given: Any, **named: Any) -> Any:
            return await self._fate.call(name, lambda: method(*given, **named))

        return call


class Worker:
    """The steps over one adapter, made anew after each death."""

    def __init__(self, adapter: SimulatedAdapter, fate: Fate) -> None:
        claims: Any = Watched(adapter.claims, fate)
        nodes: Any = Watched(adapter.nodes, fate)
        pods: Any = Watched(adapter.pods, fate)
        cloud: Any = Watched(adapter.cloud, fate)
        notices: Any = adapter.notices
        now, view = time.time, adapter.view
        places = KeptPlaces(view, pods, notices, now, view)
        holds = Holds(HoldPorts(claims=claims, pods=pods, notices=notices, lookups=view, pauses=view), now)
        unused = UnusedLaunches(view, adapter.pools, now)
        self.launching = LaunchInstance(KnownClaims(view, claims), cloud, notices, now, catalogues=FakeCatalogues())
        self.joining = AwaitRegisteredAndInitialized(
            JoinPorts(lookups=view, claims=claims, nodes=nodes, places=places), now
        )
        self.departing = BeginAndEndDeparture(
            DeparturePorts(
                known=KnownClaims(view, claims),
                nodes=nodes,
                cloud=cloud,
                unused=unused,
                places=places,
                holds=holds,
                console="",
            ),
            now,
        )
        detach = DetachPorts(lookups=view, claims=claims, nodes=nodes, notices=notices, holds=holds, cloud=cloud)
        self.detaching = AwaitDetached(detach, now)
        self.draining = DrainNode(
            DrainPorts(
                mover=NoMoves(),
                lookups=view,
                claims=claims,
                nodes=nodes,
                pods=pods,
                notices=notices,
                cloud=cloud,
                pauses=view,
                detaching=self.detaching,
                holds=holds,
                repairs=no_repairs(now),
            ),
            unlimited(EvictionPace(now)),
            now,
        )
        self.terminating = TerminateInstance(KnownClaims(view, claims), cloud, now, self.departing)


class Life:
    """One claim."""

    def __init__(self, adapter: SimulatedAdapter, name: str, fate: Fate, worker: Worker | None = None) -> None:
        self.adapter, self.name, self.fate = adapter, name, fate
        self.worker = worker or Worker(adapter, fate)
        self.ref = ClaimRef(name=name, uid="")
        self.hanging: list[asyncio.Task[Any]] = []

    async def create(self) -> ClaimRef:
        claim = await self.adapter.claims.create(
            NewClaim(
                name=self.name,
                labels={"dovetail.sh/embeddednodeclass": EMBEDDED_CLASS.name},
                annotations={PLAN: f"{self.name}/0"},
                finalizers=(TERMINATION_FINALIZER,),
                owner=None,
                node_class=EMBEDDED_CLASS,
                requirements=(),
                requests={"cpu": 10**9},
            )
        )
        self.ref = ClaimRef(name=claim.name, uid=claim.uid)
        return self.ref

    async def launch(self) -> str:
        """LaunchNode's steps; how they ended."""
        launched = await self.step(lambda worker: worker.launching.launch_instance(self.ref))
        if launched.kind != "launched":
            return str(launched.kind)
        joined = await self.step(lambda worker: worker.joining.await_joined(self.ref))
        return "initialised" if joined.kind == "done" else str(joined.kind)

    async def terminate(self) -> None:
        """TerminateNode's steps."""
        departure: Departure = await self.step(lambda worker: worker.departing.begin_departure(self.ref))
        if departure.claim_gone:
            return
        if departure.nodes and not departure.instance_gone:
            await self.step(lambda worker: worker.draining.drain_node(departure))
            await self.step(lambda worker: worker.detaching.await_detached(departure))
        await self.step(lambda worker: worker.terminating.terminate_instance(departure))
        await self.step(lambda worker: worker.departing.release_claim(departure))

    async def step(self, make: Callable[[Worker], Awaitable[T]]) -> T:
        """One activity, tried until it succeeds; its worker may die, or an attempt may be given up while it lives."""
        for _ in range(TRIES):
            attempt = asyncio.ensure_future(make(self.worker))
            hanging = asyncio.ensure_future(self.fate.hanging.wait())
            await asyncio.wait({attempt, hanging}, return_when=asyncio.FIRST_COMPLETED)
            hanging.cancel()
            if not attempt.done():
                self.fate.hanging = asyncio.Event()
                self.hanging.append(attempt)
                self.worker = Worker(self.adapter, self.fate)
                continue
            try:
                return attempt.result()
            except Killed:
                self.worker = Worker(self.adapter, self.fate)
            except (NotYet, Retryable):
                await asyncio.sleep(0.02)
        raise AssertionError(f"{self.name}: a step does not end; last calls {self.fate.calls[-8:]}")

    async def release_hanging(self) -> None:
        """Let the attempts that hang go on, long after another one has done their work."""
        self.fate.go_on.set()
        if self.hanging:
            await asyncio.wait(self.hanging, timeout=60)
