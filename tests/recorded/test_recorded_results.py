"""The engines answer as upstream did: every recorded result, the comparison that `make vectors` runs."""

import gzip
from pathlib import Path

import pytest

from acceptance.vectors.__main__ import compare, known_kinds, name_of, read_cases
from acceptance.vectors.named import NAMED, rule_of
from dovetail.placement.constraints import demands
from tests.recorded import FOUND, RESULTS

FILES = {file.name.removesuffix(".jsonl.gz"): file for file in sorted(RESULTS.glob("*.jsonl.gz"))}
FOUND_FILES = [file for folder in FOUND for file in sorted(folder.glob("*.jsonl.gz"))]
CASES = 7076  # of all files together
FOUND_CASES = 37


def differences(file: Path) -> list[tuple[str, str]]:
    """What our engine answers otherwise than was recorded, by case."""
    kind = known_kinds()[file.name.removesuffix(".jsonl.gz")]
    return [
        (name_of(case, number), difference)
        for number, case in enumerate(read_cases(file), 1)
        if (difference := compare(kind, case)) is not None
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_recorded_results_agree(name: str) -> None:
    assert differences(FILES[name]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FILES if name.startswith(("placement", "disruption-decisions"))])
def test_recorded_results_agree_where_no_relaxed_form_of_a_pod_is_kept(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is worked out again is what it was before: how many forms there is room for decides nothing."""
    monkeypatch.setattr(demands, "MOST_KEPT", 1)

    assert differences(FILES[name]) == []


@pytest.mark.parametrize("file", FOUND_FILES, ids=lambda file: f"{file.parent.name}/{file.name.partition('.')[0]}")
def test_cases_that_once_differed_agree(file: Path) -> None:
    """Recorded later, and answered otherwise when they were first tried; those that are named differ as they say."""
    cases = {name_of(case, number) for number, case in enumerate(read_cases(file), 1)}

    assert differences(file) == [(name, meant) for name, (_, meant) in NAMED.items() if name in cases]


def test_no_recorded_result_is_missing() -> None:
    """So that the comparison cannot pass on files that are gone or cut short."""
    assert sum(map(_lines, FILES.values())) == CASES
    assert sum(map(_lines, FOUND_FILES)) == FOUND_CASES


def _lines(file: Path) -> int:
    """A case each."""
    with gzip.open(file) as lines:
        return sum(1 for _ in lines)


def test_a_difference_is_seen(tmp_path: Path) -> None:
    """The comparison itself: another answer in a recorded result fails."""
    case = next(read_cases(FILES["disruption-budgets"]))
    case["expected"] = {"allowed": "something else"}

    assert compare(known_kinds()["disruption-budgets"], case) is not None


def test_only_the_difference_that_is_named_is_meant() -> None:
    """Another answer in the same case, or the same in another one, fails."""
    ((name, (rule, meant)),) = NAMED.items()

    assert (rule_of(name, meant), rule_of(name, f"{meant}!"), rule_of("another", meant)) == (rule, None, None)
