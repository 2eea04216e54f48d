"""Settings as environment variables hold them: durations, and feature gates by name.

For the validators of settings. Values that are no text pass through; unreadable ones are a ValueError that says so.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from dovetail.model.values.durations import parse_seconds

MOST_NODE_COST: Final = 1e6  # dollars an hour: beyond it the prices of types no longer matter

# The part of Go's durations that settings take: no sign, and no unit below a millisecond.
_DURATION: Final = re.compile(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+")


def seconds_of(value: Any) -> Any:
    """The seconds of `1m30s`."""
    if not isinstance(value, str):
        return value
    if not _DURATION.fullmatch(value):
        raise ValueError(f"not a duration: {value!r}")
    return parse_seconds(value)


def gates_of(value: Any, defaults: Mapping[str, bool]) -> Any:
    """The gates of `A=true,B=false`. Unnamed gates keep their defaults; unknown ones have no effect (OPS-1)."""
    if not isinstance(value, str):
        return value
    gates = dict(defaults)
    for part in filter(None, value.split(",")):
        name, mark, state = part.partition("=")
        if not mark or state.lower() not in {"true", "false"}:
            raise ValueError(f"not Name=true or Name=false: {part!r}")
        if name.strip() in gates:
            gates[name.strip()] = state.lower() == "true"
    return gates


def unknown_gates(text: str, known: Mapping[str, bool]) -> tuple[str, ...]:
    """The gates in the text that do not exist, in its order."""
    names = (part.partition("=")[0].strip() for part in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name and name not in known))
