"""The page of the soak: docs/soak/rows.toml has its rows, docs/soak/results.json how each ended last.

`make soak` writes the results and the tables of docs/soak.md, `make reference` the tables alone. All else there is
written by hand.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

ROWS: Final = Path("docs/soak/rows.toml")
RESULTS: Final = Path("docs/soak/results.json")
PAGE: Final = Path("docs/soak.md")
HEAD: Final = ("| test | what it plays | held to | last run | what it showed |", "|---|---|---|---|---|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of a test before it is played. `target` is a file, or a file and one of its tests."""

    section: str
    target: str
    plays: str
    held_to: str
    folders: tuple[str, ...]  # a change of what lies there asks for it
    showed: str = ""
    day: date | None = None  # on which it showed that

    def holds(self, test: str) -> bool:
        """Whether that test is of this row."""
        return test.partition("[")[0] == self.target or test.partition("::")[0] == self.target

    def concerns(self, path: str) -> bool:
        """Whether a change of that file asks for this row."""
        mine = (self.target.partition("::")[0], *self.folders)
        return any(path == each or path.startswith(f"{each}/") for each in mine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a row ended last."""

    commit: str
    day: str
    seconds: int
    passed: int
    skipped: int = 0
    red: Mapping[str, str] = field(default_factory=dict)  # test: since which day


def read_rows(root: Path) -> tuple[Row, ...]:
    """All rows, in the order of the page."""
    found = tomllib.loads((root / ROWS).read_text(encoding="utf-8"))["row"]
    return tuple(Row(**{**each, "folders": tuple(each["folders"])}) for each in found)


def read_results(root: Path) -> dict[str, Result]:
    """By target; nothing where nothing has been played."""
    file = root / RESULTS
    return {t: Result(**each) for t, each in json.loads(file.read_text()).items()} if file.exists() else {}


def write_results(root: Path, results: Mapping[str, Result]) -> None:
    """The results, and the page that shows them."""
    bodies = {target: asdict(results[target]) for target in sorted(results)}
    (root / RESULTS).write_text(json.dumps(bodies, indent=2) + "\n", encoding="utf-8")
    write_page(root)


def write_page(root: Path) -> None:
    """Its tables, from the data."""
    page = (root / PAGE).read_text(encoding="utf-8")
    (root / PAGE).write_text(rewritten(page, read_rows(root), read_results(root)), encoding="utf-8")


def last_run(row: Row, result: Result | None) -> str:
    """The words of the cell. Red comes first, and since when."""
    if result is None:
        return f"not run since {row.day}" if row.day else "–"
    red = [f"`{name.removeprefix(f'{row.target}::')}` since {since}" for name, since in result.red.items()]
    said = [f"**red**: {', '.join(red)}"] if red else []
    counts = [f"{result.passed} passed"] + [f"{len(red)} failed"] * bool(red)
    counts += [f"{result.skipped} skipped"] * bool(result.skipped)
    said.append(f"{', '.join(counts)} in {result.seconds:,} s")
    return f"{'; '.join(said)} ({result.day}, `{result.commit}`)"


def table(rows: Sequence[Row], results: Mapping[str, Result]) -> list[str]:
    """A line for each row."""
    lines = list(HEAD)
    for row in rows:
        showed = f"{row.showed} ({row.day})" if row.showed and row.day else row.showed or "–"
        ran = last_run(row, results.get(row.target))
        lines.append(f"| `{row.target}` | {row.plays} | {row.held_to} | {ran} | {showed} |")
    return lines


def rewritten(page: str, rows: Sequence[Row], results: Mapping[str, Result]) -> str:
    """The page with the table of each section as the data has it."""
    lines: list[str] = []
    section, in_table = "", False
    for line in page.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        begins = line == HEAD[0]
        if begins:
            lines += table([row for row in rows if row.section == section], results)
        in_table = begins or (in_table and line.startswith("|"))
        if not in_table:
            lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_page(Path())
