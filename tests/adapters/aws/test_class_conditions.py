"""Ready of an EC2NodeClass, and in which order it names what is not so."""

import pytest

from dovetail.adapters.aws.node_class import conditions as c
from dovetail.adapters.aws.node_class.conditions import Verdict, conditions, false, true
from dovetail.adapters.aws.node_class.node_class import NodeClass, read_class
from dovetail.model.values.json import Json
from worlds.aws import ClassStore

ALL = (c.IMAGES, c.PROFILE, c.GROUPS, c.SUBNETS, c.RESERVATIONS, c.VALIDATION)


def judged(*bad: str, unknown: tuple[str, ...] = ()) -> dict[str, Verdict]:
    verdicts = {kind: false("Missing", "nothing found") if kind in bad else true(kind) for kind in ALL}
    return {**verdicts, **dict.fromkeys(unknown, c.UNKNOWN)}


def ready_of(written: list[Json]) -> tuple[str, str, str]:
    [ready] = [condition for condition in written if condition["type"] == c.READY]
    return ready["status"], ready["reason"], ready["message"]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (judged(), ("True", "Ready", "")),
        (
            judged(c.IMAGES, c.VALIDATION),
            ("False", "UnhealthyDependents", "ValidationSucceeded=False, AMIsReady=False"),
        ),
        (
            judged(c.GROUPS, c.VALIDATION),
            ("False", "UnhealthyDependents", "ValidationSucceeded=False, SecurityGroupsReady=False"),
        ),
        (
            judged(unknown=(c.VALIDATION, c.IMAGES)),
            ("Unknown", "ReconcilingDependents", "AMIsReady=Unknown, ValidationSucceeded=Unknown"),
        ),
        (
            judged(c.SUBNETS, unknown=(c.VALIDATION,)),
            ("False", "UnhealthyDependents", "SubnetsReady=False, ValidationSucceeded=Unknown"),
        ),
    ],
)
def test_what_is_found_at_once_is_named_as_if_one_after_the_other(
    verdicts: dict[str, Verdict], expected: tuple[str, str, str]
) -> None:
    """AWS-27, PLM-6: in the words of the recorded cases."""
    assert ready_of(conditions((), verdicts, 1, 100.0)) == expected


def test_the_newest_transition_is_named_first() -> None:
    """PLM-6: whatever its type, and still so in later rounds."""
    first = conditions((), judged(c.GROUPS), 1, 100.0)
    second = conditions(first, judged(c.GROUPS, c.PROFILE), 1, 160.0)
    third = conditions(second, judged(c.GROUPS, c.PROFILE, c.IMAGES), 1, 220.0)
    fourth = conditions(third, judged(c.GROUPS, c.PROFILE, c.IMAGES), 1, 280.0)

    assert ready_of(second)[2] == "InstanceProfileReady=False, SecurityGroupsReady=False"
    assert ready_of(third)[2] == "AMIsReady=False, InstanceProfileReady=False, SecurityGroupsReady=False"
    assert fourth == third


def test_what_pools_are_given_to_say_is_each_fault_in_its_own_words_with_the_field_to_mend() -> None:
    """AWS-27, NPL-15."""
    faults = {**judged(), c.SUBNETS: false("SubnetsNotFound", "SubnetSelector did not match any Subnets")}
    status = {"conditions": conditions((), {**faults, c.VALIDATION: c.UNKNOWN}, 1, 100.0)}
    found = read_class({**ClassStore().apply(), "status": status})

    assert isinstance(found, NodeClass)
    assert (found.state.ready, found.state.reason) == ("False", "UnhealthyDependents")
    assert found.state.message == (
        "SubnetsReady: SubnetSelector did not match any Subnets (see spec.subnetSelectorTerms)"
    )
