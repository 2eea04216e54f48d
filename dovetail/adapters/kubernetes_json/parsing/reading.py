"""How a parser turns everything that goes wrong inside it into one kind of error.

The error names the object and the field that was being read, because a bare KeyError from a list of five thousand nodes
would help no one.
"""

from types import TracebackType
from typing import Any

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS, UnreadableObject
from dovetail.model.json import ReadOnlyJson


class reading:  # noqa: N801 - reads as a verb where it is used
    """Raise UnreadableObject in place of every error that unexpected JSON can cause.

    A class rather than a generator: half of what a NodePool-sized object costs to read would be the generator.
    """

    __slots__ = ("_kind", "_raw", "field")

    def __init__(self, kind: str, raw: Any) -> None:
        self._kind, self._raw = kind, raw
        self.field = "metadata"  # which is being read now

    def __enter__(self) -> "reading":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or not isinstance(error, RAW_FAULTS):
            return
        raw = self._raw
        name = str((raw.get("metadata") or {}).get("name", "")) if isinstance(raw, dict) else ""
        raise UnreadableObject(self._kind, name, self.field, str(error) or type(error).__name__) from error


def name_of(meta: ReadOnlyJson) -> str:
    """metadata.name, which every object has."""
    name = meta["name"]
    if not isinstance(name, str) or not name:
        raise ValueError("the name is empty")
    return name
