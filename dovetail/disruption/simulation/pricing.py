"""Which instance types would be cheaper than what is there (DIS-99 to DIS-102, DIS-105, DIS-110)?

A type counts by the most expensive offering that a launch could end with, not by its cheapest. The requirements of
offerings are parsed once per type.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.model.pools import InstanceType
from dovetail.model.scheduling.requirements import (
    Requirement,
    RequirementSet,
    compatible,
    from_expressions,
    from_labels,
)
from dovetail.placement.min_values import shortest_prefix
from dovetail.placement.prices import PricedOffering, cheapest, price_order, worst_launch_price


@dataclass(frozen=True, slots=True)
class _Prices:
    """The offerings of one type, with their requirements as sets."""

    instance_type: InstanceType  # kept, so that its id stays its own
    available: tuple[PricedOffering, ...]
    every: tuple[PricedOffering, ...]
    requirements: RequirementSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """What a price filter left. `short`: the labels whose minValues no longer hold."""

    types: tuple[InstanceType, ...]
    short: tuple[str, ...] = ()


class PriceBook:
    """The prices of the types that disruption has asked about."""

    def __init__(self, well_known: frozenset[str]) -> None:
        self._well_known = well_known
        self._by_type: dict[int, _Prices] = {}
        # What a launch could cost at most, and at best, by requirements and then by type.
        self._worst: dict[frozenset[Requirement], dict[int, float]] = {}
        self._best: dict[frozenset[Requirement], dict[int, float]] = {}

    def _prices_of(self, instance_type: InstanceType) -> _Prices:
        prices = self._by_type.get(id(instance_type))
        if prices is None:
            read = [(from_expressions(o.requirements), o.price, o.available) for o in instance_type.offerings]
            prices = self._by_type[id(instance_type)] = _Prices(
                instance_type,
                tuple((needs, price) for needs, price, available in read if available),
                tuple((needs, price) for needs, price, _ in read),
                from_expressions(instance_type.requirements),
            )
        return prices

    def best(self, instance_type: InstanceType, wanted: RequirementSet) -> float:
        """The price of the cheapest available offering that suits; infinity if there is none (DIS-99 step 5)."""
        return self._all_best((instance_type,), wanted)[0]

    def _all_best(self, types: Iterable[InstanceType], wanted: RequirementSet) -> list[float]:
        known = self._best.setdefault(frozenset(wanted.values()), {})
        found = []
        for instance_type in types:
            price = known.get(id(instance_type))
            if price is None:
                price = cheapest(self._prices_of(instance_type).available, wanted, self._well_known)
                known[id(instance_type)] = price
            found.append(price)
        return found

    def ordered(self, types: Sequence[InstanceType], wanted: RequirementSet) -> tuple[InstanceType, ...]:
        """The types by their cheapest suitable offering; those without any come last."""
        return tuple([types[i] for i in price_order(self._all_best(types, wanted))])

    def first_price(self, types: Sequence[InstanceType], wanted: RequirementSet) -> float:
        """What the first type is expected to cost; 0 if unknown (DIS-10)."""
        price = self.best(types[0], wanted) if types else math.inf
        return 0.0 if math.isinf(price) else price

    def below(self, types: Iterable[InstanceType], wanted: RequirementSet, limit: float) -> Filtered:
        """The types whose launch would cost less than the limit, and whether minValues hold for them (DIS-101)."""
        known = self._worst.setdefault(frozenset(wanted.values()), {})
        kept = []
        for instance_type in types:
            price = known.get(id(instance_type))
            if price is None:
                price = worst_launch_price(self._prices_of(instance_type).available, wanted, self._well_known)
                known[id(instance_type)] = price
            if price < limit:
                kept.append(instance_type)
        _, short = self.prefix(kept, wanted)
        return Filtered(types=tuple(kept), short=short)

    def prefix(self, types: Sequence[InstanceType], wanted: RequirementSet) -> tuple[int, tuple[str, ...]]:
        """The number of types that it takes to satisfy minValues, and the labels that stay short (DIS-102)."""
        count, short = shortest_prefix((self._prices_of(t).requirements for t in types), wanted)
        return count, tuple(sorted(short))

    def same_type_limit(self, types: Iterable[InstanceType], candidates: Iterable[Candidate]) -> float:
        """The least that a type of the list costs now as one of the candidates; infinity if none is one (DIS-110)."""
        now: dict[str, float] = {}
        present: set[str] = set()
        for candidate in candidates:
            if candidate.instance_type is None:
                continue
            name = candidate.instance_type.name
            present.add(name)
            labels = from_labels(candidate.member.labels)
            price = cheapest(self._prices_of(candidate.instance_type).every, labels, self._well_known)
            now[name] = min(now.get(name, math.inf), price)
        # A type without a suitable offering counts 0, so that nothing is cheaper.
        known = {name: 0.0 if math.isinf(now[name]) else now[name] for name in present}
        return min((known[t.name] for t in types if t.name in known), default=math.inf)

    def suits(self, instance_type: InstanceType, wanted: RequirementSet) -> bool:
        """Whether any available offering suits the requirements."""
        return any(compatible(wanted, needs, self._well_known) for needs, _ in self._prices_of(instance_type).available)
