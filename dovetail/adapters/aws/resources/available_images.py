"""Which images still exist: checked for the images of before a change, which their owner may have deregistered."""

from collections.abc import Callable
from functools import partial
from typing import Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.resources.dated import Renewed

_SECONDS: Final = 30.0  # of one that has gone since, no launch is refused for longer, and none where a refusal says so


class AvailableImages:
    """What EC2 recently answered about images."""

    def __init__(self, calls: Calls, clock: Callable[[], float]) -> None:
        self._calls = calls
        self._known = Renewed[frozenset[str], frozenset[str]](_SECONDS, clock)

    async def among(self, ids: frozenset[str]) -> frozenset[str]:
        """Those from which instances can be started."""
        return await self._known.of(ids, partial(self._available, ids)) if ids else ids

    async def _available(self, ids: frozenset[str]) -> frozenset[str]:
        filters = [{"Name": "image-id", "Values": sorted(ids)}, {"Name": "state", "Values": ["available"]}]
        rows = await self._calls.every(
            "ec2", "DescribeImages", "Images", Filters=filters, IncludeDeprecated=True, MaxResults=1000
        )
        return frozenset(row["ImageId"] for row in rows) & ids

    def forget(self) -> None:
        """EC2 has refused one of them: all are looked up again."""
        self._known.clear()
