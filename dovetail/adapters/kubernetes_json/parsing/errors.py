"""What is wrong with an object that cannot be read: which object, which field, what was found there.

Every parser of this package raises UnreadableObject and nothing else. The cache catches it, leaves the object out of
the snapshot and reports it; one bad object never stops the reading of the others.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from dovetail.model.values.quoting import one_line
from dovetail.ports.failures import NotReadable

Parsed = TypeVar("Parsed")

# Everything that a parser can meet in JSON of another form than its kind promises.
RAW_FAULTS: Final = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)


class UnreadableObject(ValueError):
    """An object of the API that does not have the form its kind promises."""

    def __init__(self, kind: str, name: str, field: str, message: str) -> None:
        self.kind = kind
        self.name = one_line(name)
        self.field = field
        self.message = one_line(message)
        super().__init__(f"{kind} {self.name}: {field}: {self.message}")


def name_in(raw: object) -> str:
    """namespace/name as far as there are any, or the name alone."""
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(metadata, dict):
        return ""
    return "/".join(
        part for part in (metadata.get("namespace"), metadata.get("name")) if part and isinstance(part, str)
    )


def blame(kind: str, raw: Any, sections: Mapping[str, Callable[[Any], object]]) -> UnreadableObject:
    """The error for an object that could not be read: section after section is read again to find the bad one."""
    name = name_in(raw) or "(no name)"
    for field, read in sections.items():
        try:
            read(raw)
        except RAW_FAULTS as fault:
            text = f"missing {fault}" if isinstance(fault, KeyError) else str(fault)
            return UnreadableObject(kind, name, field, text)
    return UnreadableObject(kind, name, "(object)", "not readable")


def parsed(parse: Callable[[dict[str, Any]], Parsed], raw: dict[str, Any]) -> Parsed:
    """The object that was read live; NotReadable, naming it and the field, where the parser cannot read it."""
    try:
        return parse(raw)
    except UnreadableObject as error:
        raise NotReadable(f"{error.kind}/{error.name}", f"{error.field}: {error.message}") from error
