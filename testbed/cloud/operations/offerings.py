"""Instance types, where they are offered, on-demand and spot prices.

moto has no pricing service and one spot price for everything (MOT-5), so no choice by price could be tested with it.
"""

import json
import time

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.wire import moment
from testbed.cloud.json_object import Json
from testbed.cloud.state.cloud import Cloud, Operations, Work

TYPE_FILTERS: dict[str, filters.Values] = {
    "instance-type": lambda facts: (facts["InstanceType"],),
    "supported-virtualization-type": lambda facts: facts.get("SupportedVirtualizationTypes", ()),
    "supported-usage-class": lambda facts: facts.get("SupportedUsageClasses", ()),
    "processor-info.supported-architecture": lambda facts: facts["ProcessorInfo"]["SupportedArchitectures"],
    "bare-metal": lambda facts: (str(facts["BareMetal"]).lower(),),
    "current-generation": lambda facts: (str(facts["CurrentGeneration"]).lower(),),
    "hypervisor": lambda facts: (facts.get("Hypervisor", ""),),
    "vcpu-info.default-vcpus": lambda facts: (str(facts["VCpuInfo"]["DefaultVCpus"]),),
}
OFFER_FILTERS: dict[str, filters.Values] = {
    "instance-type": lambda row: (row["InstanceType"],),
    "location": lambda row: (row["Location"],),
}


PRODUCTS = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")


def _no_tags(_: object) -> dict[str, str]:
    return {}


def describe_types(work: Work) -> Json:
    """The facts of the types that the world offers."""
    types = work.cloud.types()
    named = work.params.get("InstanceTypes")
    unknown = sorted(set(named or ()) - types.keys())
    if unknown:
        raise AwsError("InvalidInstanceType", f"The following supplied instance types do not exist: {unknown}")
    chosen = [types[name] for name in named] if named else list(types.values())
    found = filters.select(chosen, work.params.get("Filters"), TYPE_FILTERS, _no_tags)
    shown, following = work.page(found, default=100)
    return filters.paged("InstanceTypes", shown, following)


def describe_offerings(work: Work) -> Json:
    """Type × place, by zone, zone id or region."""
    world = work.world
    kind = work.params.get("LocationType", "region")
    rows = []
    for name in work.cloud.types():
        zones = world.zones_of(name)
        places = {
            "availability-zone": zones,
            "availability-zone-id": [world["zones"][zone] for zone in zones],
            "region": [world["region"]] if zones else [],
        }[kind]
        rows += [{"InstanceType": name, "LocationType": kind, "Location": place} for place in places]
    found = filters.select(rows, work.params.get("Filters"), OFFER_FILTERS, _no_tags)
    shown, following = work.page(found)
    return filters.paged("InstanceTypeOfferings", shown, following)


def price_catalogue(cloud: Cloud) -> dict[str, dict[str, dict[str, float]]]:
    """type → capacity type → zone → price: the prices by which an independent checker judges costs."""
    catalogue: dict[str, dict[str, dict[str, float]]] = {}
    for name, facts in cloud.types().items():
        on_demand, zones = cloud.world.on_demand_price(name), cloud.world.zones_of(name)
        sold = ("spot",) if "spot" in facts["SupportedUsageClasses"] else ()
        spot = {zone: cloud.world.spot_price(name, zone) for zone in zones for _ in sold}
        prices = {"on-demand": dict.fromkeys(zones, on_demand), "spot": spot}
        known = {
            kind: {zone: price for zone, price in by_zone.items() if price is not None}
            for kind, by_zone in prices.items()
        }
        catalogue[name] = {kind: by_zone for kind, by_zone in known.items() if by_zone}
    return {name: kinds for name, kinds in catalogue.items() if kinds}


def describe_spot_prices(work: Work) -> Json:
    """The price in force now, one record per type, zone and product."""
    params = work.params
    wanted_types = params.get("InstanceTypes")
    asked = params.get("ProductDescriptions") or ["Linux/UNIX"]
    now = moment(time.time())
    rows = [
        {
            "InstanceType": name,
            "AvailabilityZone": zone,
            "ProductDescription": product,
            "SpotPrice": f"{price:.6f}",
            "Timestamp": now,
        }
        for name, kinds in price_catalogue(work.cloud).items()
        if not wanted_types or name in wanted_types
        for zone, price in kinds.get("spot", {}).items()
        if params.get("AvailabilityZone") in (None, "", zone)
        for product in PRODUCTS
        if product in asked
    ]
    known: dict[str, filters.Values] = {
        "instance-type": lambda row: (row["InstanceType"],),
        "availability-zone": lambda row: (row["AvailabilityZone"],),
        "product-description": lambda row: (row["ProductDescription"],),
    }
    found = filters.select(rows, params.get("Filters"), known, _no_tags)
    shown, following = work.page(found)
    return filters.paged("SpotPriceHistory", shown, following)


def _product(name: str, attributes: Json, price: float) -> str:
    sku = f"SKU{name.replace('.', '').upper()}"
    term = f"{sku}.TERM"
    dimension = {f"{term}.HOUR": {"unit": "Hrs", "pricePerUnit": {"USD": f"{price:.10f}"}}}
    return json.dumps(
        {
            "product": {"sku": sku, "productFamily": attributes["productFamily"], "attributes": attributes},
            "serviceCode": "AmazonEC2",
            "terms": {"OnDemand": {term: {"sku": sku, "priceDimensions": dimension}}},
        }
    )


def get_products(work: Work) -> Json:
    """The pricing service's list: metal under its own family and Dedicated, everything else Shared.

    It lists every type that has a price, whether or not the region offers it: without any metal no price changes
    (AWS-68), so a world of a few types must not lose the others' prices.
    """
    params, world = work.params, work.world
    wanted = {each["Field"]: each["Value"] for each in params.get("Filters") or ()}
    rows = []
    for name, price in sorted(world["prices"].items()):
        metal = ".metal" in name
        attributes = {
            "instanceType": name,
            "regionCode": world["region"],
            "serviceCode": "AmazonEC2",
            "productFamily": "Compute Instance (bare metal)" if metal else "Compute Instance",
            "tenancy": "Dedicated" if metal else "Shared",
            "operatingSystem": "Linux",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
        }
        if all(attributes.get(field) == value for field, value in wanted.items()):
            rows.append(_product(name, attributes, float(price)))
    shown, following = work.page(rows, default=100)
    return {"FormatVersion": "aws_v1", **filters.paged("PriceList", shown, following)}


OPERATIONS: Operations = {
    ("ec2", "DescribeInstanceTypes"): describe_types,
    ("ec2", "DescribeInstanceTypeOfferings"): describe_offerings,
    ("ec2", "DescribeSpotPriceHistory"): describe_spot_prices,
    ("pricing", "GetProducts"): get_products,
}
