"""Which types and offerings there are, and which of them a fleet is asked for, rule by rule (AWS-51 to AWS-80)."""

import time
from dataclasses import replace
from typing import Any, cast

import pytest

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.prices import PriceRefresh
from dovetail.adapters.aws.catalogue.shortages import ASKED_AGAIN_AFTER
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.pods import Expression
from dovetail.model.pools import ClaimTemplate, InstanceType, NodePool
from dovetail.model.values.json import Json
from dovetail.model.values.resources import parse_resources
from dovetail.ports.cloud import LaunchRefused, NoCapacity
from testbed.cloud.state.catalogue import read_types
from tests.adapters.aws.conftest import Stage
from worlds.aws import REFERENCE, a_claim_of_ec2, amd64, any_kind, on_demand, one_of

M5_LARGE = one_of("node.kubernetes.io/instance-type", "m5.large")
RESERVATION = "karpenter.k8s.aws/capacity-reservation-id"
OPEN = {"id": "cr-01", "type": "m5.large", "zone": "us-west-2a", "available": 2}
BLOCK = {**OPEN, "id": "cr-03", "rtype": "capacity-block"}
SIZES = ("large", "xlarge", "2xlarge", "4xlarge")
FAMILIES = (
    *("c5", "c5a", "c5d", "c5n", "c6a", "c6i", "c6id", "c6in", "m5", "m5a", "m5d"),
    *("m5n", "m6a", "m6i", "m6id", "r5", "r5a", "r6i"),
)
CHEAP = [f"{family}.{size}" for family in FAMILIES for size in SIZES]
POOL = NodePool(name="default", uid="p", template=ClaimTemplate(node_class=REFERENCE))


async def types(stage: Stage) -> dict[str, InstanceType]:
    catalogue = await stage.adapter.catalogues.catalogue(POOL)
    return {each.name: each for each in catalogue.types}


async def with_reservations(stage: Stage, *reservations: Json) -> None:
    stage.patch(reservations=list(reservations))
    await stage.with_class(capacityReservationSelectorTerms=[{"id": each["id"]} for each in reservations])


async def test_flexible_types_are_labelled_as_such(stage: Stage) -> None:
    """AWS-51."""
    stage.patch(types=["m7i-flex.large", "m7i.large"])
    await stage.with_class()

    found = {
        name: [e.values for e in each.requirements if e.key == "karpenter.k8s.aws/instance-capability-flex"]
        for name, each in (await types(stage)).items()
    }

    assert found == {"m7i-flex.large": [("true",)], "m7i.large": [("false",)]}


def available(each: InstanceType) -> set[str]:
    """Zones in which a type is available."""
    return {
        value
        for offering in each.offerings
        if offering.available
        for e in offering.requirements
        if e.key == "topology.kubernetes.io/zone"
        for value in e.values
    }


