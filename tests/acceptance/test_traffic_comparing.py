"""The comparison of recorded traffic sees what differs, and nothing else."""

import copy
from typing import Any

import pytest

from acceptance.traffic.cases import Case
from acceptance.traffic.comparing.case import compare
from acceptance.traffic.comparing.events import ANSWERED
from acceptance.traffic.comparing.found import Found
from acceptance.traffic.comparing.renaming import Renaming
from acceptance.traffic.comparing.timing import joined
from acceptance.traffic.comparing.user_data import parsed
from acceptance.traffic.comparing.values import ABSENT, Bag, differences
from acceptance.traffic.playing import Played, PlayedPhase
from dovetail.model.values.json import Json

TEMPLATE = "karpenter.k8s.aws/123"
TAGS = [{"Key": "karpenter.sh/nodepool", "Value": "default"}, {"Key": "eks:eks-cluster-name", "Value": "dovetail"}]


def _described(name: str) -> Json:
    error = "InvalidLaunchTemplateName.NotFoundException"
    return {"op": "DescribeLaunchTemplates", "input": {"LaunchTemplateNames": [name]}, "error": error}


def _created(name: str, pods: int = 29) -> Json:
    data = {"ImageId": "ami-1", "UserData": f"[settings.kubernetes]\nmax-pods = {pods}\n"}
    specification = [{"ResourceType": "launch-template", "Tags": TAGS}]
    given = {"LaunchTemplateName": name, "LaunchTemplateData": data, "TagSpecifications": specification}
    return {"op": "CreateLaunchTemplate", "input": given}


def _fleet(name: str, capacity: int = 1, price: float = 0.096) -> Json:
    overrides = [{"InstanceType": "m5.large", "SubnetId": "subnet-0a", "Priority": price}]
    config = {"LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"}, "Overrides": overrides}
    target = {"TotalTargetCapacity": capacity, "DefaultTargetCapacityType": "on-demand"}
    ids = [f"i-{number}" for number in range(capacity)]
    return {
        "op": "CreateFleet",
        "input": {"LaunchTemplateConfigs": [config], "TargetCapacitySpecification": target, "ClientToken": "t"},
        "output": {"instances": [{"ids": ids, "type": "m5.large", "zone": "a"}], "errors": []},
    }


def _entries(calls: list[Json]) -> list[Json]:
    return [{**copy.deepcopy(each), "time": float(number)} for number, each in enumerate(calls)]


def _case(calls: list[Json], **objects: Any) -> Case:
    recorded = {
        "calls": [{"phase": "launch", "seconds": 1, "calls": calls}],
        "objects": [{"phase": "launch", **objects}],
    }
    return Case(id="c", words="", file="launches", given={}, expected=recorded)


def _played(calls: list[Json], **objects: Any) -> Played:
    phase = PlayedPhase(name="launch", seconds=1.0, entries=_entries(calls), objects=objects)
    return Played(phases=[phase])


def _places(found: list[Found]) -> list[tuple[str, str]]:
    return [(each.what, each.path) for each in found]


THEIRS = [_described("<template-1>"), _created("<template-1>"), _fleet("<template-1>")]
OURS = [_described(TEMPLATE), _created(TEMPLATE), _fleet(TEMPLATE)]


def test_equal_traffic_under_other_names_is_equal() -> None:
    assert compare(_case(THEIRS), _played(OURS)) == []


def test_a_changed_parameter_is_reported_by_its_path() -> None:
    ours = [_described(TEMPLATE), _created(TEMPLATE), _fleet(TEMPLATE, price=0.2)]

    found = compare(_case(THEIRS), _played(ours))

    assert _places(found) == [
        ("call CreateFleet", "input.LaunchTemplateConfigs.[…].Overrides.m5.large/subnet-0a.Priority")
    ]
    assert (found[0].theirs, found[0].ours) == (0.096, 0.2)


def test_user_data_is_compared_by_its_content() -> None:
    ours = [_described(TEMPLATE), _created(TEMPLATE, pods=30), _fleet(TEMPLATE)]

    found = compare(_case(THEIRS), _played(ours))

    path = "input.LaunchTemplateData.UserData.toml.settings.kubernetes.max-pods"
    assert [(each.path, each.theirs, each.ours) for each in found] == [(path, 29, 30)]


