"""Run pytest in lanes side by side and leave at once; what fails is run once more, alone.

`python -m tests.run check` runs the fast tests, `test` everything but the soak, `soak` the many repetitions (`soak
FILE…` some of them, `soak --changed BASE` those beside a change), `coverage` the fast tests with what they cover;
anything else goes to pytest as it is.

Lanes that share their tests take one group after another (tests/taking.py), so that they end nearly together. What runs
on real servers, and whole systems on a real Temporal, mostly wait: each of these kinds has two lanes, and those of the
first help with the second when theirs is done. What mostly reckons has two, far behind the others (nice), so that two
cores have something to do whenever those wait. With four lanes of each kind that waits the whole ended no sooner, since
the cores are never idle, but a server had so little of them that what takes seconds took minutes.
Whole-system tests share the cores with each other's servers, and a machine under load fails one now and then. A test
that fails is therefore run a second time by itself, and both outcomes are printed. One that fails twice has failed. One
that passes alone has failed too, unless tests/passes_alone.toml (`--ledger FILE` for another one) names it with its
cause: what nobody has explained may be the product's fault. Python 3.11 now and then aborts at interpreter exit when
the Temporal SDK is loaded (exit code 134); leaving with os._exit after a flush keeps the exit code that pytest gave.

Compiled files are written whatever PYTHONDONTWRITEBYTECODE says: hundreds of workers and sandboxes load the same files.
"""

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

from tests.ledger import LEDGER, LedgerError, judged, read_ledger
from tests.processor import COSTS
from tests.soak_results import NoSuchRow, chosen, cleared
from tests.taking import TAKEN, WAITING

FAST = "not temporal and not cluster and not slow and not soak"
SLOWEST = "--durations=8"
EXPLORING = ("--hypothesis-profile", "exploring")  # made-up cases that no earlier run has seen
SOAK = ("-p", "tests.soak_results", *EXPLORING, "-m", "soak")  # each row is noted on its page
ALONE = "--alone"
OTHER_LEDGER = "--ledger"
COVERAGE = "--coverage"  # measure which lines of the product run; only where no clock matters, since it slows all down
# All folders with tests on real servers: who reads only these does not read the others' thousands.
REAL = tuple(f"tests/{name}/" for name in ("cluster", "packaging", "ports", "recorded", "storm", "testbed"))


@dataclass(frozen=True, slots=True)
class Share:
    """What is run, in one lane or by several that take turns."""

    words: tuple[str, ...]  # for pytest
    lanes: int = 1
    behind: bool = False  # other lanes' processes come first
    among: str = ""  # shares of one name take what both have by turns

    def command(self) -> list[str]:
        """Of each of its lanes."""
        first = ("nice", "-n", "10") if self.behind else ()
        taking = ("-p", "tests.taking") if self.lanes > 1 or self.among else ()
        costs = ("-p", "tests.processor") if COSTS in os.environ else ()
        return [*first, sys.executable, "-m", "tests.run", *taking, *costs, *self.words]


LANES: dict[str, tuple[Share, ...]] = {
    "check": (Share(("-m", FAST), lanes=2),),
    "test": (
        Share((SLOWEST, "-m", "(cluster or waits) and not soak", *sorted({*REAL, *WAITING})), lanes=2, among="waiting"),
        Share((SLOWEST, "-m", "waits and not cluster and not soak", *WAITING), lanes=2, among="waiting"),
        Share((SLOWEST, "-m", "not waits and not cluster and not soak"), lanes=2, behind=True),
    ),
    "coverage": (Share((COVERAGE, "-m", FAST)),),
    "soak": (Share((*SOAK, "tests/cluster")), Share((*SOAK, "--ignore", "tests/cluster"))),
}


def shares_of(arguments: list[str]) -> tuple[Share, ...] | None:
    """The lanes of a run; None for one that is pytest's own."""
    if not arguments or arguments[0] != "soak" or len(arguments) == 1:
        return LANES.get(arguments[0]) if len(arguments) == 1 else None
    targets = chosen(arguments[1:], Path.cwd())
    real = tuple(target for target in targets if target.startswith("tests/cluster/"))
    others = tuple(target for target in targets if target not in real)
    return tuple(Share((*SOAK, *lane)) for lane in (real, others) if lane)


# More failures than this are no accident: they are not tried again.
MOST_TRIED_AGAIN = 10
_NOTES = "DOVETAIL_TEST_NOTES"  # the file in which a lane notes what failed and what was skipped