@pytest.mark.parametrize(
    ("change", "unsuited"),
    [
        ({"cpuOptions": {"nestedVirtualization": "enabled"}}, "m5.large"),
        ({"enclaveOptions": {"enabled": True}}, "m5.large"),
        ({"connectionTracking": {"tcpEstablishedTimeout": 60}}, "m5.metal"),
        (
            {
                "networkInterfaces": [
                    {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
                    {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
                ]
            },
            "m5.large",
        ),
        ({"placementGroupSelector": {"name": "pc"}}, "t3.medium"),
    ],
)
async def test_a_type_that_does_not_suit_the_class_stays_listed_with_nothing_available(
    stage: Stage, change: dict[str, Any], unsuited: str
) -> None:
    """AWS-63: nested virtualisation, Nitro Enclaves, connection tracking, network cards, the group's strategy."""
    await stage.with_class()
    assert available((await types(stage))[unsuited])

    stage.patch(placementGroups=[{"id": "pg-01", "name": "pc", "strategy": "cluster"}])
    await stage.with_class(**change)
    found = await types(stage)

    assert unsuited in found
    assert available(found[unsuited]) == set()
    assert change.keys() & {"cpuOptions"} or any(available(each) for each in found.values())


async def test_what_is_not_reserved_says_that_it_has_no_reservation_and_its_zones_are_those_that_serve_it(
    stage: Stage,
) -> None:
    """AWS-64, AWS-65: a type without a price is listed and not available."""
    unpriced = "hpc6a.48xlarge"  # in no price list
    stage.patch(offerings={"c5.large": ["us-west-2b"]}, types=["c5.large", "m5.large", unpriced])
    await stage.with_class()

    found = await types(stage)

    labels = {"capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible"}
    for offering in [each for kind in found.values() for each in kind.offerings]:
        never = {e.key.rpartition("/")[2] for e in offering.requirements if e.operator == "DoesNotExist"}
        assert labels <= never
    assert available(found["m5.large"]) == {"us-west-2a", "us-west-2b", "us-west-2c"}
    assert available(found["c5.large"]) == {"us-west-2b"}
    assert len(found["c5.large"].offerings) == 6  # every zone of the region, on demand and spot
    assert (len(found[unpriced].offerings), available(found[unpriced])) == (3, set())
    assert all(each.unpriced for each in found[unpriced].offerings)  # an overlay may name one
    assert not any(each.unpriced for each in found["c5.large"].offerings)


def targets(stage: Stage) -> list[str]:
    """The reservations that templates made since aim at."""
    made = [call["input"]["LaunchTemplateData"] for call in stage.calls("CreateLaunchTemplate")]
    aims = [each["CapacityReservationSpecification"]["CapacityReservationTarget"] for each in made]
    return [each["CapacityReservationId"] for each in aims]


async def test_of_two_kinds_of_reservation_the_one_with_the_cheapest_offering_is_asked_for(stage: Stage) -> None:
    """AWS-79: the block of m5.large costs less than the open reservation of r5.large."""
    await with_reservations(stage, {**OPEN, "type": "r5.large"}, {**BLOCK, "endIn": 7200})
    stage.since = stage.server.control("GET", "ledger/last")

    launched = await stage.launched(
        a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.large", "r5.large"), any_kind(), amd64())
    )

    assert (launched.labels[RESERVATION], targets(stage)) == (BLOCK["id"], [BLOCK["id"]])


async def test_a_fleet_names_one_capacity_block_and_one_reservation_for_each_zone(stage: Stage) -> None:
    """AWS-78, AWS-156: a fleet takes one block; of a zone's reservations the one with most left."""
    blocks = [{**BLOCK, "endIn": 7200}, {**BLOCK, "id": "cr-13", "zone": "us-west-2c", "endIn": 7200}]
    await with_reservations(stage, *blocks)
    stage.since = stage.server.control("GET", "ledger/last")
    await stage.launched(a_claim_of_ec2(M5_LARGE, any_kind(), amd64()))
    of_blocks = targets(stage)
    zones = ("us-west-2a", "us-west-2a", "us-west-2b")
    counts = zip(("cr-21", "cr-22", "cr-23"), zones, (1, 3, 2), strict=True)
    await with_reservations(stage, *({**OPEN, "id": key, "zone": zone, "available": n} for key, zone, n in counts))
    stage.since = stage.server.control("GET", "ledger/last")

    await stage.launched(a_claim_of_ec2(M5_LARGE, any_kind(), amd64(), name="second"))

    assert of_blocks == [BLOCK["id"]]
    assert sorted(targets(stage)) == ["cr-22", "cr-23"]


async def test_a_type_that_is_too_small_is_not_asked_for(stage: Stage) -> None:
    """AWS-78."""
    await stage.with_class()
    stage.since = stage.server.control("GET", "ledger/last")
    either = one_of("node.kubernetes.io/instance-type", "m5.large", "m5.xlarge")

    await stage.launched(a_claim_of_ec2(either, on_demand(), amd64(), requests=parse_resources({"cpu": "3"})))

    (call,) = stage.calls("CreateFleet")
    configs = call["input"]["LaunchTemplateConfigs"]
    assert {override["InstanceType"] for config in configs for override in config["Overrides"]} == {"m5.xlarge"}


async def test_the_last_record_of_two_products_is_the_price_of_spot(stage: Stage) -> None:
    """AWS-69."""
    prices = stage.adapter.offerings.sources.prices
    asked: list[dict[str, Any]] = []

    class History:
        region = "us-west-2"

        async def every(self, service: str, operation: str, key: str, **given: Any) -> list[dict[str, str]]:
            asked.append({"operation": operation, **given})
            where = {"InstanceType": "m5.large", "AvailabilityZone": "us-west-2a"}
            return [{**where, "SpotPrice": "0.05"}, {**where, "SpotPrice": "0.04"}]

    began = time.time()
    await PriceRefresh(cast(Calls, History()), prices, replace(stage.adapter.settings, isolated_vpc=True)).refresh()

    assert [(each["operation"], each["ProductDescriptions"]) for each in asked] == [
        ("DescribeSpotPriceHistory", ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"])
    ]
    assert int(began) <= asked[0]["StartTime"].timestamp() <= time.time()
    assert prices.spot("m5.large", "us-west-2a") == 0.04


async def test_min_values_keep_what_would_be_left_out(stage: Stage) -> None:
    """AWS-80, AWS-81: metal stays where the claim wants so many types, and where there are too few the claim stays."""
    await stage.with_class()
    names = ("m5.large", "m5.metal")

    async def asked_for(least: int | None) -> set[str]:
        stage.since = stage.server.control("GET", "ledger/last")
        wanted = replace(one_of("node.kubernetes.io/instance-type", *names), min_values=least)
        answer = await stage.launch(a_claim_of_ec2(wanted, on_demand(), amd64()))
        if isinstance(answer, LaunchRefused):
            assert answer.reason == "InstanceTypeFilteringFailed"
            return set()
        return types_asked_for(stage)

    assert await asked_for(None) == {"m5.large"}
    assert await asked_for(2) == set(names)
    assert await asked_for(3) == set()


def types_asked_for(stage: Stage) -> set[str]:
    (call,) = stage.calls("CreateFleet")
    configs = call["input"]["LaunchTemplateConfigs"]
    return {override["InstanceType"] for config in configs for override in config["Overrides"]}


async def with_cheap_types(stage: Stage) -> list[str]:
    """More than a fleet takes, the cheapest first: four sizes of each family."""
    known = sorted(read_types(CHEAP))
    stage.patch(types=known, prices={name: 0.01 * (number + 1) for number, name in enumerate(known)})
    await PriceRefresh(stage.adapter.calls, stage.adapter.offerings.sources.prices, stage.adapter.settings).refresh()
    await stage.with_class()
    stage.since = stage.server.control("GET", "ledger/last")
    assert len(known) == 72
    return known


async def test_a_fleet_is_asked_for_sixty_types_the_cheapest(stage: Stage) -> None:
    """AWS-81."""
    known = await with_cheap_types(stage)

    await stage.launched(a_claim_of_ec2(one_of("kubernetes.io/os", "linux"), on_demand(), amd64()))

    assert types_asked_for(stage) == set(known[:60])


async def test_of_more_than_sixty_types_a_fleet_gets_those_that_its_minimum_needs(stage: Stage) -> None:
    """AWS-81: the families of the dearest types come in for the dearest of those that bring no family of their own."""
    known = await with_cheap_types(stage)
    family = one_of("karpenter.k8s.aws/instance-family", *FAMILIES)

    await stage.launched(a_claim_of_ec2(replace(family, min_values=len(FAMILIES)), on_demand(), amd64()))

    assert types_asked_for(stage) == {*known[:57], known[60], known[64], known[68]}


async def test_several_minima_that_sixty_types_meet_together_are_met(stage: Stage) -> None:
    """AWS-81: the cheapest that bring a new type, and after them the families that are still missing, are more."""
    known = await with_cheap_types(stage)
    family = replace(one_of("karpenter.k8s.aws/instance-family", *FAMILIES), min_values=len(FAMILIES))
    kind = replace(one_of("node.kubernetes.io/instance-type", *known), min_values=58)

    await stage.launched(a_claim_of_ec2(family, kind, on_demand(), amd64()))

    assert types_asked_for(stage) == {*known[:57], known[60], known[64], known[68]}


async def test_a_minimum_that_no_sixty_types_meet_is_a_reason_for_the_claim_and_no_shortage(stage: Stage) -> None:
    """AWS-81: as no capacity, the claim would be deleted and made again at once."""
    await with_cheap_types(stage)
    families = Expression(key="karpenter.k8s.aws/instance-family", operator="Exists", min_values=len(FAMILIES) + 1)

    answer = await stage.launch(a_claim_of_ec2(families, on_demand(), amd64()))

    assert isinstance(answer, LaunchRefused)
    assert answer.reason == "InstanceTypeFilteringFailed"
    assert answer.message.endswith("found karpenter.k8s.aws/instance-family: 18")
    assert stage.calls("CreateFleet") == []


async def test_of_more_reservations_than_a_fleet_takes_templates_the_cheapest_are_asked_for(stage: Stage) -> None:
    """AWS-83, AWS-88: each needs a template of its own, and EC2 refuses a fleet with more than fifty."""
    known = await with_cheap_types(stage)
    tags = {"team": "x"}
    reserved = [{**OPEN, "id": f"cr-{n:03}", "type": name, "tags": tags} for n, name in enumerate(known[:54])]
    stage.patch(reservations=reserved)
    await stage.with_class(capacityReservationSelectorTerms=[{"tags": tags}])
    stage.since = stage.server.control("GET", "ledger/last")

    await stage.launched(a_claim_of_ec2(one_of("kubernetes.io/os", "linux"), any_kind(), amd64()))

    assert types_asked_for(stage) == set(known[:50])


async def test_no_type_on_offer_is_no_shortage_unless_something_is_short(stage: Stage) -> None:
    """AWS-90: nothing would be remembered, and the next claim would be made and deleted at once."""
    await stage.with_class()
    large = replace(a_claim_of_ec2(M5_LARGE, on_demand()), requests=parse_resources({"cpu": "64"}))

    unknown = await stage.launch(a_claim_of_ec2(one_of("node.kubernetes.io/instance-type", "m5.none"), on_demand()))
    too_large = await stage.launch(large)
    stage.patch(ice=[{}])
    short = [await stage.launch(a_claim_of_ec2(M5_LARGE, on_demand())) for _ in range(2)]

    assert [getattr(each, "reason", "") for each in (unknown, too_large)] == ["InstanceTypeFilteringFailed"] * 2
    assert all(isinstance(each, NoCapacity) for each in short)
    assert isinstance(await stage.launch(large), LaunchRefused)


async def test_a_shortage_may_be_asked_about_after_a_while_and_ends_where_that_was_sold(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS-72, decision 240: nobody else launches what is short; the claim that asks extends the shortage or ends it."""
    at = time.time()
    shortages = stage.adapter.offerings.sources.shortages
    monkeypatch.setattr(shortages, "_clock", lambda: at)
    await stage.with_class()
    stage.patch(ice=[{}])

    def usual() -> NodeClaim:
        return a_claim_of_ec2(M5_LARGE, on_demand())

    def asking() -> NodeClaim:
        return replace(usual(), annotations=with_memory({}, asks_again=True))

    async def may_be_asked() -> bool:
        return any(offering.may_be_asked for offering in (await types(stage))["m5.large"].offerings)

    assert isinstance(await stage.launch(usual()), NoCapacity)
    at += ASKED_AGAIN_AFTER - 1
    assert not await may_be_asked()
    assert isinstance(await stage.launch(asking()), NoCapacity)
    at += 2
    assert await may_be_asked()
    made = len(stage.calls("CreateFleet"))
    assert isinstance(await stage.launch(usual()), NoCapacity)
    assert len(stage.calls("CreateFleet")) == made
    assert isinstance(await stage.launch(asking()), NoCapacity)
    assert len(stage.calls("CreateFleet")) == made + 1
    assert not await may_be_asked()

    stage.patch(ice=[])
    at += ASKED_AGAIN_AFTER + 1
    await stage.launched(asking())
    await stage.launched(usual())
