"""Own kinds as their dataclasses declare them: JSON of the API in, `dovetail.model.own` out, field by field.

None of these objects is ever unreadable: one that was left out would hold nothing. An error is a Fault that names the
place; each kind says what holds then.
"""

from collections.abc import Callable
from dataclasses import MISSING
from enum import StrEnum
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.fields import conditions
from dovetail.adapters.kubernetes_json.parsing.reading import list_of, name_of, number_of, text_of
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_label_selector
from dovetail.api.schema.structural import ApiModel
from dovetail.api.validation import InvalidSpec, parse_spec
from dovetail.model.nodes import Condition
from dovetail.model.own.forms import Form, OwnObject, marks_of, places_of
from dovetail.model.pods import LabelSelector
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.quoting import one_line

T = TypeVar("T")


class Fault(ValueError):
    """A value that the schema accepts but that has no meaning."""


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError(f"neither true nor false: {type(value).__name__}")


_READ: Final[dict[Any, Callable[[Any], Any]]] = {
    str: text_of,
    int: number_of,
    bool: _truth,
    Condition: lambda raw: conditions([raw])[0],
    LabelSelector: parse_label_selector,
}


def read(kind: Any, raw: ReadOnlyJson, place: str) -> Any:
    """A whole object of a dataclass."""
    found = fields_in(kind, raw, place)
    for each in places_of(kind):
        if each.is_required and each.name not in found:
            raise Fault(f"{'.'.join((place, *each.path))}: it is missing")
    return kind(**found)


def fields_in(kind: Any, raw: ReadOnlyJson, place: str, faults: list[str] | None = None) -> dict[str, Any]:
    """The fields of a dataclass that stand there. With `faults` a field that cannot be read is left out, and what is
    wrong with it is put there."""
    found: dict[str, Any] = {}
    for each in places_of(kind):
        try:
            value = _at(raw, each.path, place)
            if value is not None:
                found[each.name] = _value(each.hint, value, ".".join((place, *each.path)))
            elif each.key.absent is not MISSING:
                found[each.name] = each.key.absent
        except Fault as fault:
            if faults is None:
                raise
            faults.append(str(fault))
    return found


def _at(raw: Any, path: tuple[str, ...], place: str) -> Any:
    for key in path:
        if not isinstance(raw, dict | None):
            raise Fault(f"{place}: not an object: {type(raw).__name__}")
        raw, place = (raw or {}).get(key), f"{place}.{key}"
    return raw


def _value(hint: Any, value: Any, place: str) -> Any:
    try:
        return _read(hint, value, place)
    except Fault:
        raise
    except RAW_FAULTS as error:
        raise Fault(f"{place}: {error}") from None


def _read(hint: Any, value: Any, place: str) -> Any:
    marks = marks_of(hint)
    form = next((mark for mark in marks if isinstance(mark, Form)), None)
    if form is not None:
        return form.read(value)
    inner = get_args(hint)
    if marks or NoneType in inner:
        return _read(inner[0], value, place)
    if get_origin(hint) in (tuple, frozenset):
        items = enumerate(list_of(value))
        return get_origin(hint)(_value(inner[0], item, f"{place}[{number}]") for number, item in items)
    if hint in _READ:
        return _READ[hint](value)
    return hint(value) if issubclass(hint, StrEnum) else read(hint, value, place)


def metadata_of(meta: ReadOnlyJson) -> dict[str, Any]:
    """All of it; only a name must be readable."""
    return {**fields_in(OwnObject, meta, "metadata", []), "name": name_of(meta)}


def checked(model: type[ApiModel], raw: Any) -> ReadOnlyJson:
    """A spec or a part of one as the API server keeps it, with its defaults."""
    return parse_spec(model, raw).as_object()


def read_or(read: Callable[[], T], otherwise: T) -> T:
    """The parsed value, or a substitute if it cannot be read."""
    try:
        return read()
    except (InvalidSpec, *RAW_FAULTS):
        return otherwise


def words_of(error: Exception) -> str:
    """The errors, by field."""
    if isinstance(error, InvalidSpec):
        error = Fault("; ".join(f"{f'spec.{place}' if place else 'spec'}: {said}" for place, said in error.problems))
    return one_line(str(error))
