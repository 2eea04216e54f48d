"""Answers as documents for scripts: a version, a kind, RFC 3339 times, names as Kubernetes writes them; and back.

Within a version fields are added, and neither renamed nor removed (docs/reference/api.md).
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from dovetail.answers.failures import CommandFailed

API_VERSION: Final = "dovetail.sh/v1"

Document = dict[str, Any]
A = TypeVar("A")
_Read = Callable[[Any], Any]

# The fields of answers that hold a time in seconds since the epoch.
MOMENTS: Final = frozenset(
    {
        *("at", "deleted_at", "due", "ended", "expires_at", "next_due", "next_try", "now", "quiet_since"),
        *("replaced_from", "seen_since", "silent_since", "since", "started", "until"),
        *("dovetail_since", "karpenter_at"),
        *("began", "drained", "instance_gone", "on_demand_since"),
    }
)


def document(kind: str, cluster: str, answer: object) -> Document:
    return {"apiVersion": API_VERSION, "kind": kind, "cluster": cluster, **_plain(answer)}


def _plain(value: Any, is_moment: bool = False) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {camel(f.name): _plain(getattr(value, f.name), f.name in MOMENTS) for f in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value  # YAML does not know enumerations, even of strings
    if is_moment and isinstance(value, (int, float)):
        from dovetail.model.values.time import format_time

        return format_time(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None  # JSON has no infinity or NaN
    return value


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def read_document(kind: type[A], found: Mapping[str, Any]) -> A:
    """The answer in a document, which may be of a worker of another version: fields unknown here are ignored, and
    fields unknown there get their defaults."""
    values = {}
    for name, key, read, is_required in _fields_of(cast(Hashable, kind)):
        if key in found:
            values[name] = read(found[key]) if read is not None else found[key]
        elif is_required:
            raise CommandFailed(f"the answer cannot be read: its {kind.__name__} has no {key}")
    return kind(**values)


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, str, _Read | None, bool], ...]:
    """Name, name in the document, reader, and whether it is required. Worked out once: a list has 5,000 nodes."""
    hints = get_type_hints(kind)
    return tuple(
        (f.name, camel(f.name), _reader(f.name, hints[f.name]), f.default is f.default_factory is MISSING)
        for f in fields(kind)
    )


def _reader(name: str, hint: Any) -> _Read | None:
    """The reader for values of this type; None: the JSON value is right as it is."""
    if name in MOMENTS and float in (hint, *get_args(hint)):
        from dovetail.model.values.time import optional_time

        return optional_time
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(read_document, hint)
    if get_origin(hint) is tuple:
        inner = _reader("", get_args(hint)[0])
        return tuple if inner is None else lambda values: tuple(map(inner, values))
    return None
