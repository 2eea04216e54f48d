"""Which capacity reservations launches of a class may use, and how many instances are left in each (AWS-142 to
AWS-149).

A count may be too high, never too low: a launch that finds the reservation full sets it to zero, and the next plan
does without it.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.dated import Dated, Renewed
from dovetail.adapters.aws.resources.selectors import tag_filters
from dovetail.model.values.json import Json

EXPIRING_SECONDS: Final = 40 * 60.0  # EC2 takes a block's instances back from 30 minutes before its end
_COUNT_SECONDS: Final = 24 * 3600.0
_QUERY_SECONDS: Final = 60.0
_CRITERIA: Final = frozenset({"open", "targeted"})
_KINDS: Final = frozenset({"default", "capacity-block"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    id: str
    instance_type: str
    zone: str
    owner: str
    criteria: str
    kind: str  # default, capacity-block
    interruptible: bool
    count: int
    end: float | None
    expiring: bool = False

    @property
    def launched_with(self) -> str:
        """A fleet takes reservations of one kind only, and of capacity blocks one (AWS-79)."""
        alone = f"/{self.id}" if self.kind == "capacity-block" else ""
        return f"{self.kind}/{self.interruptible}{alone}"


def is_expiring(kind: str, end: float | None, now: float) -> bool:
    """Whether it is a block that EC2 takes back soon. By the clock: EC2 may not answer in its last hour (AWS-143)."""
    return kind == "capacity-block" and end is not None and end - now < EXPIRING_SECONDS


def read_reservation(raw: Json, now: float) -> Reservation | None:
    """None for one that has ended or whose kind we do not know (AWS-143)."""
    kind = raw.get("ReservationType") or "default"
    criteria = raw.get("InstanceMatchCriteria") or ""
    if kind not in _KINDS or criteria not in _CRITERIA:
        return None
    end: Any = raw.get("EndDate")
    until = end.timestamp() if isinstance(end, datetime) else None
    if until is not None and until <= now:
        return None
    return Reservation(
        id=raw["CapacityReservationId"],
        instance_type=raw.get("InstanceType", ""),
        zone=raw.get("AvailabilityZone", ""),
        owner=raw.get("OwnerId", ""),
        criteria=criteria,
        kind=kind,
        interruptible=bool(raw.get("Interruptible")),
        count=int(raw.get("AvailableInstanceCount", 0)),
        end=until,
    )


class Reservations:
    """Reservations as described within the last minute, or the last day while EC2 does not answer; and counts."""

    def __init__(self, calls: Calls, clock: Callable[[], float]) -> None:
        self._calls, self._clock = calls, clock
        self._asked = Renewed[str, list[Reservation]](_QUERY_SECONDS, lambda: self._clock())
        self._counts: dict[str, Dated[int]] = {}
        self.revision = 0

    async def of_class(self, node_class: NodeClass) -> list[Reservation]:
        """What the class selects, by id, each once."""
        found: dict[str, Reservation] = {}
        for term in node_class.spec.capacity_reservation_selector_terms or ():
            filters = [{"Name": "state", "Values": ["active"]}]
            if term.instance_match_criteria:
                filters.append({"Name": "instance-match-criteria", "Values": [term.instance_match_criteria]})
            if term.owner_id:
                filters.append({"Name": "owner-id", "Values": [term.owner_id]})
            filters += tag_filters(term.tags)
            named: Json = {"CapacityReservationIds": [term.id]} if term.id else {"MaxResults": 1000}
            for each in await self._query({"Filters": filters, **named}):
                if each.end is None or each.end > self._clock():  # it may have ended since it was described
                    found[each.id] = each
        return [self.counted(found[key]) for key in sorted(found)]

    async def ending(self, ids: Collection[str]) -> frozenset[str]:
        """Those of these reservations that are capacity blocks within 40 minutes of their end (AWS-148)."""
        active = [{"Name": "state", "Values": ["active"]}]
        found = await self._query({"Filters": active, "CapacityReservationIds": sorted(ids)}) if ids else []
        if not found and len(ids) > 1:
            # One unknown id refuses them all.
            for each in sorted(ids):
                found += await self._query({"Filters": active, "CapacityReservationIds": [each]})
        return frozenset(each.id for each in found if is_expiring(each.kind, each.end, self._clock()))

    async def _query(self, wanted: Json) -> list[Reservation]:
        return await self._asked.of(repr(wanted), partial(self._read, wanted))

    async def _read(self, wanted: Json) -> list[Reservation]:
        rows = await self._described(wanted)
        now = self._clock()
        found = [each for each in (read_reservation(row, now) for row in rows) if each is not None]
        for each in found:
            self._set(each.id, each.count)
        return found

    async def _described(self, wanted: Json) -> list[Json]:
        """An unknown id selects nothing (AWS-142)."""
        rows: list[Json] = []
        token: Json = {}
        while True:
            answer = await self._calls.attempt("ec2", "DescribeCapacityReservations", **wanted, **token)
            if isinstance(answer, Denied):
                if answer.code in NOT_FOUND:
                    return []
                raise refusal("ec2:DescribeCapacityReservations", answer)
            rows += answer.get("CapacityReservations") or []
            if not answer.get("NextToken"):
                return rows
            token = {"NextToken": answer["NextToken"]}

    def counted(self, reservation: Reservation) -> Reservation:
        """As of now: with our own count, the described one less our own launches."""
        known, now = self._counts.get(reservation.id), self._clock()
        left = 0 if known is None or now - known.at >= _COUNT_SECONDS else max(0, known.value)
        return replace(reservation, count=left, expiring=is_expiring(reservation.kind, reservation.end, now))

    def launched(self, reservation_id: str) -> None:
        self._change(reservation_id, -1)

    def ended(self, reservation_id: str) -> None:
        """One instance of it is gone."""
        self._change(reservation_id, 1)

    def exhausted(self, reservation_id: str) -> None:
        """EC2 has answered that none is left (AWS-149)."""
        self._set(reservation_id, 0)

    def _change(self, reservation_id: str, by: int) -> None:
        known = self._counts.get(reservation_id)
        self._set(reservation_id, by if known is None else known.value + by)

    def _set(self, reservation_id: str, count: int) -> None:
        before = self._counts.get(reservation_id)
        self._counts[reservation_id] = Dated(self._clock(), count)
        self.revision += before is None or before.value != count
