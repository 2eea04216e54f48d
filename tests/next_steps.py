"""The time from a kill to the next step: a figure for the log of a run, since a bound on it would measure the machine.

What is promised on a machine with nothing else to do is 15 s: the heartbeat's timeout and a moment.
"""

from collections.abc import Iterable
from typing import Final

import pytest

PROMISED_SECONDS: Final = 15.0


def in_words(struck: str, seconds: Iterable[float]) -> str:
    """One line: how soon those that a kill struck got on, and how many took longer than is promised."""
    ordered = sorted(seconds)
    late = sum(1 for each in ordered if each > PROMISED_SECONDS)
    return (
        f"{struck}: {len(ordered)} struck, next step after the kill: median {ordered[len(ordered) // 2]:.1f} s, "
        f"longest {ordered[-1]:.1f} s, later than {PROMISED_SECONDS:.0f} s: {late}"
    )


def report(capsys: pytest.CaptureFixture[str], line: str) -> None:
    """Print it although the output of tests is captured."""
    with capsys.disabled():
        print(f"\n{line}", flush=True)
