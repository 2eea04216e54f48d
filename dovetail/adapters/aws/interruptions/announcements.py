"""The port Interruptions over SQS and EC2: the queue's messages, and what EC2's own checks find (AWS-136).

The checks do not need a queue: without one an impaired instance is still replaced.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.shortages import Shortage, Shortages
from dovetail.adapters.aws.interruptions import instance_checks
from dovetail.adapters.aws.interruptions.queue import WAIT_SECONDS, WarningQueue
from dovetail.adapters.aws.meters import count
from dovetail.adapters.aws.resources.reservations import Reservations
from dovetail.messages.interruptions import TAKEN_BACK, Interruption, Warned
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Forbidden
from dovetail.ports.interruptions import Message

_log = logging.getLogger(__name__)

_LATER_SECONDS: Final = 600.0  # without the right to ask; a policy that is mended needs no restart


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningSources:
    """Where warnings come from, and what learns from them."""

    calls: Calls
    queue: WarningQueue | None  # None: no queue is named
    shortages: Shortages
    reservations: Reservations


class AwsInterruptions:
    """Warnings from the queue, and problems that EC2's checks find."""

    def __init__(self, sources: WarningSources, clock: Callable[[], float]) -> None:
        self._calls, self._queue, self._clock = sources.calls, sources.queue, clock
        self._shortages, self._reservations = sources.shortages, sources.reservations
        self._check_from = float("-inf")  # by our clock: before that, the right to ask was missing
        self._unhealthy: frozenset[tuple[str, str]] = frozenset()  # (instance, category)

    async def receive(self) -> tuple[Message, ...]:
        if self._queue is None:
            await asyncio.sleep(WAIT_SECONDS)
            return ()
        return await self._queue.receive()

    async def try_reading(self) -> None:
        if self._queue is not None:
            await self._queue.try_reading()

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        if self._queue is not None:
            await self._queue.acknowledge(receipts)

    async def troubles(self) -> tuple[Interruption, ...]:
        if self._clock() < self._check_from:
            return ()
        try:
            found = await instance_checks.troubles(self._calls, self._clock())
            now = frozenset((instance, each.reason) for each in found for instance in each.instances)
            for _, category in sorted(now - self._unhealthy):  # once until it is healthy again (AWS-139)
                count("interruption_instance_status_unhealthy_total", {"category": category})
            self._unhealthy = now
            return found
        except Forbidden as failure:
            self._check_later(failure)
            return ()

    async def borne_out(self, warned: Collection[Warned]) -> frozenset[Warned]:
        """Without the right to ask, the queue is believed, except about mass reclaims of capacity."""
        if self._clock() >= self._check_from:
            try:
                return await instance_checks.borne_out(self._calls, warned, self._clock())
            except Forbidden as failure:
                self._check_later(failure)
        return frozenset(each for each in warned if each[1] not in TAKEN_BACK)

    def _check_later(self, failure: Forbidden) -> None:
        _log.warning("the cloud's checks of instances are not read for %.0f min: %s", _LATER_SECONDS / 60, failure)
        self._check_from = self._clock() + _LATER_SECONDS

    async def learn_from(self, interruption: Interruption, claim: NodeClaim) -> None:
        name, zone = claim.labels.get(core.INSTANCE_TYPE, ""), claim.labels.get(core.ZONE, "")
        if interruption.reason == "spot_interrupted" and name and zone:
            short = Shortage(capacity_type=core.CAPACITY_SPOT, instance_type=name, zone=zone)
            await self._shortages.remember([short])
        if interruption.reason == "capacity_reservation_interrupted":
            reservation = claim.labels.get(names.RESERVATION_ID, "")
            if reservation:
                self._reservations.exhausted(reservation)
                await self._shortages.remember([Shortage(capacity_type=core.CAPACITY_RESERVED, scope=reservation)])
