"""Instance types and prices: how they are asked for, how often, and what stands in until then (AWS-48, AWS-66 to
AWS-68)."""

import time
from itertools import pairwise

import pytest

from dovetail.adapters.aws.calls import pricing_region
from dovetail.adapters.aws.catalogue.offerings import Circumstances, OfferedType, offered_types
from dovetail.adapters.aws.catalogue.prices import PriceRefresh, Prices
from dovetail.adapters.aws.catalogue.shortages import Shortages
from dovetail.adapters.aws.failures import Denied
from dovetail.adapters.aws.instance_types import region_types
from dovetail.adapters.aws.instance_types.region_types import RegionTypes
from dovetail.adapters.aws.instance_types.sized_types import sized_types
from dovetail.adapters.aws.node_class.node_class import NodeClass, read_class
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure, Unreachable
from tests.adapters.aws.scripted import (
    TYPES,
    ZONES,
    Answer,
    ScriptedCalls,
    a_product,
    a_spot_price,
    price_answers,
    region_answers,
)
from tests.simulated_loop import for_seconds, now, played
from worlds.aws import ClassStore

DAY = 24 * 3600.0
HALF = 12 * 3600.0
AWAY = Unreachable("AWS", "away")
SETTINGS = AwsSettings(cluster="dovetail")


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_types, "monotonic", now)


def gaps(moments: list[float]) -> list[float]:
    """The seconds between one moment and the next."""
    return [later - earlier for earlier, later in pairwise(moments)]


# --- instance types and zones


def test_types_are_asked_for_by_virtualisation_and_architecture_and_their_zones_beside() -> None:
    """AWS-48."""
    calls = ScriptedCalls(region_answers(), now)

    region = played(RegionTypes(calls).region())

    [types], [offerings] = calls.parameters("DescribeInstanceTypes"), calls.parameters("DescribeInstanceTypeOfferings")
    assert {each["Name"]: each["Values"] for each in types["Filters"]} == {
        "supported-virtualization-type": ["hvm"],
        "processor-info.supported-architecture": ["x86_64", "arm64"],
    }
    assert (types["MaxResults"], offerings["MaxResults"]) == (100, 1000)
    assert offerings["LocationType"] == "availability-zone"
    assert (set(region.types), set(region.offered[TYPES[0]]), region.zones) == (set(TYPES), set(ZONES), ZONES)


def test_types_are_asked_for_at_the_start_and_every_twelve_hours() -> None:
    """AWS-48: a change is a new revision, by which everything that was worked out from it is forgotten."""
    calls = ScriptedCalls(region_answers(), now)

    async def two_days() -> list[int]:
        types, revisions = RegionTypes(calls), []
        revisions.append((await types.region()).revision)
        await for_seconds(DAY + 60.0, types.run())
        revisions.append((await types.region()).revision)
        calls.answers["DescribeInstanceTypeOfferings"] = {"InstanceTypeOfferings": []}
        await for_seconds(HALF + 60.0, types.run())
        revisions.append((await types.region()).revision)
        return revisions

    assert played(two_days()) == [0, 0, 1]
    assert gaps(calls.moments("DescribeInstanceTypes")) == [HALF, HALF, HALF]
    assert gaps(calls.moments("DescribeInstanceTypeOfferings")) == [HALF, HALF, HALF]


def test_types_that_cannot_be_read_again_stay_and_are_asked_for_a_minute_later() -> None:
    """AWS-48."""
    calls = ScriptedCalls(region_answers(), now)

    async def story() -> set[str]:
        types = RegionTypes(calls)
        await types.region()
        calls.answers["DescribeInstanceTypes"] = AWAY
        await for_seconds(HALF + 150.0, types.run())
        return set((await types.region()).types)

    assert played(story()) == set(TYPES)
    assert gaps(calls.moments("DescribeInstanceTypes")) == [HALF, 60.0, 60.0]


# --- prices


def refreshed(region: str = "us-west-2", **answers: Answer) -> tuple[Prices, ScriptedCalls, Failure | None]:
    """The prices after one refresh, what was asked, and how it failed."""
    calls, prices = ScriptedCalls({**price_answers(), **answers}, now, region), Prices(region, clock=time.time)

    async def once() -> Failure | None:
        try:
            await PriceRefresh(calls, prices, SETTINGS).refresh()
        except Failure as failure:
            return failure
        return None

    return prices, calls, played(once())


