"""What is wrong with an object that cannot be read?

Raised by every parser of this package, caught by the cache, which keeps the object out of the snapshot and tells a
person. The trap avoided: one bad object that stops the reading of all others, or an error that names neither the
object nor the field.
"""

from collections.abc import Callable, Mapping
from typing import Any

RAW_FAULTS = (KeyError, TypeError, AttributeError, ValueError)


class UnreadableObject(ValueError):
    """An object of the API that does not have the form its kind promises."""

    def __init__(self, kind: str, name: str, field: str, message: str) -> None:
        super().__init__(f"{kind} {name}: {field}: {message}")
        self.kind = kind
        self.name = name
        self.field = field
        self.message = message


def blame(kind: str, raw: Any, sections: Mapping[str, Callable[[Any], object]]) -> UnreadableObject:
    """Read section after section to find which one cannot be read; only ever called after a failure."""
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    name = "/".join(str(part) for part in (metadata.get("namespace"), metadata.get("name")) if part) or "(no name)"
    for field, read in sections.items():
        try:
            read(raw)
        except RAW_FAULTS as fault:
            text = f"missing {fault}" if isinstance(fault, KeyError) else str(fault)
            return UnreadableObject(kind, name, field, text)
    return UnreadableObject(kind, name, "(object)", "not readable")
