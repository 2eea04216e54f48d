"""What the parsers of DisruptionPolicies, Freezes and NodeRollouts share: none of these is ever unreadable, and errors
are described field by field."""

from collections.abc import Callable
from typing import TypedDict, TypeVar

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.reading import name_of, number_of
from dovetail.api.validation import InvalidSpec
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.quoting import one_line
from dovetail.model.values.time import optional_time

T = TypeVar("T")


class Fault(ValueError):
    """A value that the schema accepts but that has no meaning."""


class Metadata(TypedDict):
    """The metadata that each kind has."""

    name: str
    uid: str
    resource_version: str
    generation: int
    created: float


def metadata_of(meta: ReadOnlyJson) -> Metadata:
    """All of it; only a name must be readable."""
    return Metadata(
        name=name_of(meta),
        uid=meta.get("uid") or "",
        resource_version=meta.get("resourceVersion") or "",
        generation=read_or(lambda: number_of(meta.get("generation") or 0), 0),
        created=read_or(lambda: optional_time(meta.get("creationTimestamp")), None) or 0.0,
    )


def read_or(read: Callable[[], T], otherwise: T) -> T:
    """The parsed value, or a substitute if it cannot be read."""
    try:
        return read()
    except (InvalidSpec, *RAW_FAULTS):
        return otherwise


def words_of(error: Exception) -> str:
    """The errors, by field."""
    if isinstance(error, InvalidSpec):
        error = Fault("; ".join(f"{f'spec.{place}' if place else 'spec'}: {said}" for place, said in error.problems))
    return one_line(str(error))
