"""An answer of AWS and the moment that belongs to it: when it was given, or until when it holds."""

from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class Dated(NamedTuple, Generic[Value]):
    """A value and its moment, as epoch seconds."""

    at: float
    value: Value
