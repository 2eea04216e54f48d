"""What changed EC2NodeClasses would mean, for `dovetail plan -f`: looked up, never written.

A supposed class is resolved and hashed as upkeep would do once it is applied; the usual functions then determine its
drift, types and prices. The one thing left out cannot be had without writing: the trial launch of validation, which
makes a launch template.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.offerings_cache import OfferingsCache, Sources
from dovetail.adapters.aws.catalogues import AwsCatalogues
from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.drift import Drift
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.node_class import conditions as c
from dovetail.adapters.aws.node_class.conditions import conditions, true
from dovetail.adapters.aws.node_class.node_class import NodeClass, NodeClasses, UnreadableClass, read_class
from dovetail.adapters.aws.resources.resolution import ClassResources, Resolution
from dovetail.adapters.aws.upkeep.node_classes import as_resolved
from dovetail.adapters.kubernetes_json.parsing.class_hashes import EC2_NODE_CLASS_HASH_VERSION as HASH_VERSION
from dovetail.model.values.json import Json


@dataclass(frozen=True, slots=True)
class SupposedSources:
    """Where supposed classes are looked up: each question gets its own, so that no answer outlives it."""

    of_offerings: Callable[[], Sources]
    of_classes: Callable[[Sources], ClassResources]


class AwsSupposedClasses:
    def __init__(
        self,
        classes: NodeClasses,
        inventory: Inventory,
        cluster: Cluster,
        sources: SupposedSources,
        clock: Callable[[], float],
    ) -> None:
        self._classes, self._inventory, self._cluster = classes, inventory, cluster
        self._sources, self._clock = sources, clock

    async def with_classes(self, changed: Sequence[Json]) -> AwsCatalogues:
        sources = self._sources.of_offerings()
        resources = self._sources.of_classes(sources)
        resolution = Resolution(resources, reserved_capacity=sources.settings.reserved_capacity)
        resolved = await asyncio.gather(*[self._resolved(resolution, raw) for raw in changed])
        live = {each.name: each.raw for each in self._classes.every()}
        raws: Mapping[str, Json] = {**live, **{raw["metadata"]["name"]: raw for raw in resolved}}
        classes = NodeClasses(lambda: raws)
        offerings = OfferingsCache(sources, classes)
        return AwsCatalogues(classes, offerings, Drift(classes, offerings, self._inventory, self._cluster))

    async def _resolved(self, resolution: Resolution, raw: Json) -> Json:
        """The object as it would be after upkeep has looked at it."""
        before = read_class(raw)
        if isinstance(before, UnreadableClass):
            return raw
        stamped = self._stamped(before)
        found = await resolution.resolve(stamped)
        verdicts = {**found.verdicts, c.VALIDATION: true(c.VALIDATION)}
        status = as_resolved(stamped, found).raw.get("status") or {}
        now = conditions(status.get("conditions") or (), verdicts, stamped.generation, self._clock())
        return {**stamped.raw, "status": {**status, "conditions": now}}

    def _stamped(self, node_class: NodeClass) -> NodeClass:
        meta = node_class.raw["metadata"]
        stamps = {
            names.HASH: node_class.hash(self._cluster.known.ca_bundle),
            names.HASH_VERSION: HASH_VERSION,
        }
        annotations = {**(meta.get("annotations") or {}), **stamps}
        found = read_class({**node_class.raw, "metadata": {**meta, "annotations": annotations}})
        assert isinstance(found, NodeClass)  # it could be read a moment ago
        return found
