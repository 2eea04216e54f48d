"""From which images instances of a class may be started (AWS-32 to AWS-37).

Aliases use SSM; ids, names and tags EC2 directly. Of the images that serve the same instance types one remains: the
newest that is not deprecated. A missing parameter is remembered, while upstream asks for it every minute forever; any
other error of SSM is an error, not a missing parameter.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.dated import Dated
from dovetail.adapters.aws.resources.image_aliases import ARCHES, published
from dovetail.adapters.aws.resources.selectors import tag_filters
from dovetail.model import names as core
from dovetail.model.pods import Expression
from dovetail.model.values.json import Json
from dovetail.model.values.time import utc_moment

_PARAMETER_SECONDS: Final = 24 * 3600.0
_USER_PARAMETER_SECONDS: Final = 300.0
_MISSING_SECONDS: Final = 600.0  # a parameter may yet be published
_USER_MISSING_SECONDS: Final = 60.0  # somebody makes it in the minute in which the class is applied


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundImage:
    id: str
    name: str
    created: str
    deprecated: bool
    requirements: tuple[Expression, ...]


class ImageError(ValueError):
    """No image; `reason` and message are the condition's."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Parameters:
    """Values of SSM parameters, missing ones included."""

    def __init__(self, calls: Calls, clock: Callable[[], float]) -> None:
        self._calls, self._clock = calls, clock
        self._known: dict[str, Dated[str | None]] = {}  # until when, and the value

    async def value(self, path: str, keep: float = _PARAMETER_SECONDS, missing: float = _MISSING_SECONDS) -> str | None:
        """The value; None if there is no such parameter."""
        known = self._known.get(path)
        if known is not None and known.at > self._clock():
            return known.value
        answer = await self._calls.attempt("ssm", "GetParameter", Name=path)
        value: str | None
        if isinstance(answer, Denied):
            if answer.code not in NOT_FOUND:
                raise refusal(f"ssm:GetParameter {path}", answer)
            value, keep = None, missing
        else:
            value = str(answer["Parameter"]["Value"])
        self._known[path] = Dated(self._clock() + keep, value)
        return value


class Images:
    def __init__(self, calls: Calls, refresh: float, clock: Callable[[], float]) -> None:
        self._calls, self._refresh, self._clock = calls, refresh, clock
        self._parameters = Parameters(calls, clock)
        self._found: dict[tuple[str, int], Dated[list[FoundImage]]] = {}

    async def of_class(self, node_class: NodeClass, version: str) -> list[FoundImage]:
        """Newest first, one per set of requirements. Raises ImageError or UnsupportedAlias."""
        key = (node_class.uid, node_class.generation)
        before = self._found.get(key)
        if before is not None and self._clock() - before.at < self._refresh:
            return before.value
        alias = next((term.alias for term in node_class.spec.ami_selector_terms if term.alias), None)
        found = await self._by_alias(alias, version) if alias else await self._by_terms(node_class)
        chosen = survivors(found)
        self._found[key] = Dated(self._clock(), chosen)
        return chosen

    async def _by_alias(self, alias: str, version: str) -> list[FoundImage]:
        serves: dict[str, list[tuple[Expression, ...]]] = {}
        for entry in published(alias, version):
            image = await self._parameters.value(entry.path)
            if image:
                serves.setdefault(image, []).extend(entry.serves)
        if not serves:
            raise ImageError("AMINotFound", f"AWS publishes no image for alias {alias} and Kubernetes {version}")
        rows = await self._describe([{"Name": "image-id", "Values": sorted(serves)}], {})
        return [image for row in rows for image in self._read(row, serves.get(row["ImageId"], ()))]

    async def _by_terms(self, node_class: NodeClass) -> list[FoundImage]:
        queries, ids = [], []
        for term in node_class.spec.ami_selector_terms:
            if term.id:
                ids.append(term.id)
            elif term.ssm_parameter:
                value = await self._parameters.value(term.ssm_parameter, _USER_PARAMETER_SECONDS, _USER_MISSING_SECONDS)
                ids += [value] if value is not None and value.startswith("ami-") else []
            else:
                queries.append(_query(term))
        if ids:
            queries.append(_Query([{"Name": "image-id", "Values": ids}], {}))
        rows: dict[str, Json] = {}
        for filters, more in queries:
            for row in await self._describe(filters, more):
                rows[row["ImageId"]] = row
        return [image for row in rows.values() for image in self._read(row, ((),))]

    async def _describe(self, filters: list[Json], more: Json) -> list[Json]:
        return await self._calls.every(
            "ec2",
            "DescribeImages",
            "Images",
            Filters=[*filters, {"Name": "state", "Values": ["available"]}],
            IncludeDeprecated=True,
            MaxResults=1000,
            **more,
        )

    def _read(self, row: Json, serves: Iterable[tuple[Expression, ...]]) -> list[FoundImage]:
        arch = ARCHES.get(row.get("Architecture", ""))
        if arch is None:
            return []
        needs = Expression(key=core.ARCH, operator="In", values=(arch,))
        ends: str = row.get("DeprecationTime") or ""
        return [
            FoundImage(
                id=row["ImageId"],
                name=row.get("Name", ""),
                created=row.get("CreationDate", ""),
                deprecated=bool(ends) and utc_moment(ends) < self._clock(),
                requirements=tuple(sorted((*each, needs), key=lambda e: e.key)),
            )
            for each in serves
        ]


class _Query(NamedTuple):
    filters: list[Json]
    more: Json


def _query(term: Any) -> _Query:
    """A name is ours or Amazon's unless an owner is given; tags may be anyone's (AWS-35)."""
    filters = tag_filters(term.tags)
    more: Json = {"Owners": [term.owner]} if term.owner else {}
    if term.name:
        filters.append({"Name": "name", "Values": [term.name]})
        more = more or {"Owners": ["self", "amazon"]}
    return _Query(filters, more)


def survivors(found: list[FoundImage]) -> list[FoundImage]:
    """The best image for each set of requirements, newest first (AWS-36)."""
    best: dict[tuple[Expression, ...], FoundImage] = {}
    for image in found:
        other = best.get(image.requirements)
        if other is None or _rank(image) > _rank(other):
            best[image.requirements] = image
    ordered = sorted(best.values(), key=lambda image: (image.id, image.requirements[0].key))
    return sorted(ordered, key=lambda image: image.created, reverse=True)


def _rank(image: FoundImage) -> tuple[bool, str, str]:
    return (not image.deprecated, image.created, image.name)
