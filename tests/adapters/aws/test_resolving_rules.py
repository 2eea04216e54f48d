"""What a class's selectors resolve to, rule by rule: order, questions, owners, variants (AWS-26 to AWS-45)."""

import time
from dataclasses import replace
from typing import Any

import pytest

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.node_class.node_class import NodeClass, read_class
from dovetail.adapters.aws.resources.image_aliases import UnsupportedAlias, published
from dovetail.adapters.aws.resources.placement_groups import PlacementGroups
from dovetail.model.values.json import Json
from tests.adapters.aws.conftest import Stage
from worlds.aws import a_claim_of_ec2, amd64, any_kind, class_spec, one_of

DISCOVERED = {"karpenter.sh/discovery": "dovetail"}
IMAGE = {"arch": "x86_64", "owner": "amazon", "created": "2026-01-01T00:00:00.000Z"}


def status(stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = stage.classes.objects["default"]["status"]
    return found


def asked(stage: Stage, operation: str) -> list[dict[str, list[str]]]:
    """The filters of each call, by name."""
    calls = [each["input"] for each in stage.calls(operation)]
    return [{each["Name"]: sorted(each["Values"]) for each in call["Filters"]} for call in calls]


def subnet(letter: str, free: int, **tags: str) -> Json:
    return {"id": f"subnet-0{letter}", "zone": f"us-west-2{letter}", "free": free, "tags": tags or DISCOVERED}


async def test_subnets_are_listed_with_their_zones_the_roomiest_first(stage: Stage) -> None:
    """AWS-26, AWS-30."""
    stage.patch(subnets=[subnet("a", 10), subnet("b", 200), subnet("c", 100)])

    await stage.with_class()

    assert status(stage)["subnets"] == [
        {"id": "subnet-0b", "zone": "us-west-2b", "zoneID": "usw2-az2"},
        {"id": "subnet-0c", "zone": "us-west-2c", "zoneID": "usw2-az3"},
        {"id": "subnet-0a", "zone": "us-west-2a", "zoneID": "usw2-az1"},
    ]


async def test_subnets_are_asked_for_once_for_each_term_of_tags_and_once_for_all_ids(stage: Stage) -> None:
    """AWS-10, AWS-30: terms are alternatives, tags of one term all hold, `*` is any value."""
    stage.patch(
        subnets=[subnet("a", 1, x="1", y="2"), subnet("b", 2, x="1"), subnet("c", 3, z="3"), subnet("d", 4, z="4")]
    )
    terms = [{"tags": {"x": "1", "y": "*"}}, {"tags": {"z": "3"}}, {"id": "subnet-0b"}, {"id": "subnet-0d"}]

    await stage.with_class(subnetSelectorTerms=terms)

    assert asked(stage, "DescribeSubnets") == [
        {"tag:x": ["1"], "tag-key": ["y"]},
        {"tag:z": ["3"]},
        {"subnet-id": ["subnet-0b", "subnet-0d"]},
    ]
    assert [each["id"] for each in status(stage)["subnets"]] == ["subnet-0d", "subnet-0c", "subnet-0b", "subnet-0a"]


async def test_security_groups_are_asked_for_by_tags_ids_and_names_and_sorted_by_id(stage: Stage) -> None:
    """AWS-11, AWS-31."""
    groups = [{"id": f"sg-0{n}", "name": f"group-{n}", "tags": {"n": str(n)}} for n in range(1, 6)]
    stage.patch(securityGroups=groups)
    terms = [{"name": "group-5"}, {"id": "sg-02"}, {"tags": {"n": "4"}}, {"id": "sg-01"}, {"name": "group-3"}]

    await stage.with_class(securityGroupSelectorTerms=terms)

    assert asked(stage, "DescribeSecurityGroups") == [
        {"tag:n": ["4"]},
        {"group-id": ["sg-01", "sg-02"]},
        {"group-name": ["group-3", "group-5"]},
    ]
    assert status(stage)["securityGroups"] == [{"id": each["id"], "name": each["name"]} for each in groups]


async def test_a_change_of_the_spec_asks_anew_and_nothing_else_does(stage: Stage) -> None:
    """AWS-29."""
    operations = ("DescribeSubnets", "DescribeSecurityGroups", "DescribeImages")
    await stage.with_class()
    before = [len(stage.calls(each)) for each in operations]
    stage.upkeep._due["default"].at = 0.0
    await stage.upkeep.keep()
    between = [len(stage.calls(each)) for each in operations]

    await stage.with_class(tags={"team": "x"})

    assert (before, between) == ([1, 1, 1], [1, 1, 1])
    assert [len(stage.calls(each)) for each in operations] == [2, 2, 2]


async def test_images_are_asked_for_by_owner_whatever_their_age_and_only_where_they_are_available(
    stage: Stage,
) -> None:
    """AWS-35: names are ours or Amazon's unless an owner is given, tags anybody's, ids one question."""
    terms: list[Json] = [
        {"name": "mine-*"},
        {"name": "theirs", "owner": "999988887777"},
        {"tags": {"team": "x"}},
        {"id": "ami-0a12023a"},
        {"id": "ami-0a12023b"},
    ]

    await stage.with_class(amiSelectorTerms=terms, amiFamily="AL2023")

    calls = [each["input"] for each in stage.calls("DescribeImages")]
    assert [call.get("Owners") for call in calls] == [["self", "amazon"], ["999988887777"], None, None]
    assert all(call["IncludeDeprecated"] for call in calls)
    available = {"state": ["available"]}
    assert asked(stage, "DescribeImages") == [
        {"name": ["mine-*"], **available},
        {"name": ["theirs"], **available},
        {"tag:team": ["x"], **available},
        {"image-id": ["ami-0a12023a", "ami-0a12023b"], **available},
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"name": "b", "created": "2026-01-01T00:00:00.000Z"}, {"name": "a", "created": "2026-02-01T00:00:00.000Z"}),
        ({"name": "a"}, {"name": "b"}),
        ({"name": "b", "deprecated": "2026-02-01T00:00:00.000Z"}, {"name": "a"}),
    ],
)
async def test_of_two_images_for_the_same_the_newer_or_the_greater_name_counts(
    stage: Stage, first: Json, second: Json
) -> None:
    """AWS-36."""
    for one, other in ((first, second), (second, first)):
        stage.patch(images=[{**IMAGE, "id": "ami-001", **one}, {**IMAGE, "id": "ami-002", **other}])
        terms = [{"id": "ami-001"}, {"id": "ami-002"}]
        await stage.with_class(amiSelectorTerms=terms, amiFamily="AL2023", tags={"first": str(one["name"])})

        assert [each["id"] for each in status(stage)["amis"]] == ["ami-002" if other is second else "ami-001"]


