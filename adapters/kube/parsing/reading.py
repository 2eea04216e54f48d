"""How a parser turns whatever goes wrong inside it into one kind of error.

Asked by each parse_* function. The step that was being read when something went wrong is named in the error, so that a
person learns which field to look at. The trap avoided: a bare KeyError from somewhere in a list of five thousand nodes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from adapters.kube.parsing.errors import UnreadableObject
from adapters.kube.parsing.fields import Json


@dataclass(slots=True)
class Place:
    """Which field is being read now."""

    field: str = "metadata"


@contextmanager
def reading(kind: str, raw: Any) -> Iterator[Place]:
    """Raise UnreadableObject in place of every error that unexpected JSON can cause."""
    place = Place()
    try:
        yield place
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        name = str((raw.get("metadata") or {}).get("name", "")) if isinstance(raw, dict) else ""
        raise UnreadableObject(kind, name, place.field, str(error) or type(error).__name__) from error


def name_of(meta: Json) -> str:
    """metadata.name, which no object lacks."""
    name = meta["name"]
    if not isinstance(name, str) or not name:
        raise ValueError("the name is empty")
    return name