def test_a_call_that_was_not_made_is_missing() -> None:
    found = compare(_case(THEIRS), _played(OURS[:2]))

    assert _places(found) == [("call CreateFleet", "")]
    assert found[0].ours is ABSENT


def test_a_call_too_many_is_reported() -> None:
    extra = {"op": "TerminateInstances", "input": {"InstanceIds": ["i-1"]}}

    found = compare(_case(THEIRS), _played([*OURS, extra]))

    assert _places(found) == [("call TerminateInstances", "")]
    assert found[0].theirs is ABSENT


def test_an_effect_twice_is_not_an_effect_once() -> None:
    tagged = {"op": "CreateTags", "input": {"Resources": ["i-1"], "Tags": TAGS}}
    played = _played([*OURS, tagged, tagged])
    played.nodes_seen = {"aws:///a/i-1": 0.0}

    found = compare(_case([*THEIRS, tagged]), played)

    assert _places(found) == [("call CreateTags", "")]


def test_two_fleets_of_one_are_one_fleet_of_two() -> None:
    theirs = [*THEIRS[:2], _fleet("<template-1>", capacity=2)]
    ours = [*OURS[:2], _fleet(TEMPLATE), _fleet(TEMPLATE)]

    assert compare(_case(theirs), _played(ours)) == []


def test_three_fleets_of_one_are_not_one_fleet_of_two() -> None:
    theirs = [*THEIRS[:2], _fleet("<template-1>", capacity=2)]
    ours = [*OURS[:2], _fleet(TEMPLATE), _fleet(TEMPLATE), _fleet(TEMPLATE)]

    assert _places(compare(_case(theirs), _played(ours))) == [
        ("call CreateFleet", "outcome.launched.m5.large/a"),
        ("call CreateFleet", "capacity"),
    ]


def test_one_name_for_two_placeholders_is_a_difference() -> None:
    theirs = [*THEIRS, _described("<template-2>"), _created("<template-2>", pods=58)]
    ours = [*OURS, _described(TEMPLATE), _created(TEMPLATE, pods=58)]

    assert ("call CreateLaunchTemplate", "input.LaunchTemplateName") in _places(compare(_case(theirs), _played(ours)))


def test_a_template_created_before_it_was_looked_for_is_out_of_order() -> None:
    ours = [_created(TEMPLATE), _described(TEMPLATE), _fleet(TEMPLATE)]

    assert _places(compare(_case(THEIRS), _played(ours))) == [("order", "")]


def test_a_fleet_before_its_template_is_out_of_order() -> None:
    ours = [_described(TEMPLATE), _fleet(TEMPLATE), _created(TEMPLATE)]

    assert _places(compare(_case(THEIRS), _played(ours))) == [("order", "")]


def test_a_termination_after_the_claim_had_gone_is_out_of_order() -> None:
    ended = {"op": "TerminateInstances", "input": {"InstanceIds": ["i-1"]}}
    played = _played([ended])
    played.phases[0].entries[0]["time"] = 10.0
    played.vanished = {"aws:///a/i-1": 5.0}

    assert _places(compare(_case([ended]), played)) == [("order", "")]


def test_polling_says_nothing_and_reads_are_compared_once() -> None:
    polled = {"op": "DescribeInstances", "input": {"Filters": [{"Name": "tag-key", "Values": ["x"]}]}}

    assert compare(_case(THEIRS), _played([polled, OURS[0], *OURS, polled])) == []


def test_reads_by_id_are_compared_by_all_their_ids() -> None:
    def asked(*ids: str) -> Json:
        return {"op": "DescribeInstances", "input": {"InstanceIds": list(ids)}}

    assert compare(_case([asked("i-1", "i-2")]), _played([asked("i-2"), asked("i-1")])) == []
    assert compare(_case([asked("i-1", "i-2")]), _played([asked("i-2")])) != []


