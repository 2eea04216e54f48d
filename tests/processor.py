"""A plugin that says what the tests cost: the processor seconds of this process and of the ones it has waited for.

`python -m tests.run -p tests.processor …` says the dearest tests and files; DOVETAIL_COSTS=FILE notes each test, with
the seconds that it took beside those of the processor, also of `make test`. Unlike pytest's --durations these mean the
same on a machine that does other work beside. A server that outlives its test is counted when it ends.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SHOWN = 20
COSTS = "DOVETAIL_COSTS"  # a file; lanes side by side append to it
_SPENT: defaultdict[str, float] = defaultdict(float)
_TAKEN: defaultdict[str, float] = defaultdict(float)  # seconds of the clock


def seconds() -> float:
    """Spent so far by this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Set-up, call and tear-down together: the first that asks for a shared fixture pays for it."""
    before, begun = seconds(), time.monotonic()
    try:
        return (yield)
    finally:
        _SPENT[item.nodeid] += seconds() - before
        _TAKEN[item.nodeid] += time.monotonic() - begun


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The dearest tests, the dearest files, and all together."""
    files: defaultdict[str, float] = defaultdict(float)
    for name, spent in _SPENT.items():
        files[name.partition("::")[0]] += spent
    for kind, dearest in (("tests", _SPENT), ("files", files)):
        terminalreporter.section(f"dearest {kind}, in processor seconds")
        for name, spent in sorted(dearest.items(), key=lambda each: -each[1])[:SHOWN]:
            terminalreporter.write_line(f"{spent:8.2f} {name}")
    terminalreporter.write_line(f"{seconds():8.2f} all together")
    if file := os.environ.get(COSTS):
        with Path(file).open("a") as noted:
            noted.writelines(f"{spent:.3f} {_TAKEN[name]:.3f} {name}\n" for name, spent in _SPENT.items())
