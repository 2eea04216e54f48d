"""Writes what was done as one log line."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dovetail.model import names
from dovetail.telemetry.log.line import EXTRA, DoneLine
from dovetail.telemetry.log.words import LogLine

_log = logging.getLogger("dovetail.telemetry.log")

FEW: Final = 5  # of a list of names, as Karpenter writes it


def say(log_line: LogLine, name: str = "", *, controller: str = "", **fields: Any) -> None:
    """Write one line. Field names are written with underscores here, and appear in the line as in the list."""
    if not _log.isEnabledFor(log_line.level):
        return
    given = {_key(key): value for key, value in fields.items()}
    ordered = {key: given.pop(_key(key)) for key in log_line.fields if _key(key) in given}
    if given:
        raise ValueError(f"{log_line.message}: no field {', '.join(given)} is listed for it")
    done = DoneLine(log_line=log_line, controller=controller or log_line.controller, name=name, fields=ordered)
    _log.log(log_line.level, "%s", log_line.message, extra={EXTRA: done})


def named(name: str) -> dict[str, str]:
    """A reference to an object in Karpenter's form."""
    return {"name": name}


def few(items: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    shown = ", ".join(items[:FEW])
    more = len(items) - FEW
    return f"{shown} and {more} other(s)" if more > 0 else shown


def placed(labels: Mapping[str, str]) -> dict[str, str]:
    """Where and as what the node runs, by the labels of claim or node."""
    return {
        "instance_type": labels.get(names.INSTANCE_TYPE, ""),
        "zone": labels.get(names.ZONE, ""),
        "capacity_type": labels.get(names.CAPACITY_TYPE, ""),
    }


def _key(name: str) -> str:
    return name.rpartition("/")[2].replace("-", "_").replace(".", "_")
