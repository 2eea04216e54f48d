"""The engines answer as upstream did: every recorded result, the comparison that `make vectors` runs."""

from pathlib import Path

import pytest

from acceptance.vectors.__main__ import compare, known_kinds, name_of, read_cases
from tests.recorded import FOUND, RESULTS

FILES = {file.name.removesuffix(".jsonl.gz"): file for file in sorted(RESULTS.glob("*.jsonl.gz"))}
FOUND_FILES = {file.name.removesuffix(".jsonl.gz"): file for file in sorted(FOUND.glob("*.jsonl.gz"))}
CASES = 7076  # of all files together
FOUND_CASES = 13


def differences(name: str, file: Path) -> list[str]:
    """What our engine answers otherwise than was recorded, case by case."""
    kind = known_kinds()[name]
    return [
        f"{name_of(case, number)}: {difference}"
        for number, case in enumerate(read_cases(file), 1)
        if (difference := compare(kind, case)) is not None
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_recorded_results_agree(name: str) -> None:
    assert differences(name, FILES[name]) == []


@pytest.mark.parametrize("name", FOUND_FILES)
def test_cases_that_once_differed_agree(name: str) -> None:
    """Recorded later, and answered otherwise when they were first tried."""
    assert differences(name, FOUND_FILES[name]) == []


def test_no_recorded_result_is_missing() -> None:
    """So that the comparison cannot pass on files that are gone or cut short."""
    assert sum(1 for file in FILES.values() for _ in read_cases(file)) == CASES
    assert sum(1 for file in FOUND_FILES.values() for _ in read_cases(file)) == FOUND_CASES


def test_a_difference_is_seen(tmp_path: Path) -> None:
    """The comparison itself: another answer in a recorded result fails."""
    case = next(read_cases(FILES["disruption-budgets"]))
    case["expected"] = {"allowed": "something else"}

    assert compare(known_kinds()["disruption-budgets"], case) is not None