@pytest.mark.parametrize(
    ("alias", "serving"),
    [
        ("al2@latest", {"amazon-linux-2-gpu": ["nvidia", "neuron"], "amazon-linux-2-arm64": ["standard"]}),
        ("bottlerocket@latest", {"1.30/x86_64": ["standard", "neuron"], "-nvidia/arm64": ["nvidia"]}),
        ("al2023@latest", {"x86_64/nvidia": ["nvidia"], "x86_64/neuron": ["neuron"], "arm64/standard": ["standard"]}),
    ],
)
def test_each_published_image_serves_its_variants(alias: str, serving: dict[str, list[str]]) -> None:
    """AWS-33: no accelerator at all, a GPU, or another accelerator."""
    variants = {
        "standard": {names.ACCELERATOR_COUNT: "DoesNotExist", names.GPU_COUNT: "DoesNotExist"},
        "nvidia": {names.GPU_COUNT: "Exists"},
        "neuron": {names.ACCELERATOR_COUNT: "Exists"},
    }

    rows = published(alias, "1.30")

    for part, wanted in serving.items():
        (row,) = [row for row in rows if f"{part}/" in row.path]
        assert [{e.key: e.operator for e in each} for each in row.serves] == [variants[name] for name in wanted]


def test_images_of_a_family_end_and_begin_with_a_version_of_kubernetes() -> None:
    """AWS-34."""
    assert published("al2@latest", "1.32")
    assert published("windows2025@latest", "1.35")
    for alias, version in (("al2@latest", "1.33"), ("windows2025@latest", "1.34")):
        with pytest.raises(UnsupportedAlias):
            published(alias, version)


