"""How a parser turns everything that goes wrong inside it into one kind of error.

The error names the object and the field that was being read, because a bare KeyError from a list of five thousand nodes
would help no one.
"""

from types import TracebackType
from typing import Any

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS, UnreadableObject, name_in
from dovetail.model.values.digits import MAX_INT, MIN_INT
from dovetail.model.values.json import ReadOnlyJson


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
        message = str(error) or type(error).__name__
        raise UnreadableObject(self._kind, name_in(self._raw), self.field, message) from error


def name_of(meta: ReadOnlyJson) -> str:
    """metadata.name, which every object has."""
    name = text_of(meta["name"])
    if not name:
        raise ValueError("the name is empty")
    return name


def text_of(value: object) -> str:
    """A text; TypeError for anything else."""
    if isinstance(value, str):
        return value
    raise TypeError(f"not a text: {type(value).__name__}")


def list_of(value: object) -> list[Any]:
    """A list that may be absent; TypeError for anything else, such as a text, which has parts as well."""
    if value is None or isinstance(value, list):
        return value or []
    raise TypeError(f"not a list: {type(value).__name__}")


def optional_text(value: object) -> str | None:
    return None if value is None else text_of(value)


def number_of(value: object) -> int:
    """A whole number of 64 bits; TypeError for anything else."""
    if type(value) is int and MIN_INT <= value <= MAX_INT:
        return value
    raise TypeError(f"not a whole number of 64 bits: {type(value).__name__}")


def optional_number(value: object) -> int | None:
    return None if value is None else number_of(value)
