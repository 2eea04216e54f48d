"""Answers as documents for scripts: a version, a kind, RFC 3339 times, names as Kubernetes writes them.

Within a version fields are added, and neither renamed nor removed (docs/reference/api.md).
"""

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

API_VERSION: Final = "dovetail.sh/v1"

Document = dict[str, Any]

# The fields of answers that hold a moment, as seconds since the epoch.
MOMENTS: Final = frozenset(
    {
        *("at", "due", "ended", "expires_at", "next_due", "next_try", "now", "quiet_since"),
        *("since", "started", "until"),
        *("dovetail_since", "karpenter_at"),
        *("began", "drained", "instance_gone"),
    }
)


def document(kind: str, cluster: str, answer: object) -> Document:
    """The answer with its version and kind."""
    return {"apiVersion": API_VERSION, "kind": kind, "cluster": cluster, **_plain(answer)}


def _plain(value: Any, is_moment: bool = False) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {camel(f.name): _plain(getattr(value, f.name), f.name in MOMENTS) for f in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value  # YAML knows no enumerations, also where they are strings
    if is_moment and isinstance(value, (int, float)):
        from dovetail.model.time import format_time

        return format_time(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None  # JSON has no such number
    return value


def camel(name: str) -> str:
    """A name as Kubernetes writes it."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