def test_an_error_code_is_part_of_a_call() -> None:
    ours = [{**OURS[0], "error": "UnauthorizedOperation"}, *OURS[1:]]

    found = compare(_case(THEIRS), _played(ours))

    assert ("call DescribeLaunchTemplates", "error") in _places(found)


NODE_CLASS: Json = {
    "metadata": {"name": "default", "annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "1"}, "finalizers": ["f"]},
    "spec": {},
    "status": {
        "instanceProfile": "<profile-1>",
        "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "observedGeneration": 1, "message": "x"}],
    },
}


def _ours_of(body: Json) -> Json:
    ours = copy.deepcopy(body)
    ours["status"]["instanceProfile"] = "dovetail_17"
    ours["status"]["conditions"][0]["message"] = "in other words"
    return ours


def test_equal_objects_are_equal_whatever_their_messages_say() -> None:
    assert compare(_case([], nodeClasses=[NODE_CLASS]), _played([], nodeClasses=[_ours_of(NODE_CLASS)])) == []


def test_a_changed_hash_is_seen() -> None:
    ours = _ours_of(NODE_CLASS)
    ours["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash"] = "2"

    found = compare(_case([], nodeClasses=[NODE_CLASS]), _played([], nodeClasses=[ours]))

    assert _places(found) == [("nodeClasses", "[default].annotations.karpenter.k8s.aws/ec2nodeclass-hash")]


def test_a_changed_reason_of_a_condition_is_seen() -> None:
    ours = _ours_of(NODE_CLASS)
    ours["status"]["conditions"][0]["reason"] = "Other"

    found = compare(_case([], nodeClasses=[NODE_CLASS]), _played([], nodeClasses=[ours]))

    assert _places(found) == [("nodeClasses", "[default].conditions.Ready.is")]


def test_an_object_too_few_is_seen() -> None:
    found = compare(_case([], nodeClasses=[NODE_CLASS]), _played([], nodeClasses=[]))

    assert [(each.what, each.ours) for each in found] == [("nodeClasses", ABSENT)]


def test_an_event_that_was_not_published_is_seen() -> None:
    event = {"kind": "NodeClaim", "name": "<claim-1>", "type": "Warning", "reason": "SpotInterrupted", "message": "x"}

    found = compare(_case([], events=[event]), _played([], events=[]))

    assert [(each.what, each.ours) for each in found] == [("events", ABSENT)]


def test_quantities_are_compared_as_quantities() -> None:
    def claim(memory: str) -> Json:
        return {"metadata": {"name": "<claim-1>"}, "spec": {}, "status": {"capacity": {"memory": memory}}}

    assert compare(_case([], nodeClaims=[claim("1Gi")]), _played([], nodeClaims=[claim("1024Mi")])) == []
    assert compare(_case([], nodeClaims=[claim("1Gi")]), _played([], nodeClaims=[claim("1025Mi")])) != []


def test_a_kind_that_is_left_out_has_not_changed() -> None:
    case = _case([], nodeClasses=[NODE_CLASS])
    case.expected["calls"].append({"phase": "step1", "seconds": 1, "calls": []})
    case.expected["objects"].append({"phase": "step1"})
    played = _played([], nodeClasses=[_ours_of(NODE_CLASS)])
    played.phases.append(PlayedPhase(name="step1", seconds=1.0, entries=[], objects={"nodeClasses": []}))

    found = compare(case, played)

    assert [(each.phase, each.what) for each in found] == [("step1", "nodeClasses")]


def test_a_phase_that_was_not_played_is_reported() -> None:
    case = _case(THEIRS)
    case.expected["calls"].append({"phase": "step1", "seconds": 1, "calls": []})

    assert ("case", "phase") in _places(compare(case, _played(OURS)))


def test_a_worker_that_should_not_have_started_is_reported() -> None:
    case = Case(id="c", words="", file="settings", given={}, expected={"started": False, "calls": []})

    assert _places(compare(case, Played())) == [("case", "started")]


def test_placeholders_that_stand_for_anything_bind_nothing() -> None:
    renaming = Renaming()

    assert renaming.match("<time>", "now")
    assert renaming.match("<time>", "later")
    assert renaming.match("<claim-1>/x", "a/x")
    assert not renaming.match("<claim-1>/x", "b/x")
    assert not renaming.match("<claim-2>/x", "a/x")


def test_members_of_a_bag_are_paired_by_what_is_least_different() -> None:
    theirs, ours = Bag([{"a": 1, "b": 1}, {"a": 2, "b": 2}]), Bag([{"a": 2, "b": 3}, {"a": 1, "b": 1}])

    found = differences(theirs, ours, Renaming())

    assert [(each.path, each.theirs, each.ours) for each in found] == [("[…].b", 2, 3)]


def test_a_bootstrap_call_is_compared_by_its_arguments() -> None:
    script = "#!/bin/bash\n/etc/eks/bootstrap.sh 'c' --dns-cluster-ip '10.0.0.10' \\\n--use-max-pods {}\n"

    one, same = parsed(script.format("false")), parsed(script.format("'false'").replace(" \\\n", "   "))

    assert one == same
    assert one != parsed(script.format("true"))


def _two_steps(first: list[Json], second: list[Json]) -> list[Json]:
    return [{"phase": "step1", "seconds": 4, "calls": first}, {"phase": "step2", "seconds": 4, "calls": second}]


def _played_steps(first: list[Json], second: list[Json]) -> Played:
    phases = [
        PlayedPhase(name=name, seconds=4.0, entries=_entries(calls), objects={"events": []})
        for name, calls in (("step1", first), ("step2", second))
    ]
    return Played(phases=phases)


def test_what_happens_a_step_later_is_equal_with_all_steps_as_one() -> None:
    expected = {"calls": _two_steps(THEIRS, []), "objects": [{"phase": "step1"}, {"phase": "step2"}]}
    case, played = Case(id="c", words="", file="drift", given={}, expected=expected), _played_steps([], OURS)

    together = joined(case, played)

    assert compare(case, played) != []
    assert together is not None
    assert compare(*together) == []


def test_what_never_happens_differs_with_all_steps_as_one_too() -> None:
    expected = {"calls": _two_steps(THEIRS, []), "objects": [{"phase": "step1"}, {"phase": "step2"}]}
    case = Case(id="c", words="", file="drift", given={}, expected=expected)

    together = joined(case, _played_steps([], OURS[:2]))

    assert together is not None
    assert _places(compare(*together)) == [("call CreateFleet", "")]


def test_a_single_step_is_joined_with_nothing() -> None:
    expected = {"calls": _two_steps(THEIRS, [])[:1], "objects": [{"phase": "step1"}]}
    played = _played_steps(OURS, [])
    played.phases.pop()

    assert joined(Case(id="c", words="", file="drift", given={}, expected=expected), played) is None


REFUSED_CALL: Json = {"op": "TerminateInstances", "input": {"InstanceIds": ["i-1"]}, "error": "UnauthorizedOperation"}
REFUSED_FLEET: Json = {**_fleet("<template-1>"), "output": {"instances": [], "errors": [{"code": "NoSuchRight"}]}}


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("fails (Forbidden): ec2:TerminateInstances: UnauthorizedOperation: you may not", ANSWERED),
        ("fails (Retryable): NodeClaim/c: with fleet error(s), NoSuchRight: you may not", ANSWERED),
        ("fails (Throttled): ec2:TerminateInstances: RequestLimitExceeded: too many", ""),
        ("fails (TypeError): an error of ours", ""),
    ],
)
def test_a_failing_step_is_borne_out_by_the_error_that_it_names(message: str, note: str) -> None:
    calls = [*THEIRS[:2], REFUSED_FLEET, REFUSED_CALL]
    event = {"kind": "Node", "name": "n", "type": "Warning", "reason": "StepFailing", "message": message}

    nodes = [{"metadata": {"name": "n"}}]

    [found] = compare(_case(calls, events=[], nodes=nodes), _played(calls, events=[event], nodes=nodes))

    assert (found.what, found.ours, found.note) == ("events", "Warning StepFailing Node/n", note)
