"""Takes over the waits of a killed worker when pods or claims show that nobody answers them.

The singletons' idle waits send a heartbeat once a minute at most, to keep an idle cluster cheap; by heartbeats alone a
killed worker would be noticed only then. But every worker sees the same cluster: a pod that nobody answers, a claim
that was deleted and stays. When that lasts for three seconds, a worker that does not hold the wait itself asks Temporal
which worker does, and what it has reported since (`activities/shared/waits/sight.py`); asking is no billed action. A
holder that reports to have seen them lives, however long it computes and whatever it answers. A holder that reports
nothing new is gone: all singletons that wait in it are poked, so that they ask for their waits again and a living
worker takes them.

A poke of a worker that does live costs it one look, so the same subject causes pokes more and more rarely.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.activities.orders.await_orders import AwaitOrders
from dovetail.activities.provisioning.await_provisioning_plan import AwaitProvisioningPlan
from dovetail.activities.shared.running_workflows import ANSWER_TIMEOUT, is_running
from dovetail.activities.shared.waits.sight import Reported, reported_in
from dovetail.connection.owner import singletons_of
from dovetail.connection.presence import TemporalPresence
from dovetail.lifecycle.unfinished import leaving_unowned
from dovetail.messages.workflow_ids import caretaker_id, claim_owner_id, scheduler_id
from dovetail.model.objects.watched_kinds import FLEET, PLACEMENT
from dovetail.model.values.backoff import Backoff
from dovetail.placement.triggers import leaving_uids, pending_uids, unpromised
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.ports.view import ClusterView
from dovetail.worker.predecessors import STARTED, take_over
from dovetail.worker.steps import Wiring

LOOK_SECONDS: Final = 1.0
LOOK_SHARE: Final = 20.0  # a look at many pods comes rarer: it takes a twentieth of the time at most
UNANSWERED_SECONDS: Final = 3.0
SILENT_SECONDS: Final = 5.0  # of a wait that is at work, and then says so every two seconds
POKE_SECONDS: Final = 5.0  # between two pokes of this process, at least
POKES: Final = Backoff(first=2 * POKE_SECONDS, longest=900.0)  # between two for the same one
OWNERS_AT_ONCE: Final = 10  # that one look asks for

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Subject:
    """A pod or claim that waits: its version, and the workflow that would show that it is being cared for."""

    version: int
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """The wait that is under way, the worker that holds it, and the last that it reported."""

    wait: tuple[str, int]  # its number and attempt
    worker: str
    heard: int  # nanoseconds of the server's clock
    reported: Reported = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """An idle wait of a singleton, and the subjects that wait for it."""

    workflow_id: str
    step: str
    subjects: Callable[[], Mapping[str, Subject]]


@dataclass(slots=True)
class _Waiting:
    subject: Subject
    since: float
    due: float
    pokes: int = 0
    settled: bool = False


def pods_in(view: ClusterView) -> Mapping[str, Subject]:
    """The pods that ask for a plan."""
    snapshot = view.snapshot(PLACEMENT)
    waiting = unpromised(snapshot, pending_uids(snapshot) | leaving_uids(snapshot))
    return {uid: Subject(int(snapshot.pods[uid].resource_version or 0)) for uid in waiting}


def departures_in(cluster: str, view: ClusterView, catalogues: Catalogues) -> Mapping[str, Subject]:
    """The claims and Nodes that were deleted."""
    snapshot = replace(view.snapshot(FLEET), supported_node_classes=catalogues.supported_classes())
    return {
        uid: Subject(version, claim_owner_id(cluster, claim) if claim else "")
        for uid, (version, claim) in leaving_unowned(snapshot).items()
    }


def waits_of(cluster: str, view: ClusterView, catalogues: Catalogues) -> tuple[Wait, ...]:
    """The waits whose subjects this worker can see."""
    return (
        Wait(
            workflow_id=scheduler_id(cluster),
            step=AwaitProvisioningPlan.await_provisioning_plan.__name__,
            subjects=partial(pods_in, view),
        ),
        Wait(
            workflow_id=caretaker_id(cluster),
            step=AwaitOrders.await_orders.__name__,
            subjects=partial(departures_in, cluster, view, catalogues),
        ),
    )


class Doubt:
    """Whether the worker that holds one wait is gone."""

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self._waiting: dict[str, _Waiting] = {}
        self._holder: Holder | None = None
        self._unchanged = 0.0  # since when it is as it is

    def see(self, now: float) -> None:
        found = self.wait.subjects()
        self._waiting = {
            uid: self._waiting.get(uid) or _Waiting(subject, now, now + UNANSWERED_SECONDS)
            for uid, subject in found.items()
        }

    @property
    def is_open(self) -> bool:
        """Whether a subject waits that the holder is not known to have seen."""
        return any(not one.settled for one in self._waiting.values())

    def forget(self) -> None:
        self._holder = None

    async def lost(self, client: Client, now: float) -> str:
        """The worker that holds the wait and is gone; empty if there is none."""
        await self._settle_owned(client, now)
        holder = await holder_of(client, self.wait) if self.is_open else None
        if holder is None or holder.worker == client.identity:
            self._holder = None
            return ""
        if holder != self._holder:
            self._unchanged = now
        self._holder = holder
        for one in self._waiting.values():
            if not holder.reported.at_work and holder.reported.version >= one.subject.version:
                one.settled = True
        patience = SILENT_SECONDS if holder.reported.at_work else UNANSWERED_SECONDS
        if now - self._unchanged < patience or not self._due(now):
            return ""
        return holder.worker

    def poked(self, now: float) -> None:
        self._holder = None
        for one in self._due(now):
            one.pokes += 1
            one.due = now + POKES.pause(one.pokes)

    def _due(self, now: float) -> list[_Waiting]:
        return [one for one in self._waiting.values() if not one.settled and now >= one.due]

    async def _settle_owned(self, client: Client, now: float) -> None:
        owned = [one for one in self._due(now) if one.subject.owner]
        for one in owned[:OWNERS_AT_ONCE]:
            one.settled = await is_running(client, one.subject.owner)


async def holder_of(client: Client, wait: Wait) -> Holder | None:
    """Who holds the wait; None while it is only being handed out, or while its workflow does something else."""
    described = await client.get_workflow_handle(wait.workflow_id).describe(rpc_timeout=ANSWER_TIMEOUT)
    for step in described.raw_description.pending_activities:
        if step.activity_type.name == wait.step and step.state == STARTED:
            return Holder(
                wait=(step.activity_id, step.attempt),
                worker=step.last_worker_identity,
                heard=max(step.last_heartbeat_time.ToNanoseconds(), step.last_started_time.ToNanoseconds()),
                reported=reported_in(await _details(client, step)),
            )
    return None


async def _details(client: Client, step: PendingActivityInfo) -> list[Any]:
    if not step.heartbeat_details.payloads:
        return []
    return await client.data_converter.decode(step.heartbeat_details.payloads)


@dataclass(slots=True, kw_only=True)
class Unanswered:
    """One worker's watch over the waits that others hold."""

    waits: Sequence[Wait]
    singletons: Sequence[str]  # poked together: who is gone for one is gone for all
    client: Callable[[], Client]
    holds: Callable[[str, str], bool]  # whether that step of that workflow runs here
    silent: Callable[[], bool]  # while Temporal is away, or this worker takes no steps
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    doubts: list[Doubt] = field(init=False)
    poked_at: float = field(init=False, default=-POKE_SECONDS)

    def __post_init__(self) -> None:
        self.doubts = [Doubt(wait) for wait in self.waits]

    async def watch(self) -> None:
        while True:
            took = await self.look()
            await self.sleep(max(LOOK_SECONDS, took * LOOK_SHARE))

    async def look(self) -> float:
        """Look once; answers how many seconds it took to see who waits."""
        began = self.now()
        seen = [doubt for doubt in self.doubts if self._sees(doubt)]
        took = self.now() - began
        for doubt in seen:
            await self._ask(doubt)
        return took

    def _sees(self, doubt: Doubt) -> bool:
        """Whether to ask about it; not if this worker cannot see the subjects, or holds the wait itself."""
        if self.silent() or self.holds(doubt.wait.step, doubt.wait.workflow_id):
            doubt.forget()
            return False
        try:
            doubt.see(self.now())
        except Failure as failure:
            _log.debug("cannot see who waits for %s: %s", doubt.wait.step, failure)
            return False
        return doubt.is_open

    async def _ask(self, doubt: Doubt) -> None:
        try:
            lost = await doubt.lost(self.client(), self.now())
            if lost and self.now() - self.poked_at >= POKE_SECONDS:
                self.poked_at = self.now()
                doubt.poked(self.now())
                _log.info("worker %s holds %s and does not answer: its waits are taken over", lost, doubt.wait.step)
                await take_over(self.client(), [*self.singletons], lambda worker: worker == lost)
        except RPCError as error:
            _log.debug("cannot find out who holds %s: %s", doubt.wait.step, error)


def unanswered_of(
    wiring: Wiring, client: Callable[[], Client], presence: TemporalPresence, holds: Callable[[str, str], bool]
) -> Unanswered:
    cluster, world = wiring.settings.cluster, wiring.world
    return Unanswered(
        waits=waits_of(cluster, world.view, world.catalogues),
        singletons=singletons_of(cluster),
        client=client,
        holds=holds,
        silent=lambda: presence.is_away or bool(world.why_unfit()),
    )
