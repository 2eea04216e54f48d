"""Which placement group instances of a class join (AWS-45).

A result is remembered for a day, so that an outage of one API does not stop launches into an unchanged group.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.dated import Renewed
from dovetail.model.values.json import Json

_CHECK_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementGroup:
    id: str
    name: str
    strategy: str
    partitions: int = 0


class PlacementGroups:
    def __init__(self, calls: Calls, clock: Callable[[], float]) -> None:
        self._calls, self._clock = calls, clock
        self._found = Renewed[tuple[str, str], PlacementGroup | None](_CHECK_SECONDS, lambda: self._clock())

    async def of_class(self, node_class: NodeClass) -> PlacementGroup | None:
        """The group that the class names, if EC2 has it available; else None."""
        selector = node_class.spec.placement_group_selector
        if selector is None:
            return None
        name, group_id = key = (selector.name or "", selector.id or "")
        return await self._found.of(key, partial(self._describe, name, group_id))

    def known(self, node_class: NodeClass) -> PlacementGroup | None:
        """What was found within the last day."""
        selector = node_class.spec.placement_group_selector
        return None if selector is None else self._found.known((selector.name or "", selector.id or ""))

    async def _describe(self, name: str, group_id: str) -> PlacementGroup | None:
        named: Json = {"GroupNames": [name]} if name else {"GroupIds": [group_id]}
        answer = await self._calls.attempt(
            "ec2", "DescribePlacementGroups", Filters=[{"Name": "state", "Values": ["available"]}], **named
        )
        if isinstance(answer, Denied):
            if answer.code in NOT_FOUND:
                return None
            raise refusal("ec2:DescribePlacementGroups", answer)
        groups: list[Json] = answer.get("PlacementGroups") or []
        if not groups:
            return None
        raw = groups[0]
        return PlacementGroup(
            id=raw.get("GroupId", ""),
            name=raw.get("GroupName", ""),
            strategy=raw.get("Strategy", ""),
            partitions=int(raw.get("PartitionCount") or 0) if raw.get("Strategy") == "partition" else 0,
        )
