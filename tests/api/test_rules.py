"""Each rule of the API, accepted and refused by the models (API-4 to API-17, AWS-8 to AWS-24)."""

import pytest

from dovetail.api.kinds import KINDS
from dovetail.api.validation import InvalidObject, parse
from tests.api.all_cases import CASES
from tests.api.case import Case

MODELS = {kind.kind: kind.model for kind in KINDS}


@pytest.mark.parametrize("case", [case for case in CASES if not case.refusal], ids=str)
def test_a_manifest_that_karpenter_takes_is_taken(case: Case) -> None:
    parse(MODELS[case.manifest["kind"]], case.manifest)


@pytest.mark.parametrize("case", [case for case in CASES if case.refusal], ids=str)
def test_a_bad_manifest_is_refused_by_its_own_rule(case: Case) -> None:
    with pytest.raises(InvalidObject) as refused:
        parse(MODELS[case.manifest["kind"]], case.manifest)

    assert [case.refusal in message for path, message in refused.value.problems if path.startswith(case.field)] == [
        True
    ]


def test_no_two_cases_are_the_same() -> None:
    names = [str(case) + case.field for case in CASES]

    assert sorted(names) == sorted(set(names))
