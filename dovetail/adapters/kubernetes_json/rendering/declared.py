"""Own kinds as their dataclasses declare them: `dovetail.model.own` in, JSON of the API out, field by field."""

from enum import StrEnum
from types import NoneType
from typing import Any, get_args, get_origin

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.nodes import Condition
from dovetail.model.own.forms import Form, marks_of, places_of
from dovetail.model.values.json import Json


def written(kind: Any, value: Any, whole: bool = False) -> Json:
    """The fields of a dataclass. What says nothing is null, which takes it away in a merge patch. What is written
    `whole`, as an item of a list is, leaves it out, and whatever stands below it."""
    found: Json = {}
    parts = {each.path for each in places_of(kind)}
    for each in places_of(kind):
        said = _said(each.hint, getattr(value, each.name), whole)
        if not said and not each.is_required and not each.key.always:
            said = None
        above = each.path[:-1]
        if not each.path:
            found |= said
        elif not whole or (said is not None and (above not in parts or above[0] in found)):
            place = found
            for key in above:
                place = place.setdefault(key, {})
            place[each.path[-1]] = said
    return found


def _said(hint: Any, value: Any, whole: bool) -> Any:
    marks, inner = marks_of(hint), get_args(hint)
    form = next((mark for mark in marks if isinstance(mark, Form)), None)
    if value is None or form is not None:
        return None if value is None or form is None else form.write(value)
    if marks or NoneType in inner:
        return _said(inner[0], value, whole)
    if get_origin(hint) is tuple:
        return [_said(inner[0], each, True) for each in value]
    if hint is Condition:
        return fields.condition(value)
    if isinstance(value, StrEnum):
        return str(value)
    return written(hint, value, whole) if hasattr(hint, "__dataclass_fields__") else value
