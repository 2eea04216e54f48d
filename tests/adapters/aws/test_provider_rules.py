"""Rules of the AWS provider over HTTP: reservations, types and their resources, images, checks of a class, drift."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from dovetail.adapters.aws.catalogue.shortages import ASKED_AGAIN_AFTER
from dovetail.adapters.aws.catalogues import LEGACY_POLICIES
from dovetail.adapters.aws.failures import Denied
from dovetail.adapters.aws.names import PARTITION
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.messages.interruptions import Warned
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.pools import ClaimTemplate, InstanceType, NodePool
from dovetail.model.scheduling.requirements import from_expressions
from dovetail.model.values.json import Json
from dovetail.ports.cloud import ClassNotReady, LaunchRefused, NoCapacity
from tests.adapters.aws.conftest import Stage
from worlds.aws import REFERENCE, a_claim_of_ec2, amd64, any_kind, on_demand, one_of

M5_LARGE = one_of("node.kubernetes.io/instance-type", "m5.large")
SPOT = one_of(names.CAPACITY_TYPE, "spot")
RESERVATION = "karpenter.k8s.aws/capacity-reservation-id"
OPEN = {"id": "cr-01", "type": "m5.large", "zone": "us-west-2a", "available": 2}
BLOCK = {**OPEN, "id": "cr-03", "rtype": "capacity-block"}
POOL = NodePool(name="default", uid="p", template=ClaimTemplate(node_class=REFERENCE))


async def with_reservations(stage: Stage, *reservations: Json) -> None:
    stage.patch(reservations=list(reservations))
    await stage.with_class(capacityReservationSelectorTerms=[{"id": each["id"]} for each in reservations])


async def capacity_type_launched(stage: Stage) -> str:
    launched = await stage.launched(a_claim_of_ec2(M5_LARGE, any_kind(), amd64()))
    return launched.labels[names.CAPACITY_TYPE]


async def types(stage: Stage) -> dict[str, InstanceType]:
    catalogue = await stage.adapter.catalogues.catalogue(POOL)
    return {each.name: each for each in catalogue.types}


def launched(claim: NodeClaim, instance: Any) -> NodeClaim:
    """The claim as it stands after its launch."""
    return replace(
        claim,
        provider_id=instance.provider_id,
        image_id=instance.image_id,
        labels={**claim.labels, **instance.labels},
        annotations=instance.annotations,
    )


async def drift(stage: Stage, claim: NodeClaim) -> str:
    stage.adapter.inventory._listed_at = float("-inf")  # as after two minutes
    return await stage.adapter.catalogues.drift(claim)


@pytest.mark.parametrize("code", ["ReservationCapacityExceeded", "InvalidCapacityReservationState.Unavailable"])
async def test_what_is_reserved_comes_first_and_ends_where_ec2_says_that_it_is_used_up(stage: Stage, code: str) -> None:
    """AWS-89, AWS-149, AWS-150, AWS-156: EC2 lists one as free that is not; the next launch asks elsewhere."""
    await with_reservations(stage, OPEN)
    first = await capacity_type_launched(stage)
    stage.patch(ice=[{"capacityType": "reserved", "code": code}])

    refused = await stage.launch(a_claim_of_ec2(M5_LARGE, any_kind(), amd64()))

    assert first == "reserved"
    assert isinstance(refused, NoCapacity)
    assert await reserved_left(stage) == [0]
    assert await capacity_type_launched(stage) == "spot"


@pytest.mark.parametrize(
    ("code", "then"),
    [
        ("InvalidParameterValue", "spot"),
        ("UnauthorizedOperation", "spot"),
        ("InvalidCapacityReservationId.NotFound", "spot"),
        ("RequestLimitExceeded", "reserved"),
        ("InternalError", "reserved"),
    ],
)
async def test_a_reservation_that_refuses_an_instance_is_left_and_a_call_that_came_at_a_bad_moment_leaves_it(
    stage: Stage, code: str, then: str
) -> None:
    """AWS-149: one of another platform or tenancy, say, would refuse each claim, and pods would wait for ever."""
    await with_reservations(stage, OPEN)
    stage.patch(ice=[{"capacityType": "reserved", "code": code}])
    refused = await stage.launch(a_claim_of_ec2(M5_LARGE, any_kind(), amd64()))
    assert isinstance(refused, LaunchRefused)

    stage.patch(ice=[])
    assert await capacity_type_launched(stage) == then


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("InsufficientInstanceCapacity", [2]),
        ("UnauthorizedOperation", [2]),
        ("InvalidSecurityGroupID.NotFound", [2]),
        ("ReservationCapacityExceeded", [0]),
        ("InvalidCapacityReservationId.NotFound", [0]),
    ],
)
async def test_what_one_class_is_refused_leaves_a_reservation_to_the_others(
    stage: Stage, code: str, left: list[int]
) -> None:
    """AWS-149: a full placement group of one class, say; what EC2 says of the reservation itself holds for all."""
    await with_reservations(stage, OPEN)
    terms = {"capacityReservationSelectorTerms": [{"id": OPEN["id"]}]}
    await stage.with_class(name="grouped", **terms)
    stage.patch(ice=[{"capacityType": "reserved", "code": code}])
    await stage.launch(a_claim_of_ec2(M5_LARGE, any_kind(), amd64(), node_class=GROUPED))
    stage.patch(ice=[])

    assert await reserved_left(stage) == left
    again = await stage.launched(a_claim_of_ec2(M5_LARGE, any_kind(), amd64(), name="again", node_class=GROUPED))
    assert again.labels[names.CAPACITY_TYPE] == "spot"
    assert await capacity_type_launched(stage) == ("reserved" if left == [2] else "spot")


async def test_a_reservation_counts_what_was_launched_into_it(stage: Stage) -> None:
    """AWS-145."""
    await with_reservations(stage, {**OPEN, "available": 1})
    assert [await capacity_type_launched(stage) for _ in range(2)] == ["reserved", "spot"]


TWO = ({**OPEN, "id": "cr-02"}, {**OPEN, "id": "cr-03", "zone": "us-west-2b"})
FULL_IN_A = {"capacityType": "reserved", "zone": "us-west-2a", "code": "ReservationCapacityExceeded"}


async def test_a_claim_says_the_reservation_that_its_instance_is_in(stage: Stage) -> None:
    """AWS-156: of two of one type, the one in the zone where EC2 launched; it counts one less, the full one nothing."""
    await with_reservations(stage, *TWO)
    stage.patch(ice=[FULL_IN_A])

    instance = await stage.launched(a_claim_of_ec2(M5_LARGE, any_kind(), amd64()))

    found = await stage.adapter.inventory.live(instance.provider_id.rpartition("/")[2])
    assert found is not None
    assert instance.labels[RESERVATION] == found.reservation_id == "cr-03"
    assert await reserved_left(stage) == [0, 1]


async def test_an_answer_without_type_and_zone_is_told_by_its_template(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-156: each reservation has a template of its own, which EC2 answers by id."""
    await with_reservations(stage, *TWO)
    stage.patch(ice=[FULL_IN_A])
    attempt = stage.adapter.calls.attempt

    async def bare(service: str, operation: str, **given: Any) -> Any:
        answer = await attempt(service, operation, **given)
        if operation == "CreateFleet" and not isinstance(answer, Denied):
            for entry in (*answer["Instances"], *answer["Errors"]):
                del entry["LaunchTemplateAndOverrides"]["Overrides"]
        return answer

    monkeypatch.setattr(stage.adapter.calls, "attempt", bare)

    instance = await stage.launched(a_claim_of_ec2(M5_LARGE, any_kind(), amd64()))

    assert instance.labels[RESERVATION] == "cr-03"
    assert await reserved_left(stage) == [0, 1]


