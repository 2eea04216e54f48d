"""The engines answer as upstream did: every recorded result, the comparison that `make vectors` runs."""

from pathlib import Path

import pytest

from acceptance.vectors.__main__ import compare, known_kinds, name_of, read_cases
from tests.recorded import RESULTS

FILES = {file.name.removesuffix(".jsonl.gz"): file for file in sorted(RESULTS.glob("*.jsonl.gz"))}
CASES = 7076  # of all files together


@pytest.mark.parametrize("name", FILES)
def test_recorded_results_agree(name: str) -> None:
    kind = known_kinds()[name]

    differences = [
        f"{name_of(case, number)}: {difference}"
        for number, case in enumerate(read_cases(FILES[name]), 1)
        if (difference := compare(kind, case)) is not None
    ]

    assert differences == []


def test_no_recorded_result_is_missing() -> None:
    """So that the comparison cannot pass on files that are gone or cut short."""
    assert sum(1 for file in FILES.values() for _ in read_cases(file)) == CASES


def test_a_difference_is_seen(tmp_path: Path) -> None:
    """The comparison itself: another answer in a recorded result fails."""
    case = next(read_cases(FILES["disruption-budgets"]))
    case["expected"] = {"allowed": "something else"}

    assert compare(known_kinds()["disruption-budgets"], case) is not None
