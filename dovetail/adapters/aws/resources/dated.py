"""An answer of AWS and its moment: when it was given, or until when it is valid."""

from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class Dated(NamedTuple, Generic[Value]):
    """A value and its moment, as epoch seconds."""

    at: float
    value: Value