async def offered(prices: Prices) -> dict[str, OfferedType]:
    """What the region offers under a class at these prices."""
    classes = ClassStore()
    raw = classes.apply()
    raw["status"] = {"subnets": [{"id": f"subnet-{zone}", "zone": zone, "zoneID": zone} for zone in ZONES]}
    raw["status"]["amis"] = [{"id": "ami-1", "name": "a", "requirements": []}]
    node_class = read_class(raw)
    assert isinstance(node_class, NodeClass)
    region = await RegionTypes(ScriptedCalls(region_answers(), now)).region()
    sized = sized_types(region, node_class, SETTINGS, {})
    found = offered_types(
        sized, region, node_class, Circumstances(prices=prices, shortages=Shortages(clock=time.time, store=None))
    )
    return {each.type.name: each for each in found}


def spot_of(prices: Prices, name: str) -> dict[str, tuple[float, bool]]:
    """Price and availability of spot, by zone."""
    each = played(offered(prices))[name]
    return {
        kind.zone: (offering.price, offering.available)
        for kind, offering in zip(each.kinds, each.type.offerings, strict=True)
        if kind.capacity_type == names.CAPACITY_SPOT
    }


def test_until_the_first_refresh_spot_costs_what_on_demand_does() -> None:
    """AWS-66, AWS-67."""
    prices = Prices("us-west-2", clock=time.time)
    price = prices.on_demand("m5.large")

    assert price
    assert spot_of(prices, "m5.large") == dict.fromkeys(ZONES, (price, True))


def test_where_spot_has_no_history_it_is_not_offered() -> None:
    """AWS-66: on-demand has one price for the region, spot one for each zone."""
    prices, _, _ = refreshed()

    assert spot_of(prices, "m5.large") == {ZONES[0]: (0.2, True), ZONES[1]: (0.0, False)}
    assert spot_of(prices, "m5.xlarge") == dict.fromkeys(ZONES, (0.0, False))
    assert (prices.on_demand("m5.large"), prices.on_demand("m5.metal")) == (0.5, 9.5)


@pytest.mark.parametrize(
    ("region", "as_in"),
    [
        ("us-east-1", "us-east-1"),
        ("us-west-2", "us-east-1"),
        ("eu-central-1", "us-east-1"),
        ("cn-north-1", "cn-north-1"),
        ("cn-northwest-1", "us-east-1"),
        ("us-gov-west-1", "us-gov-west-1"),
    ],
)
def test_a_region_without_a_table_begins_with_the_prices_of_us_east_1(region: str, as_in: str) -> None:
    """AWS-67."""
    own, other = Prices(region, clock=time.time), Prices(as_in, clock=time.time)
    tables = {
        name: Prices(name, clock=time.time).on_demand("m5.large")
        for name in ("us-east-1", "cn-north-1", "us-gov-west-1")
    }

    assert own.on_demand("m5.large") == other.on_demand("m5.large")
    assert len(set(tables.values())) == len(tables)


def test_a_price_that_is_learned_replaces_its_own_and_takes_no_other_away() -> None:
    """AWS-67, AWS-68: nor does a price of nothing."""
    table = Prices("us-west-2", clock=time.time)
    free = {"PriceList": [a_product("m5.large", "0.5"), a_product("c5.large", "0.0")]}

    prices, _, _ = refreshed(GetProducts=free)

    assert (prices.on_demand("m5.large"), table.on_demand("m5.large") == 0.5) == (0.5, False)
    assert prices.on_demand("c5.large") == table.on_demand("c5.large") != 0.0
    assert prices.on_demand("r5.large") == table.on_demand("r5.large")


