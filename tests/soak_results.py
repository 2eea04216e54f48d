"""What `make soak` plays, and how it ended: a plugin that writes each row of docs/soak.md once its tests are over.

A row is played whole or not at all, so that what the page says of it is of all its tests. One that was broken off keeps
its last result. A red test has the day since which it is; what passes alone from a cause that tests/passes_alone.toml
knows is green, as everywhere.
"""

import fcntl
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from docs.tools.soak_page import PAGE, RESULTS, ROWS, Result, Row, read_results, read_rows, write_results

CHANGED = "--changed"


class NoSuchRow(ValueError):
    """What is asked for is no row."""


def chosen(words: Sequence[str], root: Path) -> tuple[str, ...]:
    """The targets that the words after `soak` name: those, or `--changed BASE`, which prints what it chose and what of
    the change no row stands beside."""
    rows = read_rows(root)
    if words[0] != CHANGED:
        known = {each for row in rows for each in (row.target, row.target.partition("::")[0])}
        if strange := [word for word in words if word not in known]:
            raise NoSuchRow(f"{', '.join(strange)}: no row of {ROWS}; a row is played whole, by its target or its file")
        return tuple(words)
    if len(words) != 2:
        raise NoSuchRow(f"{CHANGED}: one commit is expected, since which something has changed")
    paths = changed_since(words[1], root)
    targets = tuple(row.target for row in rows if any(map(row.concerns, paths)))
    print(f"soak: {len(targets)} of {len(rows)} rows stand beside what has changed since {words[1]}", flush=True)
    if alone := [path for path in paths if not any(row.concerns(path) for row in rows)]:
        print(f"soak: beside no row: {', '.join(alone)}", flush=True)
    return targets


def changed_since(base: str, root: Path) -> list[str]:
    """The files that differ from where this branch left the other one, and new ones."""
    since = _git(root, "merge-base", base, "HEAD")
    found = f"{_git(root, 'diff', '--name-only', since)}\n{_git(root, 'ls-files', '--others', '--exclude-standard')}"
    return [path for path in dict.fromkeys(found.splitlines()) if path and Path(path) not in (PAGE, RESULTS)]


def commit_of(root: Path) -> str:
    """What is played, and whether something is changed beside it."""
    changed = [path for path in changed_since("HEAD", root) if path]
    return _git(root, "rev-parse", "--short=8", "HEAD") + (" with changes" if changed else "")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoSuchRow(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One lane at a time."""
    with (root / ROWS).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def cleared(tests: Iterable[str], root: Path) -> None:
    """They passed alone, and it is known why they had not."""
    names = set(tests)
    with _alone(root):
        results = read_results(root)
        for target, result in results.items():
            red = {name: since for name, since in result.red.items() if name not in names}
            results[target] = replace(result, red=red, passed=result.passed + len(result.red) - len(red))
        write_results(root, results)


@dataclass
class Played:
    """One row while it is played."""

    row: Row
    left: set[str] = field(default_factory=set)  # tests to come
    passed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def write(self, root: Path) -> None:
        """Nothing, where nothing could be played."""
        if not self.passed and not self.failed:
            return
        today = time.strftime("%Y-%m-%d", time.gmtime())
        with _alone(root):
            results = read_results(root)
            before = results[self.row.target].red if self.row.target in results else {}
            results[self.row.target] = Result(
                commit=commit_of(root),
                day=today,
                seconds=round(self.seconds),
                passed=len(self.passed),
                skipped=len(self.skipped),
                red={name: before.get(name, today) for name in self.failed},
            )
            write_results(root, results)


class Recorder:
    """Of one lane."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rows: dict[str, Played] = {}  # by test
        self.outcomes: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Which rows are played."""
        rows = [Played(row) for row in read_rows(self.root)]
        for test in (item.nodeid for item in session.items):
            for played in rows:
                if played.row.holds(test):
                    played.left.add(test)
                    self.rows[test] = played

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and tear-down each say something."""
        self.outcomes[report.nodeid].add(report.outcome)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Write the row after its last test."""
        begun = time.monotonic()
        yield
        played = self.rows.get(item.nodeid)
        if played is None:
            return
        said = self.outcomes[item.nodeid]
        outcome = next(each for each in ("failed", "skipped", "passed") if each in said)
        {"failed": played.failed, "skipped": played.skipped, "passed": played.passed}[outcome].append(item.nodeid)
        played.seconds += time.monotonic() - begun
        played.left.discard(item.nodeid)
        if not played.left:
            played.write(self.root)


def pytest_configure(config: pytest.Config) -> None:
    """Loaded by the lanes of the soak alone (`-p tests.soak_results`)."""
    config.pluginmanager.register(Recorder(Path.cwd()))
