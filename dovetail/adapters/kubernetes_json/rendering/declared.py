"""Own kinds as their dataclasses declare them: `dovetail.model.own` in, JSON of the API out, field by field."""

from collections.abc import Callable
from dataclasses import is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.nodes import Condition
from dovetail.model.own.forms import Form, Place, marks_of, places_of
from dovetail.model.values.json import Json


def written(kind: Any, value: Any, whole: bool = False) -> Json:
    """The fields of a dataclass. What says nothing is null, which takes it away in a merge patch. What is written
    `whole`, as an item of a list is, leaves it out, and whatever stands below it."""
    found: Json = {}
    for each, write in _writers(kind):
        given = getattr(value, each.name)
        said = None if given is None else write(given, whole)
        if not said and not each.is_required and not each.key.always:
            said = None
        if not each.path:
            found |= said or {}
            continue
        *above, key = each.path
        if whole and (said is None or (above and above[0] in _parts(kind) and above[0] not in found)):
            continue
        place = found
        for name in above:
            place = place.setdefault(name, {})
        place[key] = said
    return found


_Write = Callable[[Any, bool], Any]


@cache
def _parts(kind: Any) -> frozenset[str]:
    """Where fields stand that others stand below."""
    return frozenset(each.path[0] for each in places_of(kind) if len(each.path) == 1)


@cache
def _writers(kind: Any) -> tuple[tuple[Place, _Write], ...]:
    return tuple((each, _writer(each.hint)) for each in places_of(kind))


def _writer(hint: Any) -> _Write:
    """How a value of that type is written."""
    marks, inner = marks_of(hint), get_args(hint)
    form = next((mark for mark in marks if isinstance(mark, Form)), None)
    if form is not None:
        return lambda value, _: form.write(value)
    if marks or NoneType in inner:
        return _writer(inner[0])
    if get_origin(hint) in (tuple, frozenset):
        item = _writer(inner[0])
        return lambda value, _: [item(each, True) for each in value]
    if hint is Condition:
        return lambda value, _: fields.condition(value)
    if is_dataclass(hint):
        return lambda value, whole: written(hint, value, whole)
    return lambda value, _: str(value) if isinstance(value, StrEnum) else value
