"""AWS as a table of answers: for what is played on a simulated clock, and for answers that no server gives."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import Denied
from dovetail.adapters.aws.meters import called
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure
from testbed.cloud.state.catalogue import read_types

Answer = Json | Denied | Failure | Callable[[Json], Json]

REGION = "us-west-2"
ZONES = ("us-west-2a", "us-west-2b")
TYPES = ("m5.large", "m5.xlarge")


class ScriptedCalls(Calls):
    """Answers by operation; `asked` remembers when, what and with which parameters."""

    def __init__(self, answers: Mapping[str, Answer], clock: Callable[[], float], region: str = REGION) -> None:
        super().__init__(AwsSettings(cluster="dovetail", region=region), called, "dovetail", read_only=False)
        self.answers: dict[str, Answer] = dict(answers)
        self.asked: list[tuple[float, str, Json]] = []
        self.takes: dict[str, float] = {}  # seconds that an operation's answer takes
        self._now = clock

    async def attempt(self, service: str, operation: str, **parameters: Any) -> Json | Denied:
        """The answer of the table; an operation that is not in it is a mistake of the test."""
        self.asked.append((self._now(), operation, parameters))
        if operation in self.takes:
            await asyncio.sleep(self.takes[operation])
        answer = self.answers[operation]
        if isinstance(answer, Failure):
            raise answer
        return answer(parameters) if callable(answer) else answer

    def moments(self, operation: str) -> list[float]:
        """When it was asked."""
        return [moment for moment, name, _ in self.asked if name == operation]

    def parameters(self, operation: str) -> list[Json]:
        """What it was asked with."""
        return [parameters for _, name, parameters in self.asked if name == operation]


def region_answers() -> dict[str, Answer]:
    """Two types in two zones."""
    offered = [{"InstanceType": name, "Location": zone} for name in TYPES for zone in ZONES]
    return {
        "DescribeInstanceTypes": {"InstanceTypes": list(read_types(list(TYPES)).values())},
        "DescribeInstanceTypeOfferings": {"InstanceTypeOfferings": offered},
    }


def a_product(instance_type: str, price: str | None, currency: str = "USD") -> Json:
    """An entry of the price list."""
    dimension = {"pricePerUnit": {currency: price}}
    return {
        "product": {"attributes": {"instanceType": instance_type}},
        "terms": {"OnDemand": {"t": {"priceDimensions": {"d": dimension}}}},
    }


def a_spot_price(instance_type: str, zone: str, price: str | None) -> Json:
    """An entry of spot's history."""
    return {"InstanceType": instance_type, "AvailabilityZone": zone, "SpotPrice": price}


def price_answers() -> dict[str, Answer]:
    """On-demand and spot prices; spot has a history in one zone only."""

    def products(parameters: Json) -> Json:
        tenancy = next(each["Value"] for each in parameters["Filters"] if each["Field"] == "tenancy")
        shared = tenancy == "Shared"
        return {"PriceList": [a_product(TYPES[0], "0.5") if shared else a_product("m5.metal", "9.5")]}

    return {
        "GetProducts": products,
        "DescribeSpotPriceHistory": {"SpotPriceHistory": [a_spot_price(TYPES[0], ZONES[0], "0.2")]},
    }