class Outcomes:
    """A plugin that notes which tests failed, in set-up, call or tear-down, and which were skipped, with the reason.

    A lane passes them on as lines of its notes."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.skipped: list[tuple[str, str]] = []  # test, reason

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note an outcome once."""
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped.append((report.nodeid, report.longrepr[2].removeprefix("Skipped: ")))

    def write(self, notes: Path) -> None:
        """For the process that started this lane."""
        notes.write_text(json.dumps([self.failed, self.skipped]))

    def read(self, notes: Path) -> None:
        """Add what a lane wrote, if it came that far."""
        if notes.exists():
            failed, skipped = json.loads(notes.read_text())
            self.failed += failed
            self.skipped += [(test, reason) for test, reason in skipped]

    def words_on_skipped(self) -> str:
        """Which tests saw nothing, under their reason: a green run says what it did not look at."""
        if not self.skipped:
            return "skipped: nothing"
        reasons = sorted({reason for _, reason in self.skipped})
        tests = {reason: [test for test, why in self.skipped if why == reason] for reason in reasons}
        return "\n".join(f"skipped: {reason}: {', '.join(tests[reason])}" for reason in reasons)


def here(arguments: list[str], seen: Outcomes) -> int:
    """Run pytest in this process: its exit code."""
    if COVERAGE not in arguments:
        return int(pytest.main(arguments, plugins=[seen]))
    measured = coverage.Coverage(data_file=None, source_pkgs=["dovetail"], branch=False)
    measured.start()
    code = int(pytest.main([word for word in arguments if word != COVERAGE], plugins=[seen]))
    measured.stop()
    print(f"coverage: {measured.report(file=io.StringIO()):.1f} % of the product's lines run in the fast tests alone")
    return code


def side_by_side(shares: tuple[Share, ...], seen: Outcomes) -> int:
    """A process for each lane. The first one's words are printed as they come, the others' afterwards, and in the end
    what was skipped."""
    lanes = [share for share in shares for _ in range(share.lanes)]
    with tempfile.TemporaryDirectory() as folder:
        noted = [Path(folder) / f"noted-{number}" for number in range(len(lanes))]
        spoken = [Path(folder) / f"output-{number}" for number in range(len(lanes))]
        running = []
        for number, share in enumerate(lanes):
            notes = Path(folder) / f"taken-{share.among}"
            notes.mkdir(exist_ok=True)
            environment = {_NOTES: str(noted[number]), "DOVETAIL_LANE": str(number), TAKEN: str(notes)}
            with spoken[number].open("wb") as output:
                running.append(
                    subprocess.Popen(
                        share.command(),
                        env={**os.environ, **environment},
                        stdout=None if number == 0 else output,
                        stderr=None if number == 0 else output,
                    )
                )
        codes = []
        try:
            for number, process in enumerate(running):
                codes.append(process.wait())
                sys.stdout.write(spoken[number].read_text(errors="replace"))
                sys.stdout.flush()
        finally:
            for process in running:
                if process.poll() is None:
                    process.terminate()  # pytest then tears down what it has started; SIGINT is ignored under nohup
                    process.wait()
        for file in noted:
            seen.read(file)
    print(seen.words_on_skipped(), flush=True)
    return max(codes, key=abs)


def again(names: list[str], ledger: Path) -> int:
    """Run these alone, in a process of their own. A pass counts for those whose cause the ledger knows."""
    try:
        entries = read_ledger(ledger)
    except LedgerError as error:
        print(f"\nfailed, and not run again, for the ledger cannot be read: {error}", flush=True)
        return int(pytest.ExitCode.TESTS_FAILED)
    print(f"\nfailed, and run once more alone: {', '.join(names)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "tests.run", ALONE, *names], check=False).returncode
    print(f"the second run {'passed' if code == 0 else 'failed'}: {', '.join(names)}", flush=True)
    if code != 0:
        return code
    second = judged(names, entries)
    print("\n".join(second.words()), flush=True)
    return int(pytest.ExitCode.TESTS_FAILED) if second.unexplained else code


def _leave(number: int, frame: object) -> None:
    """Stopped from outside: the lanes and their servers must not stay behind."""
    raise KeyboardInterrupt(f"signal {number}")


def main() -> None:
    """The arguments are `check`, `test`, or pytest's own; --alone is for the second run, which has none of its own."""
    signal.signal(signal.SIGTERM, _leave)
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    arguments = [argument for argument in sys.argv[1:] if argument != ALONE]
    ledger = LEDGER
    if OTHER_LEDGER in arguments:
        at = arguments.index(OTHER_LEDGER)
        ledger = Path(arguments[at + 1])
        del arguments[at : at + 2]
    try:
        shares = shares_of(arguments)
    except NoSuchRow as error:
        sys.exit(f"soak: {error}")
    seen = Outcomes()
    code = here(arguments, seen) if shares is None else side_by_side(shares, seen) if shares else 0
    notes = os.environ.get(_NOTES)
    if notes:
        seen.write(Path(notes))
    may_try = not notes and ALONE not in sys.argv and code == int(pytest.ExitCode.TESTS_FAILED)
    if may_try and 0 < len(seen.failed) <= MOST_TRIED_AGAIN:
        code = again(seen.failed, ledger)
        if code == 0 and arguments[:1] == ["soak"]:
            cleared(seen.failed, Path.cwd())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
