"""A plugin for lanes that share their tests: each takes the next group when it has done one, so all end nearly at once.

A group is a file, or a whole folder whose tests share what was prepared for them. DOVETAIL_TAKEN names the folder in
which the lanes note what is taken; the longest groups are taken first, then in the order in which pytest has them.
tests/run.py has loaded this before pytest does: PYTEST_DONT_REWRITE.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

import pytest

TAKEN: Final = "DOVETAIL_TAKEN"
# Whole systems, workflows on a real Temporal, browsers, wheels: `make test` runs these beside what mostly reckons.
WAITING: Final = tuple(
    f"tests/{name}/" for name in ("cli", "faults", "packaging", "storm", "system", "upgrade", "worker", "workflows")
)
# Their tests share worlds, plays or recordings that take long to make, or are played beside each other.
TOGETHER: Final = tuple(
    f"tests/{name}/" for name in ("faults", "ports", "recorded", "storm", "system", "testbed", "upgrade")
)
# The longest, by what they took when they ran in lanes of their own: begun last they would be waited for.
FIRST: Final = (
    *("tests/system/", "tests/upgrade/", "tests/recorded/", "tests/faults/", "tests/properties/test_claims.py"),
    *(
        f"tests/cluster/test_{name}.py"
        for name in ("flagships_changes", "flagships_savings", "flagships_drains", "flagships_books", "lives_of_nodes")
    ),
    *(f"tests/cluster/test_{name}.py" for name in ("try_it_on_kind", "disruption", "system", "lifecycle", "admission")),
    *("tests/workflows/test_supervision.py", "tests/codecs/test_places.py", "tests/disruption/test_rollouts.py"),
)


def group_of(nodeid: str) -> str:
    """What a test is taken with."""
    return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid.partition("::")[0])


def in_order(items: Sequence[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """The groups by name, the longest first. What needs real servers is a group of its own and comes before all else:
    other lanes may have no control plane."""
    place = {group: number for number, group in enumerate(FIRST)}
    groups: dict[tuple[bool, str], list[pytest.Item]] = {}
    for item in items:
        is_real = item.get_closest_marker("cluster") is not None
        groups.setdefault((not is_real, group_of(item.nodeid)), []).append(item)
    ordered = sorted(groups, key=lambda each: (each[0], place.get(each[1], len(FIRST))))
    return {f"{'' if elsewhere else 'real-'}{group}": groups[elsewhere, group] for elsewhere, group in ordered}


def taken(items: Sequence[pytest.Item], notes: Path) -> Iterator[pytest.Item]:
    """The tests of one group after another that no other lane has taken."""
    for name, group in in_order(items).items():
        try:
            (notes / name.replace("/", "-")).touch(exist_ok=False)
        except FileExistsError:
            continue
        yield from group


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """As pytest's own loop, over the tests that this lane takes. The next group is taken before the last test of one,
    since pytest takes down after a test what the next one does not need."""
    notes = os.environ.get(TAKEN)
    if not notes or session.testsfailed or session.config.option.collectonly:
        return None  # pytest's own, which says what is wrong with tests that cannot be read
    for item, following in pairwise(chain(taken(session.items, Path(notes)), [None])):
        assert item is not None
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return True
