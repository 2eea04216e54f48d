"""Which fields of an object change, one line each.

Lists of objects are compared by what identifies their items (a requirement's key, a taint's key and effect), so that
inserting an entry at the front does not change all others. Lists of plain values are one value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dovetail.model.values.json import Json

# What upkeep writes, and kubectl's own annotation: nobody intends either.
_NOTES: Final = "kubectl.kubernetes.io/"
_HASHES: Final = ("-hash", "-hash-version")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field. `before` is None if it is new, `after` if it is removed."""

    path: str
    before: str | None
    after: str | None

    @property
    def sign(self) -> str:
        """+, - or ~."""
        return "+" if self.before is None else "-" if self.after is None else "~"


def field_changes(before: Json | None, after: Json) -> tuple[FieldChange, ...]:
    """Every field that differs, sorted by path."""
    old, new = dict(_flat(before or {})), dict(_flat(after))
    paths = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    return tuple(FieldChange(path=path, before=old.get(path), after=new.get(path)) for path in paths)


def _flat(body: Json) -> Iterator[tuple[str, str]]:
    metadata = body.get("metadata") or {}
    for part in ("labels", "annotations"):
        for key, value in (metadata.get(part) or {}).items():
            if not key.startswith(_NOTES) and not key.endswith(_HASHES):
                yield f"metadata.{part}.{key}", str(value)
    yield from _values(body.get("spec") or {}, "spec")


def _values(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if {"key", "operator"} <= value.keys():
            yield path, _requirement(value)
            return
        for key, inner in value.items():
            yield from _values(inner, f"{path}.{key}")
        if not value:
            yield path, "{}"
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        yield from _items(value, path)
    elif isinstance(value, list):
        yield path, ", ".join(_plain(item) for item in value) or "[]"
    else:
        yield path, _plain(value)


def _items(items: list[Any], path: str) -> Iterator[tuple[str, str]]:
    seen: dict[str, int] = {}
    for number, item in enumerate(items):
        name = _name(item) or str(number)
        seen[name] = seen.get(name, 0) + 1
        again = f"#{seen[name]}" if seen[name] > 1 else ""
        yield from _values(item, f"{path}[{name}{again}]")


def _name(item: Any) -> str:
    if not isinstance(item, Mapping):
        return ""
    if "key" in item and "effect" in item:
        return f"{item['key']}:{item['effect']}"
    return str(item.get("key") or item.get("deviceName") or "")


def _requirement(item: Mapping[str, Any]) -> str:
    values = ", ".join(str(value) for value in item.get("values") or ())
    least = f" (at least {item['minValues']})" if item.get("minValues") else ""
    return f"{item['operator']} {values}".strip() + least


def _plain(value: Any) -> str:
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)
