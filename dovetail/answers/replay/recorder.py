"""Keeps the worker's decisions, and deletes the oldest when their size exceeds the budget.

A decision with a result is always kept; of those without, one in ten minutes, so that any past moment has a look near
it. Decisions made while another is being written are not kept: no decision waits for this.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from dovetail.activities.shared.looks.flights import DecisionKind
from dovetail.answers.look.recording import Decision, Recording, packed
from dovetail.disruption.choose import Choice
from dovetail.messages.plans import DisruptionPlan, ProvisioningPlan
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Failure
from dovetail.ports.kept_objects import KeptObjects
from dovetail.settings.deciding import deciding
from dovetail.settings.settings import Settings

IDLE_SECONDS: Final = 600.0  # between two kept decisions without a result
MEGABYTE: Final = 1_000_000
_NAME: Final = re.compile(
    r".*/(?P<id>(?P<at>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3})Z_(?P<kind>[a-z]+))_(?P<size>\d+)\.gz"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFlight:
    """A kept decision. `id` is its name for people."""

    id: str
    at: float
    kind: str
    size: int
    name: str  # of its object


@dataclass(frozen=True, slots=True)
class FlightStore:
    objects: KeptObjects
    cluster: str

    async def put(self, flight: Recording) -> None:
        """Keep one; its size is part of its name."""
        data = await asyncio.to_thread(packed, flight)
        kind = flight.decision.kind if flight.decision is not None else "snapshot"
        moment = datetime.fromtimestamp(flight.taken_at, UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
        await self.objects.put(f"{self._prefix}{moment}Z_{kind}_{len(data)}.gz", data)

    async def kept(self) -> tuple[KeptFlight, ...]:
        """Every kept decision, oldest first."""
        return tuple(_kept(await self.objects.names(self._prefix)))

    async def read(self, kept: KeptFlight) -> bytes | None:
        """The decision, packed; None if it was deleted meanwhile."""
        return await self.objects.get(kept.name)

    async def trim(self, most: int) -> None:
        """Delete the oldest until the rest has at most that many bytes."""
        kept = await self.kept()
        size = sum(each.size for each in kept)
        for each in kept:
            if size <= most:
                return
            await self.objects.delete(each.name)
            size -= each.size

    @property
    def _prefix(self) -> str:
        return f"{self.cluster}/flights/v1/"


@dataclass(slots=True)
class FlightRecorder:
    """Hands decisions to the store, one at a time."""

    store: FlightStore
    settings: Settings
    now: Callable[[], float] = time.time
    _writing: asyncio.Task[None] | None = None
    _last: dict[str, float] = field(default_factory=dict)  # by kind, when one was last kept

    def decided(
        self,
        kind: DecisionKind,
        snapshot: Snapshot,
        plan: Choice | ProvisioningPlan,
        first: frozenset[str] = frozenset(),
    ) -> None:
        """Keep it, unless it has nothing new or another is being written."""
        idle = not (plan.commands if isinstance(plan, DisruptionPlan) else getattr(plan, "proposed", ()))
        if self._writing is not None or (idle and self.now() - self._last.get(kind, 0.0) < IDLE_SECONDS):
            return
        self._last[kind] = self.now()
        flight = Recording(
            cluster=self.store.cluster,
            snapshot=snapshot,
            settings=deciding(self.settings),
            decision=Decision(kind=kind, plan=plan, first=first),
        )
        self._writing = asyncio.create_task(self._write(flight))

    async def close(self) -> None:
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self.store.objects.close()

    async def _write(self, flight: Recording) -> None:
        try:
            await self.store.put(flight)
            await self.store.trim(self.settings.flight_megabytes * MEGABYTE)
        except Failure as error:
            _log.warning("a decision could not be saved: %s", error)
        finally:
            self._writing = None


def _kept(names: Iterable[str]) -> list[KeptFlight]:
    found = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        at = datetime.strptime(match["at"], "%Y-%m-%dT%H-%M-%S.%f").replace(tzinfo=UTC).timestamp()
        found.append(KeptFlight(id=match["id"], at=at, kind=match["kind"], size=int(match["size"]), name=name))
    return sorted(found, key=lambda each: (each.at, each.kind))
