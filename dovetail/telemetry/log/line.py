"""The content and form of log lines: JSON for programs, text for people.

Every line begins with the same fields in Karpenter's order. Text from outside (names, messages of the cloud, texts of
pods) is bounded, and quoted in both forms so that it cannot end its field or line, or colour a terminal.
"""

import json
import logging
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.telemetry.log.words import GROUPS, LogLine

LOGGER: Final = "controller"  # of what is done, named as in Karpenter; all other lines have their module's
EXTRA: Final = "log_line"

MOST_CHARACTERS: Final = 1000  # of one text
MOST_ENTRIES: Final = 100  # of one list
MOST_OF_A_TRACE: Final = 8000  # the end of a stack trace

_LEVELS: Final = {"WARNING": "WARN", "CRITICAL": "ERROR"}

# What the running step adds to each line: its workflow_id, and its trace_id if there is a trace.
step_fields: ContextVar[Mapping[str, str] | None] = ContextVar("step_fields", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneLine:
    log_line: LogLine
    controller: str
    name: str = ""  # of the object that the line is about
    fields: Mapping[str, Any] = field(default_factory=dict)


def fields_of(record: logging.LogRecord, commit: str) -> dict[str, Any]:
    """All fields of the line, in order."""
    done: DoneLine | None = getattr(record, EXTRA, None)
    head: dict[str, Any] = {
        "level": _LEVELS.get(record.levelname, record.levelname),
        "time": _moment(record.created),
        "logger": record.name if done is None else LOGGER,
        "message": bounded(record.getMessage()),
        "commit": commit,
    }
    if done is None:
        return {**head, **_origin(record), **_error(record)}
    return {**head, **_subject(done), **_origin(record), **{key: bounded(value) for key, value in done.fields.items()}}


def bounded(value: Any) -> Any:
    """The value, cut to what a line can carry."""
    if isinstance(value, str):
        return value if len(value) <= MOST_CHARACTERS else f"{value[:MOST_CHARACTERS]}..."
    if isinstance(value, Mapping):
        return {str(key): bounded(each) for key, each in list(value.items())[:MOST_ENTRIES]}
    if isinstance(value, list | tuple):
        return [bounded(each) for each in value[:MOST_ENTRIES]]
    return value


def _moment(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"


def _subject(done: DoneLine) -> dict[str, Any]:
    kind = done.log_line.about
    if not kind:
        return {"controller": done.controller, "namespace": "", "name": ""}
    return {
        "controller": done.controller,
        "controllerGroup": GROUPS[kind],
        "controllerKind": kind,
        kind: {"name": done.name},
        "namespace": "",
        "name": done.name,
    }


def _origin(record: logging.LogRecord) -> dict[str, str]:
    """The workflow that the line belongs to: the one whose step runs, or the one that logs."""
    of_workflow: Mapping[str, Any] = getattr(record, "temporal_workflow", {})
    found = dict(step_fields.get() or {})
    if "workflow_id" in of_workflow:
        found["workflow_id"] = str(of_workflow["workflow_id"])
    return found


def _error(record: logging.LogRecord) -> dict[str, str]:
    if not record.exc_info:
        return {}
    return {"error": logging.Formatter().formatException(record.exc_info)[-MOST_OF_A_TRACE:]}


class JsonLines(logging.Formatter):
    """One JSON object per line, in pure ASCII."""

    def __init__(self, commit: str) -> None:
        super().__init__()
        self.commit = commit

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(fields_of(record, self.commit), separators=(",", ":"), default=str)


class TextLines(logging.Formatter):
    """Log lines for a terminal: time, level, logger, message, then key=value."""

    def format(self, record: logging.LogRecord) -> str:
        said = fields_of(record, "")
        head = [said.pop(name) for name in ("time", "level", "logger", "message")]
        said = {key: value for key, value in said.items() if value not in ("", None)}
        moment, level, logger, message = head
        return " ".join([moment, level, logger, _plain(message), *[f"{key}={_value(said[key])}" for key in said]])


def _plain(text: str) -> str:
    """The text unquoted if a terminal shows each of its characters as it is."""
    return text if text.isprintable() else json.dumps(text)


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and value.keys() == {"name"}:
        value = value["name"]
    if isinstance(value, str) and value.isprintable() and not set(value) & set(' "='):
        return value
    return json.dumps(value, separators=(",", ":"), default=str)
