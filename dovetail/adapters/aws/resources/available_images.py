"""Which images still exist: checked for the images of before a change, which their owner may have deregistered."""

from collections.abc import Callable, Iterable
from typing import Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.resources.dated import Dated

_SECONDS: Final = 30.0  # of one that has gone since, no launch is refused for longer, and none where a refusal says so


class AvailableImages:
    """What EC2 recently answered about images."""

    def __init__(self, calls: Calls, clock: Callable[[], float]) -> None:
        self._calls, self._clock = calls, clock
        self._known: dict[str, Dated[bool]] = {}

    async def among(self, ids: Iterable[str]) -> frozenset[str]:
        """Those from which instances can be started."""
        wanted, now = sorted(ids), self._clock()
        unknown = [each for each in wanted if each not in self._known or now - self._known[each].at > _SECONDS]
        if unknown:
            filters = [{"Name": "image-id", "Values": unknown}, {"Name": "state", "Values": ["available"]}]
            rows = await self._calls.every(
                "ec2", "DescribeImages", "Images", Filters=filters, IncludeDeprecated=True, MaxResults=1000
            )
            there = {row["ImageId"] for row in rows}
            self._known.update({each: Dated(now, each in there) for each in unknown})
        return frozenset(each for each in wanted if self._known[each].value)

    def forget(self) -> None:
        """EC2 has refused one of them: all are looked up again."""
        self._known.clear()