def test_the_price_list_is_asked_two_questions() -> None:
    """AWS-68."""
    _, calls, failure = refreshed(region="eu-west-1")

    asked = [{e["Field"]: e["Value"] for e in each["Filters"]} for each in calls.parameters("GetProducts")]
    common = {
        "regionCode": "eu-west-1",
        "serviceCode": "AmazonEC2",
        "preInstalledSw": "NA",
        "operatingSystem": "Linux",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    assert failure is None
    assert asked == [
        {**common, "tenancy": "Shared", "productFamily": "Compute Instance"},
        {**common, "tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"},
    ]
    assert {each["MaxResults"] for each in calls.parameters("GetProducts")} == {100}


def without_metal(parameters: Json) -> Json:
    """The price list has an answer to the first question only."""
    shared = any(each["Value"] == "Shared" for each in parameters["Filters"])
    return {"PriceList": [a_product("m5.large", "0.5")] if shared else []}


def test_an_answer_to_one_of_the_two_questions_changes_no_price() -> None:
    """AWS-68."""
    prices, _, failure = refreshed(GetProducts=without_metal)

    assert (prices.on_demand("m5.large"), failure) == (Prices("us-west-2", clock=time.time).on_demand("m5.large"), None)


def test_a_price_of_null_is_no_price_and_the_others_are_learnt() -> None:
    """AWS-69: the last price known stays, and spot without one is not offered."""
    listed = {"PriceList": [a_product("m5.large", None), a_product("m5.xlarge", "0.7")]}
    history = [a_spot_price(TYPES[0], ZONES[0], "0.2"), a_spot_price(TYPES[0], ZONES[1], None)]

    prices, _, failure = refreshed(GetProducts=listed, DescribeSpotPriceHistory={"SpotPriceHistory": history})

    assert failure is None
    assert (prices.on_demand("m5.large"), prices.on_demand("m5.xlarge")) == (
        Prices("us-west-2", clock=time.time).on_demand("m5.large"),
        0.7,
    )
    assert (prices.spot(TYPES[0], ZONES[0]), prices.spot(TYPES[0], ZONES[1])) == (0.2, None)


@pytest.mark.parametrize(
    "trouble",
    [
        AWAY,
        Denied(code="AccessDenied", message="no"),
        {"SpotPriceHistory": []},
        {"SpotPriceHistory": [a_spot_price(TYPES[0], ZONES[0], None)]},
    ],
)
def test_spot_that_cannot_be_read_does_not_stop_on_demand(trouble: Answer) -> None:
    """AWS-68: an empty history is an error."""
    prices, _, failure = refreshed(DescribeSpotPriceHistory=trouble)

    assert failure is not None
    assert (prices.on_demand("m5.large"), prices.spot("m5.large", ZONES[1])) == (0.5, 0.5)


def test_on_demand_that_cannot_be_read_does_not_stop_spot() -> None:
    """AWS-68."""
    prices, _, failure = refreshed(GetProducts=AWAY)

    assert failure is AWAY
    assert prices.spot("m5.large", ZONES[0]) == 0.2
    assert prices.on_demand("m5.large") == Prices("us-west-2", clock=time.time).on_demand("m5.large")


@pytest.mark.parametrize(("region", "isolated"), [("us-gov-west-1", False), ("us-west-2", True)])
def test_where_the_price_list_cannot_be_reached_it_is_not_asked(region: str, isolated: bool) -> None:
    """AWS-68."""
    calls, prices = ScriptedCalls(price_answers(), now, region), Prices(region, clock=time.time)

    played(PriceRefresh(calls, prices, AwsSettings(cluster="c", isolated_vpc=isolated)).refresh())

    assert calls.moments("GetProducts") == []
    assert prices.spot("m5.large", ZONES[0]) == 0.2


def test_prices_in_china_are_in_its_currency() -> None:
    """AWS-68."""
    listed = {"PriceList": [a_product("m5.large", "3.5", "CNY"), a_product("m5.xlarge", "7.5", "USD")]}

    prices, _, _ = refreshed("cn-north-1", GetProducts=listed)

    assert prices.on_demand("m5.large") == 3.5
    assert prices.on_demand("m5.xlarge") == Prices("cn-north-1", clock=time.time).on_demand("m5.xlarge")


@pytest.mark.parametrize(
    ("region", "serving"),
    [
        ("ap-northeast-1", "ap-south-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("eu-west-3", "eu-central-1"),
        ("us-west-2", "us-east-1"),
        ("sa-east-1", "us-east-1"),
    ],
)
def test_prices_are_asked_for_in_the_region_that_serves_them(region: str, serving: str) -> None:
    """AWS-68: the client itself goes there."""
    calls = ScriptedCalls({}, now, region)

    assert pricing_region(region) == serving
    assert [calls._made_client(service, "once").meta.region_name for service in ("pricing", "ec2")] == [serving, region]


def asked_for_spot(calls: ScriptedCalls, seconds: float) -> list[float]:
    """The pauses between two questions while prices are refreshed for so long."""
    refresh = PriceRefresh(calls, Prices("us-west-2", clock=time.time), SETTINGS)
    played(for_seconds(seconds, refresh.run()))
    return gaps(calls.moments("DescribeSpotPriceHistory"))


def test_prices_are_refreshed_every_twelve_hours_and_sooner_after_a_failure() -> None:
    """AWS-68: at growing intervals."""
    well, failing = price_answers(), {**price_answers(), "GetProducts": AWAY}

    assert asked_for_spot(ScriptedCalls(well, now), DAY + 60.0) == [HALF, HALF]
    assert asked_for_spot(ScriptedCalls(failing, now), 5 + 10 + 20 + 40 + 1.0) == [5.0, 10.0, 20.0, 40.0]


def test_the_last_price_of_spot_counts() -> None:
    """AWS-66."""
    history = [a_spot_price("m5.large", ZONES[0], price) for price in ("0.1", "0.3")]

    prices, _, _ = refreshed(DescribeSpotPriceHistory={"SpotPriceHistory": history})

    assert prices.spot("m5.large", ZONES[0]) == 0.3
