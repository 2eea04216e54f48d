"""Writes TOML: tables, texts, numbers, flags and lists, which is all that Bottlerocket's settings use.

The standard library can only read it. Keys with dots and slashes are quoted, so that a label stays one key.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+\Z")


def write_toml(document: Mapping[str, Any]) -> str:
    """A document that tomllib reads back unchanged."""
    lines: list[str] = []
    _write_table(document, (), lines)
    return "\n".join(lines).strip() + "\n"


def _write_table(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if path and (plain or not table):
        lines += ["", f"[{'.'.join(_key(part) for part in path)}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in sorted(plain.items())]
    for key, value in sorted(table.items()):
        if isinstance(value, Mapping):
            _write_table(value, (*path, key), lines)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in sorted(value.items())) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return str(value.isoformat())  # dates and times, the only other thing that TOML has


def _key(text: str) -> str:
    return text if _BARE.match(text) else _text(text)


def _text(text: str) -> str:
    """A JSON string is a TOML string, except for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
