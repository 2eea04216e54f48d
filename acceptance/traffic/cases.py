"""Recorded cases: how they are read, and how a file of them is recognised.

The form is the one that the recording's README describes; what is not there is empty, so that a case written by hand
may leave things out.
"""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from dovetail.model.values.json import Json

INPUT: Final = ("nodeClasses", "nodePools", "otherObjects", "pods", "world", "env", "steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case."""

    id: str
    words: str
    file: str
    given: Json
    expected: Json

    def objects(self, kind: str) -> list[Json]:
        """nodeClasses, nodePools, otherObjects or pods, as given."""
        return list(self.given.get(kind) or [])

    def unknown(self) -> list[str]:
        """What it gives that nothing here reads; such a case must not be played."""
        return sorted(set(self.given) - set(INPUT))

    @property
    def steps(self) -> list[Json]:
        """What is done after the launch."""
        return list(self.given.get("steps") or [])

    @property
    def phases(self) -> dict[str, Json]:
        """Recorded calls by phase."""
        return {phase["phase"]: phase for phase in self.expected.get("calls") or []}

    def seconds(self, phase: str) -> float:
        """How long upstream's phase was."""
        return float((self.phases.get(phase) or {}).get("seconds") or 0)

    @property
    def starts(self) -> bool:
        """Whether upstream's controller started at all."""
        return bool(self.expected.get("started", True))


def _lines(file: Path) -> Iterator[Json]:
    with gzip.open(file, "rb") as lines:
        for line in lines:
            if line.strip():
                yield orjson.loads(line)


def read_cases(file: Path) -> list[Case]:
    """All cases of one file."""
    return [
        Case(
            id=str(line.get("id") or line.get("name") or f"line {number}"),
            words=str(line.get("name") or ""),
            file=file.name.removesuffix(".jsonl.gz"),
            given=line.get("input") or {},
            expected=line.get("expected") or {},
        )
        for number, line in enumerate(_lines(file), 1)
    ]


def holds_traffic(file: Path) -> bool:
    """Recognised by the first case, not by the name: a world of AWS and calls that were made in it."""
    first = next(_lines(file), {})
    given, expected = first.get("input"), first.get("expected")
    return isinstance(given, dict) and isinstance(expected, dict) and "nodeClasses" in given and "calls" in expected
