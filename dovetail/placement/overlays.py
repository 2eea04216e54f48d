"""Which instance types do the NodeOverlays of the cluster change, and which overlays contradict each other?

Overlays are applied whenever a snapshot gets its catalogues, and upkeep writes the verdict on each (PLC-138, NPL-50 to
NPL-56). Every overlay is judged against all pools before any is applied: one that contradicts another of equal weight
anywhere is applied nowhere. An overlay selects a type by the type's requirements together with the pool's name and
labels. Its price then applies to the offerings that suit it, its capacity to the whole type.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from dovetail.model import names
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.pools import Catalogue, InstanceType, NodePool, Offering
from dovetail.model.scheduling.requirements import (
    RequirementSet,
    compatible,
    conflicts,
    from_expressions,
    from_labels,
    merge,
)
from dovetail.model.values.resources import Resources
from dovetail.placement.prices import adjusted_price

OverlayVerdict = Literal["applied", "invalid", "conflict"]
_OF_TYPES: Final = (names.INSTANCE_TYPE, "In")
Place = tuple[str, int]  # a pool and the number of one of its types


@dataclass(slots=True, kw_only=True)
class _Change:
    """What the overlays make of one type, and the weight of the last overlay that asked for each change."""

    prices: dict[int, str]  # by the number of the offering
    capacity: dict[str, int]
    price_weights: dict[int, int]
    capacity_weights: dict[str, int]
    missing: str = ""  # the price if the cloud names none: of an overlay with nothing but types and a price


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaid:
    """The verdict on each overlay, and the catalogues with all that may be applied."""

    verdicts: Mapping[str, OverlayVerdict]
    catalogues: Mapping[str, Catalogue]


def overlay(
    overlays: Iterable[NodeOverlay],
    pools: Mapping[str, NodePool],
    catalogues: Mapping[str, Catalogue],
) -> Overlaid:
    """Judge all overlays, then apply the permitted ones (NPL-50 to NPL-53, NPL-56). A failed catalogue stays as it
    is."""
    chosen = sorted(overlays, key=lambda item: item.name, reverse=True)
    chosen.sort(key=lambda item: -item.weight)
    selector, judging = _Selector(pools, catalogues), Judging()
    changes: dict[Place, _Change] = {}
    verdicts: dict[str, OverlayVerdict] = {}
    for item in chosen:
        if item.fault:
            verdicts[item.name] = "invalid"
            continue
        selected = judging.judge(item, "overlay", _selected, selector, item)
        if isinstance(selected, Unjudged):
            verdicts[item.name] = "invalid"
            continue
        if any(_contradicts(item, changes.get(place), offerings) for place, offerings in selected):
            verdicts[item.name] = "conflict"
            continue
        verdicts[item.name] = "applied"
        for place, offerings in selected:
            if place not in changes:
                changes[place] = _Change(prices={}, capacity={}, price_weights={}, capacity_weights={})
            _record(item, changes[place], offerings)
    return Overlaid(verdicts=verdicts, catalogues=_applied(catalogues, changes))


def _selected(selector: "_Selector", item: NodeOverlay) -> list[tuple[Place, list[int]]]:
    return list(selector.by(item))


class _Selector:
    """Finds the types that an overlay selects."""

    def __init__(self, pools: Mapping[str, NodePool], catalogues: Mapping[str, Catalogue]) -> None:
        self._types: list[tuple[Place, InstanceType, RequirementSet]] = []
        for name in sorted(catalogues):
            pool = pools.get(name)
            if pool is None:
                continue
            own = from_labels({**pool.template.labels, names.NODE_POOL: name})
            for number, item in enumerate(catalogues[name].types):
                self._types.append(((name, number), item, merge(from_expressions(item.requirements), own)))
        self._offered: dict[tuple[object, ...], RequirementSet] = {}

    def by(self, item: NodeOverlay) -> Iterator[tuple[Place, list[int]]]:
        """The types, each with the numbers of its suitable offerings; a type without any is not selected (NPL-52)."""
        wanted = from_expressions(item.requirements)
        suits: dict[tuple[object, ...], bool] = {}
        for place, source, have in self._types:
            if not compatible(have, wanted):
                continue
            offerings = []
            for number, offering in enumerate(source.offerings):
                verdict = suits.get(offering.requirements)
                if verdict is None:
                    verdict = not conflicts(wanted, self._requirements(offering))  # its keys are all well-known
                    suits[offering.requirements] = verdict
                if verdict:
                    offerings.append(number)
            if offerings:
                yield place, offerings

    def _requirements(self, offering: Offering) -> RequirementSet:
        known = self._offered.get(offering.requirements)
        if known is None:
            known = self._offered[offering.requirements] = from_expressions(offering.requirements)
        return known


def _contradicts(item: NodeOverlay, change: _Change | None, offerings: Iterable[int]) -> bool:
    """Whether an overlay of equal weight sets the same thing, even to the same value (NPL-53)."""
    if change is None:
        return False
    if item.price and any(change.price_weights.get(number) == item.weight for number in offerings):
        return True
    return any(change.capacity_weights.get(name) == item.weight for name in item.capacity)


def _record(item: NodeOverlay, change: _Change, offerings: Iterable[int]) -> None:
    """The heavier overlay came first and stays (NPL-53); the weight of the last is kept to notice equals below it."""
    if item.price:
        if item.price[0] not in "+-" and [(e.key, e.operator) for e in item.requirements] == [_OF_TYPES]:
            change.missing = change.missing or item.price
        for number in offerings:
            change.prices.setdefault(number, item.price)
            change.price_weights[number] = item.weight
    for name, amount in item.capacity.items():
        change.capacity.setdefault(name, amount)
        change.capacity_weights[name] = item.weight


def _applied(catalogues: Mapping[str, Catalogue], changes: Mapping[Place, _Change]) -> dict[str, Catalogue]:
    touched = {pool for pool, _ in changes}
    return {
        name: replace(
            catalogue,
            types=tuple([_changed(item, changes.get((name, n))) for n, item in enumerate(catalogue.types)]),
        )
        if name in touched
        else catalogue
        for name, catalogue in catalogues.items()
    }


def _changed(item: InstanceType, change: _Change | None) -> InstanceType:
    """The type with its overlays (NPL-56). Unlike upstream an offering keeps the capacity that it overrides
    (PLQ-22)."""
    if change is None:
        return item
    offerings = tuple([_priced(o, change, change.prices.get(n, "")) for n, o in enumerate(item.offerings)])
    capacity: Resources = {**item.capacity, **change.capacity}
    return replace(
        item, offerings=offerings, capacity=capacity, capacity_overlay=item.capacity_overlay or bool(change.capacity)
    )


def _priced(offering: Offering, change: _Change, price: str) -> Offering:
    """The offering at an overlay's price. This makes an offering available that the cloud sells without naming a
    price, as it does for types that are not open to everybody yet."""
    if not price:
        return offering
    missing = change.missing if offering.unpriced else ""
    return replace(
        offering,
        price=adjusted_price(adjusted_price(offering.price, missing), price),
        price_overlay=True,
        available=offering.available or bool(missing),
    )
