"""Own kinds as their dataclasses declare them: JSON of the API in, `dovetail.model.own` out, field by field.

None of these objects is ever unreadable: one that was left out would hold nothing. An error is a Fault that names the
place; each kind says what holds then.
"""

from collections.abc import Callable, Iterator
from dataclasses import MISSING
from enum import StrEnum
from functools import cache, partial
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.fields import conditions
from dovetail.adapters.kubernetes_json.parsing.reading import list_of, name_of, number_of, text_of
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_label_selector
from dovetail.api.schema.structural import ApiModel
from dovetail.api.validation import InvalidSpec, parse_spec
from dovetail.model.nodes import Condition
from dovetail.model.own.forms import Form, OwnObject, Place, marks_of, places_of
from dovetail.model.pods import LabelSelector
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.quoting import one_line

T = TypeVar("T")


class Fault(ValueError):
    """What cannot be read, or has no meaning. `place`: below what is being read, as `.steps[0].soak`."""

    def __init__(self, message: str, place: str = "") -> None:
        self.message, self.place = message, place
        super().__init__(f"{place}: {message}")

    def within(self, *path: str | int) -> "Fault":
        above = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
        return Fault(self.message, above + self.place)


def fields_in(kind: Any, raw: Any, faults: list[Fault] | None = None) -> dict[str, Any]:
    """The fields of a dataclass that stand there. With `faults` a field that cannot be read is left out, and what is
    wrong with it is put there."""
    found: dict[str, Any] = {}
    for each, read in _readers(kind):
        try:
            value = _at(raw, each.path)
            if value is not None:
                found[each.name] = _below(each.path, read, value)
            elif each.key.absent is not MISSING:
                found[each.name] = each.key.absent
        except Fault as fault:
            if faults is None:
                raise
            faults.append(fault)
    return found


def _at(raw: Any, path: tuple[str, ...]) -> Any:
    for depth, key in enumerate(path):
        if raw is None:
            return None
        if not isinstance(raw, dict):
            raise Fault(f"not an object: {type(raw).__name__}").within(*path[:depth])
        raw = raw.get(key)
    return raw


def _below(path: tuple[str | int, ...], read: Callable[[Any], T], value: Any) -> T:
    try:
        return read(value)
    except RAW_FAULTS as error:
        fault = error if isinstance(error, Fault) else Fault(str(error))
        raise fault.within(*path) from None


@cache
def _readers(kind: Any) -> tuple[tuple[Place, Callable[[Any], Any]], ...]:
    return tuple((each, _reader(each.hint)) for each in places_of(kind))


def _reader(hint: Any) -> Callable[[Any], Any]:
    """How a value of that type is read."""
    marks, inner = marks_of(hint), get_args(hint)
    form = next((mark for mark in marks if isinstance(mark, Form)), None)
    if form is not None:
        return form.read
    if marks or NoneType in inner:
        return _reader(inner[0])
    if get_origin(hint) in (tuple, frozenset):
        made, item = get_origin(hint), _reader(inner[0])
        return lambda value: made(_items(item, value))
    if hint in _READ:
        return _READ[hint]
    return hint if issubclass(hint, StrEnum) else partial(_whole, hint)


def _items(read: Callable[[Any], T], value: Any) -> Iterator[T]:
    return (_below((number,), read, item) for number, item in enumerate(list_of(value)))


def _whole(kind: Any, raw: Any) -> Any:
    found = fields_in(kind, raw)
    for each in places_of(kind):
        if each.is_required and each.name not in found:
            raise Fault("it is missing").within(*each.path)
    return kind(**found)


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


def metadata_of(meta: ReadOnlyJson) -> dict[str, Any]:
    """All of it; only a name must be readable."""
    return {**fields_in(OwnObject, meta, []), "name": name_of(meta)}


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
        return one_line("; ".join(f"{f'spec.{place}' if place else 'spec'}: {said}" for place, said in error.problems))
    return one_line(f"spec{error}" if isinstance(error, Fault) else str(error))
