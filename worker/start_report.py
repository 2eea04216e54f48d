"""What a worker logs about its settings at its start: those in effect, unknown gates, variables without effect.

A misspelt gate, or a variable of Karpenter's that does nothing here, is no error, because a Deployment that was written
for Karpenter must start. Each is logged once, so that nobody relies on it.
"""

import logging
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from dovetail.model.values.setting_texts import gates_of, unknown_gates
from dovetail.settings.deciding import TERMINATES_FIRST
from dovetail.settings.settings import GATES, Settings
from dovetail.settings.without_effect import GATES_WITHOUT_EFFECT, set_without_effect
from dovetail.telemetry.log.line import MOST_CHARACTERS

TEMPORAL_CLOUD: Final = ".tmprl.cloud"
NOT_FILLED: Final = "needs StaticCapacity=true: else nobody fills the place of a node that leaves first"
HEARTBEATS: Final = "DOVETAIL_TEMPORAL_HEARTBEATS"
LONGEST: Final = 80  # characters of a value; a certificate says nothing to a reader

Line = tuple[int, str]  # the level, and the text


def start_report(settings: Settings, source: Mapping[str, str]) -> Iterator[Line]:
    """The lines, each with its level. `source`: the environment and the flags."""
    for line in _in_lines(f"{name}={value}" for name, value in in_effect(settings)):
        yield logging.INFO, f"settings:{line}"
    for name, known in (("FEATURE_GATES", GATES), *_cloud_gates(settings)):
        yield from _other_gates(name, source.get(name, ""), known)
    if not settings.gates["StaticCapacity"]:
        for gate in (gate for gate in TERMINATES_FIRST if settings.gates[gate]):
            yield logging.WARNING, f"FEATURE_GATES: {gate}=true {NOT_FILLED}"
    if source.get("TEMPORAL_ADDRESS", "").split(":")[0].endswith(TEMPORAL_CLOUD) and not source.get(HEARTBEATS):
        yield logging.WARNING, f"{HEARTBEATS} is not set: Temporal Cloud bills each heartbeat, and `cloud` sends few"
    for one, value, is_missed in set_without_effect(source):
        level = logging.WARNING if is_missed else logging.INFO
        yield level, f"{one.variable}={shortened(value)} has no effect: {one.reason}"


def _other_gates(name: str, text: str, known: Mapping[str, bool]) -> Iterator[Line]:
    """The gates that have no effect: Karpenter's, with the reason, and those that nobody knows."""
    for gate in unknown_gates(text, known):
        if gate in GATES_WITHOUT_EFFECT:
            is_open = gates_of(text, {gate: False})[gate]
            said = f"{name}: {gate}={shown(is_open)} has no effect: {GATES_WITHOUT_EFFECT[gate]}"
            yield logging.WARNING if is_open else logging.INFO, said
            continue
        meant = get_close_matches(gate, known, n=1)
        hint = f"; did you mean {meant[0]}?" if meant else f"; there are {', '.join(known)}"
        yield logging.WARNING, f"{name}: there is no gate {gate!r}, it has no effect{hint}"


def _in_lines(words: Iterator[str]) -> Iterator[str]:
    """The report in the fewest lines that the log does not cut."""
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > MOST_CHARACTERS - len("settings:"):
            yield line
            line = ""
        line += f" {word}"
    yield line


def in_effect(settings: Settings) -> Iterator[tuple[str, str]]:
    """Every setting that has a value, by its variable, including those of the cloud."""
    for model in (settings, settings.of_cloud):
        for name, field in type(model).model_fields.items():
            text = shown(getattr(model, name))
            if field.alias and text:
                yield field.alias, text


def shown(value: Any) -> str:
    """A setting's value in one word where that is possible; empty where it is not set."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ",".join(f"{name}={str(state).lower()}" for name, state in value.items())
    if isinstance(value, tuple):
        return ",".join(str(part) if isinstance(part, str) else type(part).__name__ for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else shortened(str(value))


def shortened(text: str) -> str:
    """The text, quoted where it has blanks, and its length alone where it is long."""
    if len(text) > LONGEST:
        return f"<{len(text)} characters>"
    return repr(text) if any(letter.isspace() for letter in text) else text


def _cloud_gates(settings: Settings) -> Iterator[tuple[str, Mapping[str, bool]]]:
    """The gates of the cloud alone, by their variable."""
    model = settings.of_cloud
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if field.alias and isinstance(value, Mapping):
            yield field.alias, value
