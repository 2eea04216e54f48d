"""Which values of a topology key could a new node have?

A topology group begins with them (PLC-166, PLC-171). The values come from what the pools' instance types list, each
under the taints of the pools that offer it. The profile says whether values count that a requirement excludes (PLQ-4).
"""

from collections.abc import Callable, Sequence

from dovetail.model.pods import Toleration
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.requirements import (
    Requirement,
    RequirementSet,
    from_expressions,
    from_labels,
    intersect,
    merge,
)
from dovetail.model.scheduling.taints import Taint, untolerated
from dovetail.placement.facts.type_table import CompiledType

Sources = dict[str, set[tuple[Taint, ...]]]  # domain -> the taint sets under which it can be had


class Universe:
    """The domains per key, worked out for the keys that are asked for."""

    def __init__(
        self,
        pools: Sequence[tuple[NodePool, Sequence[CompiledType]]],
        domains_listed: Callable[[Requirement], frozenset[str]],
    ) -> None:
        self._pools = [
            (
                merge(from_expressions(pool.template.requirements), from_labels(pool.template.labels)),
                pool.template.taints,
                types,
            )
            for pool, types in pools
            if types
        ]
        self._listed = domains_listed
        self._known: dict[str, Sources] = {}
        self._domains: dict[tuple[str, tuple[Toleration, ...] | None], list[str]] = {}

    def _of_pool(self, key: str, requirements: RequirementSet, types: Sequence[CompiledType]) -> set[str]:
        own = requirements.get(key)
        found: set[str] = set(own.values) if own is not None and own.operator == "In" else set()
        distinct = {item for compiled in types if (item := compiled.requirements.get(key)) is not None}
        if any(key not in compiled.requirements for compiled in types) and own is not None:
            found |= self._listed(own)
        for item in distinct:
            found |= self._listed(item if own is None else intersect(own, item))
        return found

    def sources(self, key: str) -> Sources:
        """Every domain of the key, with the taint sets under which it can be had."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = {}
            for requirements, taints, types in self._pools:
                for domain in self._of_pool(key, requirements, types):
                    known.setdefault(domain, set()).add(taints)
        return known

    def domains(self, key: str, tolerations: tuple[Toleration, ...] | None) -> list[str]:
        """The domains, sorted; with tolerations given, those that can be had under taints they accept."""
        found = self._domains.get((key, tolerations))
        if found is None:
            found = self._domains[key, tolerations] = sorted(
                domain
                for domain, taint_sets in self.sources(key).items()
                if tolerations is None or any(untolerated(taints, tolerations) is None for taints in taint_sets)
            )
        return found
