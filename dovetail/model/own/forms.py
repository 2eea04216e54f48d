"""How the fields of Dovetail's own kinds stand in the JSON of the API: where, and in which form.

The dataclasses of this folder say it themselves, so that one reader and one writer serve all of them. A field without a
word of it stands under its own name in camelCase.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from math import isfinite
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from dovetail.model.values.durations import format_seconds, parse_seconds
from dovetail.model.values.quoting import shown
from dovetail.model.values.time import format_time, time_or_none

NOWHERE: Final = "nowhere"  # the mark of a field that follows from others


class Key(NamedTuple):
    """Where a field stands: `step.name` is below another, the empty text in the object itself. `absent`: what it is
    where nothing stands there, if not its default; `always`: it is written even if that says nothing."""

    at: str | None = None
    absent: Any = MISSING
    always: bool = False


class Form(NamedTuple):
    """How a value is read, with a ValueError that says what is wrong with it, and written."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A field with the place where it stands."""

    name: str
    path: tuple[str, ...]
    hint: Any
    key: Key
    is_required: bool


@cache
def places_of(kind: Any) -> tuple[Place, ...]:
    """The fields of a dataclass, but for those that stand nowhere."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_place(each, hints[each.name]) for each in fields(kind) if NOWHERE not in marks_of(hints[each.name]))


def _place(field: Field[Any], hint: Any) -> Place:
    key = next((mark for mark in marks_of(hint) if isinstance(mark, Key)), Key())
    first, *more = field.name.split("_")
    at = first + "".join(map(str.capitalize, more)) if key.at is None else key.at
    path = tuple(at.split(".")) if at else ()
    return Place(name=field.name, path=path, hint=hint, key=key, is_required=field.default is MISSING)


def marks_of(hint: Any) -> tuple[Any, ...]:
    """What is said of a type beside the type."""
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def moment(text: str) -> float:
    found = time_or_none(text)
    if found is None:
        raise ValueError(f"{shown(text)} is no moment like 2026-01-31T12:00:00Z")
    return found


def _number(text: str) -> float:
    found = float(text)
    if not isfinite(found):
        raise ValueError(f"{shown(text)} is no number that anything can be compared with")
    return found


def between(least: str, most: str) -> Form:
    """A duration within bounds."""

    def read(text: str) -> float:
        found = parse_seconds(text)
        if not parse_seconds(least) <= found <= parse_seconds(most):
            raise ValueError(f"{shown(text)} is not between {least} and {most}")
        return found

    return Form(read, format_seconds)


def yes(word: str, no: str) -> Form:
    """A choice of two words."""
    return Form(lambda text: bool(text == word), lambda said: word if said else no)


Moment = Annotated[float, Form(moment, format_time)]
MomentIfEver = Annotated[float, Form(moment, lambda at: format_time(at) if at else None)]
Seconds = Annotated[float, Form(parse_seconds, format_seconds)]
Number = Annotated[float, Form(_number, repr)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnObject:
    """What stands in the metadata of each."""

    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    created: Annotated[MomentIfEver, Key("creationTimestamp")] = 0.0