async def test_a_given_instance_profile_is_taken_without_a_look(stage: Stage) -> None:
    """AWS-39."""
    stage.patch(checkInstanceProfiles=False)  # someone else has made it
    await stage.with_class(role=None, instanceProfile="theirs")

    assert status(stage)["instanceProfile"] == "theirs"
    assert stage.calls("GetInstanceProfile") == stage.calls("CreateInstanceProfile") == []


async def test_a_placement_group_is_remembered_for_a_day_and_asked_for_each_minute(stage: Stage) -> None:
    """AWS-45."""
    stage.patch(placementGroups=[{"id": "pg-01", "name": "pc", "strategy": "cluster"}])
    now = [0.0]
    calls: Calls = stage.adapter.calls
    groups = PlacementGroups(calls, lambda: now[0])
    spec = class_spec(placementGroupSelector={"name": "pc"})
    node_class = read_class({"metadata": {"name": "default", "uid": "u", "generation": 1}, "spec": spec})
    assert isinstance(node_class, NodeClass)

    found = await groups.of_class(node_class)
    now[0] = 59.0
    await groups.of_class(node_class)
    asked_in_a_minute = len(stage.calls("DescribePlacementGroups"))
    now[0] = 61.0
    await groups.of_class(node_class)
    now[0] = 61.0 + 24 * 3600.0 - 1.0
    late, found_late = groups.known(node_class), found
    now[0] += 2.0

    assert found is not None
    assert (asked_in_a_minute, len(stage.calls("DescribePlacementGroups"))) == (1, 2)
    assert (late, groups.known(node_class)) == (found_late, None)


@pytest.mark.parametrize("question", ["DescribePlacementGroups", "DescribeCapacityReservations", "DescribeSubnets"])
async def test_one_question_that_is_throttled_stops_no_launch_of_an_unchanged_class(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """AWS-29, AWS-45, AWS-144: what EC2 said last is used, and it is not asked again for each plan."""
    reserved = {"id": "cr-01", "type": "m5.large", "zone": "us-west-2a", "available": 3}
    stage.patch(placementGroups=[{"id": "pg-01", "name": "pc", "strategy": "cluster"}], reservations=[reserved])
    terms = [{"id": "cr-01"}]
    await stage.with_class(placementGroupSelector={"name": "pc"}, capacityReservationSelectorTerms=terms)
    sources, at = stage.adapter.offerings.sources, time.time() + 3600.0
    for part in (sources.groups, sources.reservations, sources.subnets):
        monkeypatch.setattr(part, "_clock", lambda: at)
    stage.patch(fail=[{"op": question, "code": "RequestLimitExceeded", "status": 503}])
    before = len(stage.calls(question))
    wanted = a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large"), any_kind(), amd64())

    first = await stage.launched(wanted)
    in_vain = len(stage.calls(question))
    await stage.launched(replace(wanted, uid="second", name="second"))

    assert first.labels["karpenter.sh/capacity-type"] == "reserved"
    assert before < in_vain == len(stage.calls(question))
    stage.patch(fail=[])
    at += 11.0
    await stage.launched(replace(wanted, uid="third", name="third"))
    assert len(stage.calls(question)) == in_vain + 1
