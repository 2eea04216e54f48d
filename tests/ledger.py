"""The ledger of tests that fail beside others and pass alone: which, since when, and from what cause."""

import datetime
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LEDGER: Final = Path(__file__).parent / "passes_alone.toml"
FEWEST_WORDS: Final = 6  # "flaky under load" is no cause


class LedgerError(ValueError):
    """The ledger cannot be believed. The text names the entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One test, or all parameters of one."""

    name: str
    since: datetime.date
    cause: str

    def covers(self, test: str) -> bool:
        """Whether this is that test's entry."""
        return test == self.name or test.partition("[")[0] == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondRun:
    """What a second run that passed is worth."""

    known: tuple[Entry, ...]
    unexplained: tuple[str, ...]

    def words(self) -> list[str]:
        """Lines for a person."""
        return [
            *(f"passed alone, known since {entry.since}: {entry.name}: {entry.cause}" for entry in self.known),
            *(
                f"passed alone, and stays red: {name}: no cause stands in tests/{LEDGER.name}"
                for name in self.unexplained
            ),
        ]


def judged(passed_alone: Iterable[str], entries: tuple[Entry, ...]) -> SecondRun:
    """Which of these failures are explained."""
    names = tuple(passed_alone)
    return SecondRun(
        known=tuple(entry for entry in entries if any(entry.covers(name) for name in names)),
        unexplained=tuple(name for name in names if not any(entry.covers(name) for entry in entries)),
    )


def read_ledger(path: Path = LEDGER) -> tuple[Entry, ...]:
    """All entries; a LedgerError names the first that says too little."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise LedgerError(f"{path.name}: {error}") from error
    rows = content.get("test", [])
    if not isinstance(rows, list):
        raise LedgerError(f"{path.name}: test: a list of tables is expected")
    return tuple(_entry(f"{path.name}: test {number}", row) for number, row in enumerate(rows, 1))


def _entry(where: str, row: Any) -> Entry:
    if not isinstance(row, dict) or set(row) != {"name", "since", "cause"}:
        raise LedgerError(f"{where}: name, since and cause are expected, and nothing else")
    name, since, cause = row["name"], row["since"], row["cause"]
    if not isinstance(name, str) or "::" not in name:
        raise LedgerError(f"{where}: name: the id of a test is expected, not {name!r}")
    if type(since) is not datetime.date:
        raise LedgerError(f"{where} ({name}): since: a date is expected, not {since!r}")
    if not isinstance(cause, str) or len(cause.split()) < FEWEST_WORDS:
        raise LedgerError(f"{where} ({name}): cause: what makes it fail is expected, in a sentence")
    return Entry(name=name, since=since, cause=cause)
