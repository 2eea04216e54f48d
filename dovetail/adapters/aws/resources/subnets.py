"""Into which subnets a class may launch, and which of them have room (AWS-30, AWS-71).

Between two descriptions our own launches reduce the count of free addresses, so that a burst does not run into a full
subnet. A full subnet is not used even if it is the largest of its zone; upstream would use it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.dated import Renewed
from dovetail.adapters.aws.resources.selectors import tag_filters
from dovetail.model.values.json import Json

_PAGE: Final = 500
_ROOM_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    id: str
    zone: str
    zone_id: str
    free: int


@dataclass(slots=True)
class _Room:
    free: int
    described: int
    until: float


class Subnets:
    """Subnets by class, and their room."""

    def __init__(self, calls: Calls, refresh: float, clock: Callable[[], float]) -> None:
        self._calls, self._refresh, self._clock = calls, refresh, clock
        self._found = Renewed[tuple[str, int], list[Subnet]](refresh, lambda: self._clock())
        self._room: dict[str, _Room] = {}

    async def of_class(self, node_class: NodeClass) -> list[Subnet]:
        """What the class selects, the roomiest first. Answers are kept for the refresh interval (AWS-29)."""
        return await self._found.of((node_class.uid, node_class.generation), partial(self._read, node_class))

    async def _read(self, node_class: NodeClass) -> list[Subnet]:
        rows: dict[str, Json] = {}
        for filters in _queries(node_class):
            for row in await self._calls.every("ec2", "DescribeSubnets", "Subnets", Filters=filters, MaxResults=_PAGE):
                rows[row["SubnetId"]] = row
        found = sorted((_subnet(row) for row in rows.values()), key=lambda subnet: (-subnet.free, subnet.id))
        self._learn(found)
        return found

    def room(self, subnet_id: str) -> int | None:
        """Free addresses less what our launches may use, for ranking; None if it was not described recently."""
        room = self._room.get(subnet_id)
        return None if room is None or room.until < self._clock() else room.free

    def take(self, subnet_id: str, addresses: int) -> None:
        """Count addresses that a launch in progress may use; negative: it used another subnet."""
        room = self._room.get(subnet_id)
        if room is not None:
            room.free -= addresses  # may go below nothing: it only ranks

    def is_full(self, subnet_id: str) -> bool:
        """Whether it had no free address when last described. Our own count never makes it full: it may be too low."""
        room = self._room.get(subnet_id)
        return room is not None and room.described == 0 and room.until >= self._clock()

    def _learn(self, found: Iterable[Subnet]) -> None:
        until = self._clock() + max(_ROOM_SECONDS, self._refresh + 240.0)
        for subnet in found:
            self._room[subnet.id] = _Room(free=subnet.free, described=subnet.free, until=until)


def _queries(node_class: NodeClass) -> list[list[Json]]:
    terms = node_class.spec.subnet_selector_terms
    queries = [tag_filters(term.tags) for term in terms if not term.id]
    ids = [term.id for term in terms if term.id]
    return [*queries, [{"Name": "subnet-id", "Values": ids}]] if ids else queries


def _subnet(row: Json) -> Subnet:
    return Subnet(
        id=row["SubnetId"],
        zone=row.get("AvailabilityZone", ""),
        zone_id=row.get("AvailabilityZoneId") or "",
        free=int(row.get("AvailableIpAddressCount", 0)),
    )