def with_free(subnets: list[Json], free: dict[str, int]) -> list[Json]:
    return [{**each, "free": free.get(each["id"], each["free"])} for each in subnets]


async def test_what_is_reserved_in_a_zone_without_addresses_is_not_counted_on(stage: Stage) -> None:
    """AWS-146: planner and launch agree, and the launch goes to another capacity type."""
    subnets = stage.server.control("GET", "world")["subnets"]
    stage.patch(subnets=with_free(subnets, {"subnet-0a": 0}))
    await with_reservations(stage, OPEN)

    offerings = [each for each in (await types(stage))["m5.large"].offerings if each.reservation_capacity]
    instance = await stage.launched(a_claim_of_ec2(M5_LARGE, any_kind(), amd64()))

    assert [each.available for each in offerings] == [False]
    assert (instance.labels[names.CAPACITY_TYPE], instance.labels[names.ZONE]) == ("spot", "us-west-2b")


async def test_an_offering_in_a_zone_without_addresses_says_so(stage: Stage) -> None:
    """AWS-73: else whoever asks why nothing is launched there reads of requirements."""
    subnets = stage.server.control("GET", "world")["subnets"]
    stage.patch(subnets=with_free(subnets, {"subnet-0a": 0}))
    await with_reservations(stage, OPEN)

    offerings = (await types(stage))["m5.large"].offerings

    said = {(each.closed, each.available) for each in offerings if "us-west-2a" in str(each.requirements)}
    assert said == {("no subnet of its EC2NodeClass has a free address there", False)}
    assert {each.closed for each in offerings if "us-west-2b" in str(each.requirements)} == {""}


