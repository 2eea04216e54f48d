"""What an hour of an instance type costs (AWS-66 to AWS-69).

Prices are refreshed twice a day; until the first refresh, and wherever the price list cannot be reached, a table that
ships with the product is used. A failed refresh never removes anything. Spot without a price is not free but not
offered.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.instance_types.type_facts import known_facts
from dovetail.adapters.aws.meters import prices_fetched
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure, Unreachable

_log = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 12 * 3600.0
_RETRIES: Final = Backoff(first=5.0, longest=600.0)
_DEFAULT_TABLE: Final = "us-east-1"
_PRODUCTS: Final = (("Shared", "Compute Instance"), ("Dedicated", "Compute Instance (bare metal)"))


class Prices:
    """On-demand prices by type, spot prices by type and zone. `revision` rises with every change."""

    def __init__(self, region: str, clock: Callable[[], float]) -> None:
        facts = known_facts()
        table = region if region in facts["prices"] else _DEFAULT_TABLE
        self._clock = clock
        self._on_demand: dict[str, float] = dict(facts["prices"][table])
        self._spot: dict[tuple[str, str], float] | None = None
        self.revision = 0
        self.asked = asyncio.Event()  # for the first time, with or without an answer

    def on_demand(self, instance_type: str) -> float | None:
        """One price for the region."""
        return self._on_demand.get(instance_type)

    def spot(self, instance_type: str, zone: str) -> float | None:
        """Before the first history, the on-demand price; afterwards None if there is no history."""
        if self._spot is None:
            return self._on_demand.get(instance_type)
        return self._spot.get((instance_type, zone))

    def learn_on_demand(self, prices: Mapping[str, float]) -> None:
        """New values replace old ones; none is ever removed."""
        changed = {name: price for name, price in prices.items() if price > 0 and self._on_demand.get(name) != price}
        if changed:
            self._on_demand.update(changed)
            self.revision += 1

    def learn_spot(self, prices: dict[tuple[str, str], float]) -> None:
        if self._spot != prices:
            self._spot = prices
            self.revision += 1


class PriceRefresh:
    """Refreshes the prices while the adapter is open."""

    def __init__(self, calls: Calls, prices: Prices, settings: AwsSettings) -> None:
        self._calls, self._prices, self._settings = calls, prices, settings

    async def refresh(self) -> None:
        """Refresh both kinds; a failure of one does not stop the other."""
        done = await asyncio.gather(self._on_demand(), self._spot(), return_exceptions=True)
        failed = [each for each in done if isinstance(each, BaseException)]
        for each in failed:
            if not isinstance(each, Failure):
                raise each
        if failed:
            raise failed[0]

    async def run(self) -> None:
        """Refresh until cancelled, every half day; after a failure sooner, at growing intervals."""
        for kind in ("spot",) if self._has_no_list() else ("spot", "on-demand"):
            prices_fetched(kind, time.time())  # those that came with the release, as old as this process
        retry = _RETRIES.first
        while True:
            try:
                await self.refresh()
                wait, retry = REFRESH_SECONDS, _RETRIES.first
            except Failure as failure:
                _log.warning("prices not refreshed: %s", failure)
                wait, retry = retry, _RETRIES.after(retry)
            self._prices.asked.set()
            await asyncio.sleep(wait)

    def _has_no_list(self) -> bool:
        """Whether the price list cannot be reached from here."""
        return self._settings.isolated_vpc or self._calls.region.startswith("us-gov-")

    async def _on_demand(self) -> None:
        if self._has_no_list():
            return
        region = self._calls.region
        both = await asyncio.gather(*[self._products(region, *each) for each in _PRODUCTS])
        if all(both):
            self._prices.learn_on_demand({**both[0], **both[1]})
            prices_fetched("on-demand", time.time())

    async def _products(self, region: str, tenancy: str, family: str) -> dict[str, float]:
        wanted = {
            "regionCode": region,
            "serviceCode": "AmazonEC2",
            "preInstalledSw": "NA",
            "operatingSystem": "Linux",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
            "tenancy": tenancy,
            "productFamily": family,
        }
        filters = [{"Field": field, "Type": "TERM_MATCH", "Value": value} for field, value in wanted.items()]
        listed = await self._calls.every(
            "pricing", "GetProducts", "PriceList", ServiceCode="AmazonEC2", Filters=filters, MaxResults=100
        )
        currency = "CNY" if region.startswith("cn-") else "USD"
        return dict(filter(None, (read_product(text, currency) for text in listed)))

    async def _spot(self) -> None:
        rows = await self._calls.every(
            "ec2",
            "DescribeSpotPriceHistory",
            "SpotPriceHistory",
            ProductDescriptions=["Linux/UNIX", "Linux/UNIX (Amazon VPC)"],
            StartTime=datetime.fromtimestamp(time.time(), UTC),
            MaxResults=2000,
        )
        priced = [row for row in rows if row.get("SpotPrice")]  # a price that is null is none
        if not priced:
            raise Unreachable("ec2:DescribeSpotPriceHistory", "an empty history")
        self._prices.learn_spot({(r["InstanceType"], r["AvailabilityZone"]): float(r["SpotPrice"]) for r in priced})
        prices_fetched("spot", time.time())


def read_product(text: Any, currency: str) -> tuple[str, float] | None:
    """(instance type, price an hour) of one entry of the price list."""
    product: Json = json.loads(text) if isinstance(text, str) else text
    name = ((product.get("product") or {}).get("attributes") or {}).get("instanceType")
    for term in ((product.get("terms") or {}).get("OnDemand") or {}).values():
        for dimension in (term.get("priceDimensions") or {}).values():
            price = float((dimension.get("pricePerUnit") or {}).get(currency) or 0.0)
            if name and price > 0:
                return name, price
    return None
