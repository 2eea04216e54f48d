"""Which instance types the region has, and in which zones (AWS-48).

Read at the start and twice a day after that; what was read stays in use when a refresh fails.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.instance_types.type_facts import TypeFacts, read_type
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 12 * 3600.0
_RETRY_SECONDS: Final = 60.0
_FILTERS: Final = (
    ("supported-virtualization-type", ["hvm"]),
    ("processor-info.supported-architecture", ["x86_64", "arm64"]),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """What the region offers: types, and the zones in which each is offered."""

    name: str
    types: Mapping[str, TypeFacts]
    offered: Mapping[str, frozenset[str]]
    revision: int = 0

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(sorted(frozenset().union(*self.offered.values()) if self.offered else ()))


class RegionTypes:
    """The region's types, kept and refreshed."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._region: Region | None = None
        self._reading = asyncio.Lock()
        self._read_at = float("-inf")

    async def region(self) -> Region:
        """As last read; read now if never."""
        if self._region is None:
            async with self._reading:
                if self._region is None:
                    await self.refresh()
        assert self._region is not None
        return self._region

    async def refresh(self) -> None:
        """Read both lists anew."""
        types, offered = await asyncio.gather(self._types(), self._offered())
        self._read_at = monotonic()
        before = self._region
        if before is not None and before.types == types and before.offered == offered:
            return
        revision = 0 if before is None else before.revision + 1
        self._region = Region(name=self._calls.region, types=types, offered=offered, revision=revision)

    async def run(self) -> None:
        """Refresh until cancelled; what the start has read is good for half a day."""
        wait = max(0.0, self._read_at + REFRESH_SECONDS - monotonic())
        while True:
            await asyncio.sleep(wait)
            try:
                await self.refresh()
                wait = REFRESH_SECONDS
            except Failure as failure:
                _log.warning("instance types not refreshed: %s", failure)
                wait = _RETRY_SECONDS

    async def _types(self) -> Mapping[str, TypeFacts]:
        filters = [{"Name": name, "Values": values} for name, values in _FILTERS]
        types: dict[str, TypeFacts] = {}
        async for page in self._calls.pages("ec2", "DescribeInstanceTypes", Filters=filters, MaxResults=100):
            for raw in page.get("InstanceTypes") or ():
                types[raw["InstanceType"]] = read_type(raw)
        return types

    async def _offered(self) -> Mapping[str, frozenset[str]]:
        zones: dict[str, set[str]] = {}
        rows = await self._calls.every(
            "ec2",
            "DescribeInstanceTypeOfferings",
            "InstanceTypeOfferings",
            LocationType="availability-zone",
            MaxResults=1000,
        )
        for row in rows:
            zones.setdefault(row["InstanceType"], set()).add(row["Location"])
        return {name: frozenset(found) for name, found in zones.items()}
