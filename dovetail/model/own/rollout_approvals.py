"""What a roll-out asks a person, what a person approves, and the result."""

from dataclasses import dataclass
from typing import Annotated

from dovetail.model.own.forms import Form, Key, Moment, moment
from dovetail.model.values.time import format_time, written


def _whole_second(text: str) -> float:
    return written(moment(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A person's answer. `digest`: of what that person was shown; `by`: the person's name at the API server."""

    step: str
    digest: str
    by: str
    at: Annotated[float, Form(_whole_second, format_time)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The result of the last approval; each is judged once. `refused`: why, empty if it was accepted."""

    approval: Annotated[Approval, Key("")]
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaits:
    """The question. `generation`: of the object when nobody had answered in time; a later one reopens the question."""

    digest: str
    since: Moment
    expires: Moment
    shows: str = ""
    generation: int | None = None
