"""Run pytest and leave at once; what fails is run once more, alone.

Whole-system tests share two cores with each other's servers, and a machine under load fails one now and then. A test
that fails is therefore run a second time by itself, and both outcomes are printed: one that fails twice has failed, one
that passes alone is named, so that nobody overlooks it. Python 3.11 now and then aborts at interpreter exit when the
Temporal SDK is loaded (exit code 134); leaving with os._exit after a flush keeps the exit code that pytest gave.
"""

import os
import subprocess
import sys

import pytest

# More failures than this are no accident: they are not tried again.
MOST_TRIED_AGAIN = 10


class Failures:
    """A plugin that notes which tests failed, in set-up, call or tear-down."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure once."""
        if report.failed and report.nodeid not in self.names:
            self.names.append(report.nodeid)


def again(names: list[str]) -> int:
    """Run these alone, in a process of their own."""
    print(f"\nfailed, and run once more alone: {', '.join(names)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "tests.run", "--alone", *names], check=False).returncode
    print(f"the second run {'passed' if code == 0 else 'failed'}: {', '.join(names)}", flush=True)
    return code


def main() -> None:
    """The arguments are pytest's; --alone is for the second run, which has none of its own."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--alone"]
    failures = Failures()
    code = int(pytest.main(arguments, plugins=[failures]))
    may_try = "--alone" not in sys.argv and code == int(pytest.ExitCode.TESTS_FAILED)
    if may_try and 0 < len(failures.names) <= MOST_TRIED_AGAIN:
        code = again(failures.names)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
