"""Which security groups instances of a class get (AWS-31).

One call per tag term, one for all ids, one for all names, kept per version of the class for the refresh interval.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.dated import Dated
from dovetail.adapters.aws.resources.selectors import tag_filters
from dovetail.model.values.json import Json

_MARGIN_SECONDS: Final = 1.0  # classes are resolved once a minute; an answer must not survive into the round after it


class SecurityGroup(NamedTuple):
    id: str
    name: str


class SecurityGroups:
    def __init__(self, calls: Calls, refresh: float, clock: Callable[[], float]) -> None:
        self._calls, self._keep, self._clock = calls, refresh - _MARGIN_SECONDS, clock
        self._found: dict[tuple[str, int], Dated[list[SecurityGroup]]] = {}

    async def of_class(self, node_class: NodeClass) -> list[SecurityGroup]:
        """Sorted by id."""
        key = (node_class.uid, node_class.generation)
        before = self._found.get(key)
        if before is not None and self._clock() - before.at < self._keep:
            return before.value
        rows: dict[str, str] = {}
        for filters in _queries(node_class):
            for row in await self._calls.every(
                "ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=filters, MaxResults=500
            ):
                rows[row["GroupId"]] = row.get("GroupName", "")
        found = [SecurityGroup(key, rows[key]) for key in sorted(rows)]
        self._found[key] = Dated(self._clock(), found)
        return found


def _queries(node_class: NodeClass) -> list[list[Json]]:
    terms = node_class.spec.security_group_selector_terms
    queries = [tag_filters(term.tags) for term in terms if not term.id and not term.name]
    ids = [term.id for term in terms if term.id]
    group_names = [term.name for term in terms if term.name and not term.id]
    if ids:
        queries.append([{"Name": "group-id", "Values": ids}])
    if group_names:
        queries.append([{"Name": "group-name", "Values": group_names}])
    return queries