async def test_a_subnet_that_ec2_finds_full_leaves_the_reservation_to_the_others_of_its_zone(stage: Stage) -> None:
    """AWS-74: where there are none, the launch after it falls back."""
    subnets = stage.server.control("GET", "world")["subnets"]
    tags = {"karpenter.sh/discovery": "dovetail"}
    small = {"id": "subnet-0d", "zone": "us-west-2a", "free": 5, "tags": tags}
    stage.patch(subnets=[*subnets, small])
    await with_reservations(stage, OPEN)
    claim = a_claim_of_ec2(M5_LARGE, any_kind(), amd64())
    answers: list[Any] = []
    for free in ({"subnet-0a": 0}, {}, {"subnet-0a": 0, "subnet-0d": 0}, {}):
        if free:  # taken by others since it was described
            stage.patch(subnets=with_free([*subnets, small], free))
        answers.append(await stage.launch(replace(claim, uid=f"c{len(answers)}")))

    kinds = [None if isinstance(each, NoCapacity) else each.labels[names.CAPACITY_TYPE] for each in answers]
    assert kinds == [None, "reserved", None, "spot"]


async def test_a_reservation_of_types_without_an_image_is_not_counted_on(stage: Stage) -> None:
    """AWS-65: the class has an image for amd64 alone, and reserved places of arm64 keep nothing from it."""
    known = stage.server.control("GET", "world")["images"]
    stage.patch(images=[*known, {**IMAGES, "id": "ami-001", "name": "mine", "created": "2026-01-01T00:00:00.000Z"}])
    stage.patch(reservations=[{**OPEN, "type": "m6g.large"}])
    await stage.with_class(
        amiFamily="AL2023",
        amiSelectorTerms=[{"id": "ami-001"}],
        capacityReservationSelectorTerms=[{"id": "cr-01"}],
    )
    either = one_of("node.kubernetes.io/instance-type", "m5.large", "m6g.large")

    offered = {name: any(each.available for each in found.offerings) for name, found in (await types(stage)).items()}
    instance = await stage.launched(a_claim_of_ec2(either, any_kind()))
    refused = await stage.launch(a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m6g.large"), any_kind()))

    assert (offered["m5.large"], offered["m6g.large"]) == (True, False)
    assert instance.labels["node.kubernetes.io/instance-type"] == "m5.large"
    assert isinstance(refused, LaunchRefused)  # the claim stays, with the reason
    assert refused.message == "no instance types satisfy requirements of amis"


async def reserved_left(stage: Stage) -> list[int]:
    """How many instances each reservation of m5.large has left, as planners see it."""
    offerings = (await types(stage))["m5.large"].offerings
    return [each.reservation_capacity for each in offerings if each.requirements[0].values == ("reserved",)]


async def test_a_block_that_ends_within_forty_minutes_is_not_used(stage: Stage) -> None:
    """AWS-143, AWS-146."""
    await with_reservations(stage, {**BLOCK, "endIn": 39 * 60})
    assert await capacity_type_launched(stage) == "spot"
    states = stage.classes.objects["default"]["status"]["capacityReservations"]
    assert [each["state"] for each in states] == ["expiring"]

    await with_reservations(stage, {**BLOCK, "id": "cr-04", "endIn": 41 * 60}, {**OPEN, "id": "cr-05", "endIn": 60})
    states = stage.classes.objects["default"]["status"]["capacityReservations"]
    assert [each["state"] for each in states] == ["active", "active"]  # only blocks are taken back before their end


async def test_a_block_ends_by_the_clock_while_ec2_does_not_answer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-143, AWS-146: its end was known before; what is launched into its last minutes is lost."""
    await with_reservations(stage, {**BLOCK, "endIn": 42 * 60})
    assert await capacity_type_launched(stage) == "reserved"
    stage.patch(fail=[{"op": "DescribeCapacityReservations", "code": "InternalError", "status": 500}])

    at = time.time() + 180.0
    monkeypatch.setattr(stage.adapter.offerings.sources.reservations, "_clock", lambda: at)

    assert await capacity_type_launched(stage) == "spot"


async def test_a_reservation_that_is_not_there_is_no_fault(stage: Stage) -> None:
    """AWS-142."""
    await stage.with_class(capacityReservationSelectorTerms=[{"id": "cr-none"}])
    assert stage.classes.condition("CapacityReservationsReady") == ("True", "CapacityReservationsReady")


async def test_reservations_are_asked_for_by_all_that_the_class_says_and_remembered_for_a_minute(stage: Stage) -> None:
    """AWS-142: active ones only."""
    term = {"tags": {"team": "a"}, "ownerID": "111122223333", "instanceMatchCriteria": "open"}
    await stage.with_class(capacityReservationSelectorTerms=[term])
    reservations, start = stage.adapter.offerings.sources.reservations, stage.adapter.clock()
    node_class = stage.adapter.classes.get("default")
    assert isinstance(node_class, NodeClass)
    reservations._asked.clear()
    asked = []
    for seconds in (0.0, 59.0, 61.0):
        reservations._clock = lambda now=start + seconds: now  # type: ignore[misc]
        await reservations.of_class(node_class)
        asked.append(len(stage.calls("DescribeCapacityReservations")))

    filters = stage.calls("DescribeCapacityReservations")[-1]["input"]["Filters"]
    assert (asked[1] - asked[0], asked[2] - asked[1]) == (0, 1)
    assert {each["Name"]: each["Values"] for each in filters} == {
        "state": ["active"],
        "instance-match-criteria": ["open"],
        "owner-id": ["111122223333"],
        "tag:team": ["a"],
    }


async def test_an_instance_that_has_lost_its_reservation_meanwhile_has_not_drifted(stage: Stage) -> None:
    """AWS-119: it was listed with one, and a look at the instance itself shows none."""
    await with_reservations(stage, OPEN)
    claim = a_claim_of_ec2(M5_LARGE, any_kind(), amd64())
    claim = launched(claim, await stage.launched(claim))
    await drift(stage, claim)  # the instance is listed
    await stage.with_class()
    gone = {"CapacityReservationId": None, "CapacityReservationSpecification": None}
    stage.server.control("PATCH", "instances/first", {"extra": gone})

    assert await stage.adapter.catalogues.drift(claim) == ""


async def test_an_instance_in_a_reservation_that_the_class_no_longer_selects_drifts(stage: Stage) -> None:
    """AWS-119: confirmed by DescribeInstances of the instance itself."""
    await with_reservations(stage, OPEN)
    claim = a_claim_of_ec2(M5_LARGE, any_kind(), amd64())
    claim = launched(claim, await stage.launched(claim))
    assert (claim.labels[RESERVATION], await drift(stage, claim)) == ("cr-01", "")

    await stage.with_class()

    assert await drift(stage, claim) == "CapacityReservationDrift"


async def test_a_placement_group_that_the_class_no_longer_names_is_drift(stage: Stage) -> None:
    """AWS-120."""
    stage.patch(placementGroups=[{"id": "pg-01", "name": "pc", "strategy": "cluster"}])
    await stage.with_class(placementGroupSelector={"id": "pg-01"})
    claim = a_claim_of_ec2(M5_LARGE, on_demand(), amd64())
    claim = launched(claim, await stage.launched(claim))
    assert (claim.labels["karpenter.k8s.aws/placement-group-id"], await drift(stage, claim)) == ("pg-01", "")

    other = replace(claim, labels={**claim.labels, "karpenter.k8s.aws/placement-group-id": "pg-02"})

    assert await drift(stage, other) == "PlacementGroupDrift"


GROUPED = replace(REFERENCE, name="grouped")


async def with_group(stage: Stage, **group: Any) -> None:
    """A class with this placement group, beside the usual one without."""
    stage.patch(placementGroups=[{"id": "pg-01", "name": "pg", **group}])
    await stage.with_class()
    await stage.with_class(name="grouped", placementGroupSelector={"id": "pg-01"})


async def on_demand_sold(stage: Stage, reference: NodeClassRef = REFERENCE) -> set[tuple[str, str]]:
    """(zone, partition) of what planners may launch of m5.large on demand under a class."""
    pool = replace(POOL, uid=reference.name, template=ClaimTemplate(node_class=reference))
    found = {each.name: each for each in (await stage.adapter.catalogues.catalogue(pool)).types}
    sold = [from_expressions(each.requirements) for each in found["m5.large"].offerings if each.available]
    return {
        (*each[names.ZONE].values, *(each[PARTITION].values if PARTITION in each else ("",)))
        for each in sold
        if each[names.CAPACITY_TYPE].has("on-demand")
    }


async def test_a_full_placement_group_is_short_for_launches_into_it_alone(stage: Stage) -> None:
    """AWS-73: a spread group takes seven instances a zone; the eighth says nothing of any other class."""
    await with_group(stage, strategy="spread")
    stage.patch(ice=[{"code": "InsufficientInstanceCapacity"}])
    claim = a_claim_of_ec2(M5_LARGE, on_demand(), amd64(), node_class=GROUPED)
    everywhere = {(f"us-west-2{zone}", "") for zone in "abc"}

    assert isinstance(await stage.launch(claim), NoCapacity)
    assert await on_demand_sold(stage) == everywhere
    assert await on_demand_sold(stage, GROUPED) == set()

    # What is sold outside says nothing of the group; what is sold into the group ends its shortage.
    stage.patch(ice=[])
    asks = with_memory({}, asks_again=True)
    await stage.launched(a_claim_of_ec2(M5_LARGE, on_demand(), amd64(), annotations=asks))
    assert await on_demand_sold(stage, GROUPED) == set()
    shortages = stage.adapter.offerings.sources.shortages
    shortages._clock = lambda: time.time() + ASKED_AGAIN_AFTER + 1
    await stage.launched(replace(claim, uid="another", annotations=asks))
    assert await on_demand_sold(stage, GROUPED) == {("us-west-2a", "")}


async def test_a_full_partition_leaves_the_others_of_its_group(stage: Stage) -> None:
    """AWS-73."""
    await with_group(stage, strategy="partition", partitions=3)
    stage.patch(ice=[{"zone": f"us-west-2{zone}", "code": "InsufficientInstanceCapacity"} for zone in "abc"])
    claim = a_claim_of_ec2(M5_LARGE, on_demand(), amd64(), one_of(PARTITION, "2"), node_class=GROUPED)

    assert isinstance(await stage.launch(claim), NoCapacity)

    left = await on_demand_sold(stage, GROUPED)
    assert left == {(f"us-west-2{zone}", partition) for zone in "abc" for partition in "13"}
    assert len(await on_demand_sold(stage)) == 3


async def test_without_its_class_nothing_is_judged(stage: Stage) -> None:
    """AWS-113."""
    await stage.with_class()
    claim = a_claim_of_ec2()
    claim = launched(claim, await stage.launched(claim))
    claim = replace(claim, image_id="ami-of-long-ago")
    assert await drift(stage, claim) == "AMIDrift"

    stage.classes.delete()
    leaving = await drift(stage, claim)
    stage.classes.objects.clear()

    assert (leaving, await drift(stage, claim)) == ("", "")


async def test_what_changes_in_ec2_alone_is_no_drift(stage: Stage) -> None:
    """AWS-121: tags, and whether the class is ready."""
    await stage.with_class()
    claim = a_claim_of_ec2()
    claim = launched(claim, await stage.launched(claim))
    stage.server.control("PATCH", "instances/first", {"tags": {"team": "blue"}})
    assert await drift(stage, claim) == ""

    await stage.with_class(subnetSelectorTerms=[{"id": "subnet-none"}])
    assert (stage.classes.condition("Ready")[0], await drift(stage, claim)) == ("False", "")


async def test_types_have_the_devices_that_they_are_made_of(stage: Stage) -> None:
    """AWS-5, AWS-59: p4d has eight GPUs and four EFA interfaces, inf2 one device of two cores; no cloud sells
    enclaves."""
    await stage.with_class()
    found = await types(stage)

    assert found["g5.xlarge"].capacity["nvidia.com/gpu"] == 1
    assert found["p4d.24xlarge"].capacity["nvidia.com/gpu"] == 8
    assert found["p4d.24xlarge"].capacity["vpc.amazonaws.com/efa"] == 4
    neuron = found["inf2.xlarge"].capacity
    assert (neuron["aws.amazon.com/neuron"], neuron["aws.amazon.com/neuroncore"]) == (1, 2)
    assert found["m5.large"].capacity["vpc.amazonaws.com/pod-eni"] == 9
    assert not any("eks.amazonaws.com/nitro-sandbox" in each.capacity for each in found.values())


async def test_types_are_labelled_by_their_names_and_by_what_ec2_says(stage: Stage) -> None:
    """AWS-51 to AWS-53."""
    await stage.with_class()
    found = await types(stage)

    def said(name: str, *keys: str) -> list[str]:
        known = {
            e.key.rpartition("/")[2]: (",".join(e.values) if e.values else e.operator) for e in found[name].requirements
        }
        return [known[f"instance-{key}"] for key in keys]

    assert said("p4d.24xlarge", "category", "generation", "family", "size") == ["p", "4", "p4d", "24xlarge"]
    assert said("m5.metal", "hypervisor", "size") == ["", "metal"]
    assert said("g5.xlarge", "gpu-name", "gpu-manufacturer", "gpu-count") == ["a10g", "nvidia", "1"]
    assert said("inf2.xlarge", "accelerator-manufacturer", "accelerator-count") == ["aws", "1"]
    assert said("m6g.large", "cpu-manufacturer", "network-bandwidth", "local-nvme") == [
        "aws",
        "750",
        "DoesNotExist",
    ]
    assert said("m5d.large", "local-nvme", "gpu-count") == ["75", "DoesNotExist"]
    assert said("p4d.24xlarge", "gpu-name", "gpu-count", "gpu-memory") == ["a100", "8", "40960"]
    assert said("m5.large", "capability-flex", "cpu", "memory", "ebs-bandwidth") == ["false", "2", "8192", "4750"]


async def test_metal_and_accelerators_are_left_out_where_anything_else_would_do(stage: Stage) -> None:
    """AWS-80."""
    await stage.with_class()
    stage.since = stage.server.control("GET", "ledger/last")
    anything = one_of("kubernetes.io/os", "linux")

    await stage.launched(a_claim_of_ec2(anything, on_demand(), amd64()))

    [call] = stage.calls("CreateFleet")
    configs = call["input"]["LaunchTemplateConfigs"]
    offered = {override["InstanceType"] for config in configs for override in config["Overrides"]}
    assert "m5.large" in offered
    assert not offered & {"m5.metal", "g5.xlarge", "inf2.xlarge", "p4d.24xlarge"}


async def test_dedicated_tenancy_is_asked_for_where_the_claim_insists(stage: Stage) -> None:
    """AWS-4, AWS-82."""
    await stage.with_class()
    stage.since = stage.server.control("GET", "ledger/last")

    await stage.launched(
        a_claim_of_ec2(M5_LARGE, on_demand(), amd64(), one_of("karpenter.k8s.aws/instance-tenancy", "dedicated"))
    )

    either = one_of("karpenter.k8s.aws/instance-tenancy", "dedicated", "default")
    await stage.launched(a_claim_of_ec2(M5_LARGE, on_demand(), amd64(), either))

    made = [call["input"]["LaunchTemplateData"] for call in stage.calls("CreateLaunchTemplate")]
    assert [data["Placement"]["Tenancy"] for data in made] == ["dedicated", "default"]


async def test_repair_waits_as_long_as_upstreams_policies_say(stage: Stage) -> None:
    """AWS-140."""
    policies = await stage.adapter.catalogues.repair_policies()
    slow = ("StorageReady", "NetworkingReady", "KernelReady", "ContainerRuntimeReady")
    of_all = {("Ready", "False"), ("Ready", "Unknown"), *((condition, "False") for condition in slow)}
    gpu = [
        (p.toleration / 60, (p.grace or 0) / 60, bool(p.reason))
        for p in policies
        if p.condition == "AcceleratedHardwareReady"
    ]

    assert {
        (p.condition, p.status) for p in policies if (p.toleration, p.grace, p.reason) == (1800, 600, ".*")
    } == of_all
    assert gpu == [(10, 5, True), (10, 5, True), (30, 10, False)]
    assert {(p.condition, p.status): p.toleration / 60 for p in LEGACY_POLICIES} == {
        **dict.fromkeys(of_all, 30),
        ("AcceleratedHardwareReady", "False"): 10,
    }


async def test_spot_without_its_role_is_left_out_as_a_whole(stage: Stage) -> None:
    """AWS-89, AWS-154: not only the pool that was asked for."""
    await stage.with_class()
    stage.patch(ice=[{"capacityType": "spot", "code": "AuthFailure.ServiceLinkedRoleCreationNotPermitted"}])

    first = await stage.launch(a_claim_of_ec2(M5_LARGE, any_kind(), amd64()))
    other = one_of("node.kubernetes.io/instance-type", "c5.large")
    second = await stage.launched(a_claim_of_ec2(other, any_kind(), amd64()))

    assert isinstance(first, NoCapacity)
    assert [(each.reason, each.message) for each in first.warnings] == [
        (
            "SpotSLRCreationFailed",
            'Attempted to launch a spot instance but failed due to "AuthFailure.ServiceLinkedRoleCreationNotPermitted"',
        )
    ]
    assert second.labels[names.CAPACITY_TYPE] == "on-demand"
    assert second.warnings == ()


async def test_a_spot_instance_is_known_as_one_when_it_is_looked_up(stage: Stage) -> None:
    """AWS-104."""
    await stage.with_class()
    launched = await stage.launched(a_claim_of_ec2(M5_LARGE, SPOT, amd64()))

    found = await stage.adapter.cloud.find(provider_id=launched.provider_id)

    assert found is not None
    assert found.labels[names.CAPACITY_TYPE] == "spot"


IMAGES = {"arch": "x86_64", "owner": "amazon"}


async def test_bottlerocket_starts_from_a_volume_that_its_image_fits_on(stage: Stage) -> None:
    """AWS-100: EC2 refuses a volume that is smaller than the snapshot it is made from."""
    await stage.with_class(amiSelectorTerms=[{"alias": "bottlerocket@latest"}])
    await stage.launched(a_claim_of_ec2())

    await stage.with_class(
        amiSelectorTerms=[{"alias": "bottlerocket@latest"}],
        blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "4Gi"}}],
    )
    refused = await stage.launch(a_claim_of_ec2())

    made = [call["input"]["LaunchTemplateData"]["BlockDeviceMappings"] for call in stage.calls("CreateLaunchTemplate")]
    assert [each["Ebs"]["VolumeSize"] for each in made[0]] == [6, 20]
    assert isinstance(refused, ClassNotReady | LaunchRefused), refused


async def test_of_several_images_the_newest_that_is_not_deprecated_counts(stage: Stage) -> None:
    """AWS-35, AWS-36."""
    known = stage.server.control("GET", "world")["images"]
    made = [
        {**IMAGES, "id": "ami-001", "name": "mine-1", "created": "2026-01-01T00:00:00.000Z"},
        {**IMAGES, "id": "ami-002", "name": "mine-2", "created": "2026-02-01T00:00:00.000Z"},
        {**IMAGES, "id": "ami-003", "name": "mine-3", "created": "2026-03-01T00:00:00.000Z"},
    ]
    made[2]["deprecated"] = "2026-04-01T00:00:00.000Z"
    stage.patch(images=[*known, *made])

    await stage.with_class(amiSelectorTerms=[{"name": "mine-*"}], amiFamily="AL2023")

    assert [each["id"] for each in stage.classes.objects["default"]["status"]["amis"]] == ["ami-002"]


@pytest.mark.parametrize(
    "tag",
    ["karpenter.sh/nodeclaim", "karpenter.sh/nodepool", "kubernetes.io/cluster/another", "eks:eks-cluster-name"],
)
async def test_a_tag_that_is_ours_makes_the_class_unusable(stage: Stage, tag: str) -> None:
    """AWS-8, AWS-41, AWS-76: where the API server let it through."""
    await stage.with_class()
    assert not isinstance(await stage.launch(a_claim_of_ec2()), ClassNotReady)

    await stage.with_class(tags={tag: "x"})

    assert isinstance(await stage.launch(a_claim_of_ec2()), ClassNotReady)
    assert stage.classes.condition("ValidationSucceeded") == ("False", "TagValidationFailed")
    assert stage.classes.condition("Ready") == ("False", "UnhealthyDependents")
    (warning,) = [each for each in stage.notices.published if each.type == "Warning"]
    assert (warning.kind, warning.name, warning.reason) == ("EC2NodeClass", "default", "TagValidationFailed")
    assert tag in warning.message
    state = await stage.adapter.catalogues.node_class(REFERENCE)  # what pools and doctor go by
    assert (state.found, state.ready) == (True, "False")
    stage.classes.delete()
    await stage.upkeep.keep()
    assert stage.classes.objects == {}, "it can be deleted like any other"


async def test_a_class_that_cannot_be_read_says_so_on_itself(stage: Stage) -> None:
    """Where the API server let it through: a condition and an Event, once, and the others go on."""
    stage.classes.apply("odd", amiSelectorTerms="none at all")
    stage.classes.apply("well")

    for _ in range(3):
        await stage.upkeep.keep()

    assert stage.classes.condition("ValidationSucceeded", "odd") == ("False", "Unreadable")
    assert stage.classes.condition("Ready", "odd") == ("False", "UnhealthyDependents")
    assert stage.classes.condition("Ready", "well") == ("True", "Ready")
    published = {(each.name, each.type, each.reason) for each in stage.notices.published}
    assert published == {("odd", "Warning", "Unreadable")}
    assert "amiSelectorTerms" in stage.notices.published[0].message


@pytest.mark.parametrize(
    "kubelet",
    [
        {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 60},
        {"imageGCHighThresholdPercent": 101},
        {"kubeReserved": {"memory": "-1Gi"}},
        {"systemReserved": {"gpu": "1"}},
        {"evictionHard": {"memory.free": "5%"}},
        {"evictionHard": {"memory.available": "150%"}},
        {"evictionSoft": {"memory.available": "5%"}},
        {"evictionSoft": {"memory.available": "5%"}, "evictionSoftGracePeriod": {"nodefs.available": "1m"}},
        {"maxPods": -1},
        {"podPidsLimit": "x"},
        {"podPidsLimit": 2**63},
        {"maxPods": 1.5},
        {"maxPods": True},
        {"failSwapOn": "false"},
        {"clusterDomain": 5},
        {"shutdownGracePeriod": 30},
        {"shutdownGracePeriod": "soon"},
        {"clusterDNS": "10.0.0.10"},
        {"systemReserved": "cpu=100m"},
        {"kubeReserved": {"cpu": 1}},
        {"featureGates": {"X": "true"}},
        {"tracing": []},
        {"memorySwap": "LimitedSwap"},
        {"crashLoopBackOff": {"maxContainerRestartPeriod": "abc"}},
        {"authentication": {"anonymus": {"enabled": False}}},
        {"authentication": {"webhook": {"cacheTTL": 30}}},
        {"memorySwap": {"swapBehaviour": "LimitedSwap"}},
        {"reservedMemory": [{"numaNode": "0", "limits": {"memory": "1Gi"}}]},
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "much"}}]},
        {"shutdownGracePeriodByPodPriority": {"priority": 0}},
        {"shutdownGracePeriodByPodPriority": [{"priority": "0", "shutdownGracePeriodSeconds": 60}]},
        {"logging": {"verbosity": -1}},
        {"logging": {"vmodule": [{"file": "a.go"}]}},
        {"staticPodURLHeader": {"Accept": "text/plain"}},
        {"userNamespaces": {"idsPerPod": "65536"}},
    ],
    ids=json.dumps,
)
async def test_a_kubelet_that_would_not_start_is_refused(stage: Stage, kubelet: Json) -> None:
    """AWS-22, AWS-23."""
    await stage.with_class(kubelet=kubelet)

    assert stage.classes.condition("ValidationSucceeded") == ("False", "InvalidKubeletConfiguration")
    assert await types(stage), "and its nodes are sized without it"


async def test_a_kubelet_has_the_fields_of_kubernetes_1_37_with_their_types(stage: Stage) -> None:
    """AWS-23."""
    await stage.with_class(
        kubelet={
            "failCgroupV1": True,
            "defaultPodSysctls": {"net.core.somaxconn": "1024"},
            "podPidsLimit": 2**40,
            "shutdownGracePeriod": "1m30s",
            "featureGates": {"X": True},
            "memoryThrottlingFactor": 1,
            "tlsCurvePreferences": [29],
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            "memorySwap": {"swapBehavior": "NoSwap"},
            "clusterDNS": None,
            "crashLoopBackOff": {"maxContainerRestartPeriod": "30s"},
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"cacheTTL": "2m"}, "x509": None},
            "authorization": {"mode": "Webhook", "webhook": {"cacheAuthorizedTTL": "5m0s"}},
            "logging": {
                "flushFrequency": 5_000_000_000,
                "verbosity": 2**32 - 1,
                "vmodule": [{"filePattern": "kubelet*", "verbosity": 4}],
                "options": {"json": {"infoBufferSize": 0}, "text": {"splitStream": True, "infoBufferSize": "1Mi"}},
            },
            "staticPodURLHeader": {"Accept": ["text/plain"]},
            "shutdownGracePeriodByPodPriority": [{"priority": 0, "shutdownGracePeriodSeconds": 60}],
            "tracing": {"endpoint": "localhost:4317", "samplingRatePerMillion": 100},
            "userNamespaces": {"idsPerPod": 65536},
        }
    )

    assert stage.classes.condition("ValidationSucceeded") == ("True", "ValidationSucceeded")


async def test_a_kubelets_refusal_names_the_place_within_its_field(stage: Stage) -> None:
    """AWS-23."""
    await stage.with_class(kubelet={"reservedMemory": [{"numaNode": 0}, {"numaNode": "1", "limit": {}}]})

    conditions = stage.classes.objects["default"]["status"]["conditions"]
    [said] = [each["message"] for each in conditions if each["type"] == "ValidationSucceeded"]
    assert "spec.kubelet.reservedMemory[1].numaNode: must be a whole number" in said
    assert "reservedMemory[1].limit: unknown field" in said


async def test_a_reservation_of_an_unknown_kind_is_left_out(stage: Stage) -> None:
    """AWS-143."""
    await with_reservations(stage, {**OPEN, "rtype": "something-new"})
    assert stage.classes.condition("CapacityReservationsReady")[0] == "True"
    assert await capacity_type_launched(stage) == "spot"


async def test_an_instance_that_ends_gives_its_place_back(stage: Stage) -> None:
    """AWS-145, AWS-106."""
    await with_reservations(stage, {**OPEN, "available": 1})
    cloud, claim = stage.adapter.cloud, a_claim_of_ec2(M5_LARGE, any_kind(), amd64())
    launched = await stage.launched(claim)
    between = await capacity_type_launched(stage)

    await cloud.terminate(launched.provider_id)
    assert await reserved_left(stage) == [0], "EC2 refuses a launch into it while the instance shuts down"
    stage.server.control("PATCH", f"instances/{launched.provider_id.rpartition('/')[2]}", {"state": "terminated"})
    assert await cloud.terminate(launched.provider_id) == "gone"

    after = await capacity_type_launched(stage)
    assert (launched.labels[names.CAPACITY_TYPE], between, after) == (
        "reserved",
        "spot",
        "reserved",
    )


async def test_without_the_right_to_ask_for_their_status_instances_are_asked_about_again_after_ten_minutes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-139, AWS-191: a policy that is put right needs no restart."""
    await stage.with_class()
    running: Warned = ((await stage.launched(a_claim_of_ec2())).provider_id.rpartition("/")[2], "instance_stopped")
    queue, at = stage.adapter.interruptions, time.time()
    monkeypatch.setattr(queue, "_clock", lambda: at)
    stage.patch(fail=[{"op": "DescribeInstanceStatus", "code": "UnauthorizedOperation", "status": 403, "times": 1}])
    assert await queue.troubles() == ()

    at += 599.0
    assert (await queue.troubles(), await queue.borne_out([running])) == ((), frozenset({running}))
    assert len(stage.calls("DescribeInstanceStatus")) == 1

    at += 1.0
    assert (await queue.troubles(), await queue.borne_out([running])) == ((), frozenset())
    assert len(stage.calls("DescribeInstanceStatus")) > 2


async def test_carriage_returns_do_not_reach_the_node(stage: Stage) -> None:
    """AWS-100: in the families whose user data is MIME."""
    await stage.with_class(userData="#!/bin/bash\r\necho hello\r\n")
    stage.since = stage.server.control("GET", "ledger/last")

    await stage.launched(a_claim_of_ec2(M5_LARGE, on_demand(), amd64()))

    [made] = stage.calls("CreateLaunchTemplate")
    text = made["input"]["LaunchTemplateData"]["UserData"]
    assert "echo hello\n" in text
    assert "\r" not in text


async def test_of_two_kinds_of_reservation_one_is_asked_for(stage: Stage) -> None:
    """AWS-79: at one price the open reservation, not the block."""
    await with_reservations(stage, OPEN, {**BLOCK, "endIn": 7200})
    stage.since = stage.server.control("GET", "ledger/last")

    launched = await stage.launched(a_claim_of_ec2(M5_LARGE, any_kind(), amd64()))

    made = [call["input"]["LaunchTemplateData"] for call in stage.calls("CreateLaunchTemplate")]
    targets = [data["CapacityReservationSpecification"]["CapacityReservationTarget"] for data in made]
    assert (launched.labels[RESERVATION], targets) == ("cr-01", [{"CapacityReservationId": "cr-01"}])
