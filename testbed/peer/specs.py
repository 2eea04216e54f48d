"""How the suites' program (Ginkgo's) is called, and how its report is read."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_SPECIAL: Final = re.compile(r"([\\.+*?()|\[\]{}^$])")  # of Go's regular expressions, which know no escaped space
PASSED: Final = "passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one spec ended. `why` is empty where it passed."""

    spec: str
    passed: bool
    seconds: int | None  # None: nobody remembers
    day: str
    why: str = ""


def focus(spec: str) -> str:
    """The pattern that matches this spec's full text, and no longer one that begins in the same way."""
    return _SPECIAL.sub(r"\\\1", spec) + "$"


def listed(report: Path) -> list[str]:
    """The full texts of a dry run's specs, in order."""
    return [_text(each) for each in _specs(report)]


def outcome(report: Path, spec: str) -> Outcome | None:
    """The outcome of the one spec that was run; None if the report does not have it."""
    for each in _specs(report):
        if _text(each) == spec and each["State"] != "skipped":
            return Outcome(
                spec=spec,
                passed=each["State"] == PASSED,
                seconds=round(each["RunTime"] / 1e9),
                day=each["StartTime"][:10],
                why="" if each["State"] == PASSED else _why(each),
            )
    return None


def _specs(report: Path) -> list[dict[str, Any]]:
    suites = json.loads(report.read_text())
    return [each for suite in suites for each in suite["SpecReports"] or [] if each["LeafNodeType"] == "It"]


def _text(spec: dict[str, Any]) -> str:
    return " ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]])


def _why(spec: dict[str, Any]) -> str:
    """In one line: Gomega spreads what it saw over many."""
    failure = spec.get("Failure") or {}
    where = (failure.get("Location") or {}).get("FileName", "").rpartition("/")[2]
    line = (failure.get("Location") or {}).get("LineNumber", 0)
    said = " ".join(str(failure.get("Message", "")).split())
    return f"{spec['State']} at {where}:{line}: {said}"[:300]
