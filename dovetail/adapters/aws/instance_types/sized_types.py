"""What a class makes of the region's instance types: labels, capacity, overhead (AWS-50, AWS-63, AWS-80).

None of it changes with prices or shortages, so it is worked out once per version of a class and kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.adapters.aws.instance_types.capacity import Sizes, sizes_of
from dovetail.adapters.aws.instance_types.class_fit import unsuited
from dovetail.adapters.aws.instance_types.region_types import Region
from dovetail.adapters.aws.instance_types.type_facts import TypeFacts
from dovetail.adapters.aws.instance_types.type_labels import type_requirements
from dovetail.adapters.aws.node_class.node_class import NodeClass, image_for
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model import names as core
from dovetail.model.pods import Expression
from dovetail.model.scheduling.requirements import RequirementSet, from_expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedType:
    facts: TypeFacts
    sizes: Sizes
    expressions: tuple[Expression, ...]
    requirements: RequirementSet
    zones: frozenset[str]  # that the type and the class's subnets share
    capacity_types: tuple[str, ...]
    unsuited: str  # why its instances cannot be launched as the class asks; empty if they can
    has_image: bool  # whether one of the class's images starts on it
    plain: bool  # neither bare metal nor with accelerators


def sized_types(
    region: Region, node_class: NodeClass, settings: AwsSettings, observed_memory: Mapping[str, int]
) -> tuple[SizedType, ...]:
    """Every type of the region under a class, by name."""
    return tuple(
        sized_type(region, region.types[name], node_class, settings, observed_memory.get(name, 0))
        for name in sorted(region.types)
    )


def sized_type(
    region: Region, facts: TypeFacts, node_class: NodeClass, settings: AwsSettings, observed_memory: int
) -> SizedType:
    """One type under a class; `observed_memory` is what nodes of the type have shown, 0 if none has."""
    subnets = {s.zone: s.zone_id or "" for s in node_class.status.subnets or ()}
    zones = {zone: subnets[zone] for zone in region.offered.get(facts.name, ()) if zone in subnets}
    reserved = settings.reserved_capacity and any(
        r.instance_type == facts.name for r in node_class.status.capacity_reservations or ()
    )
    capacity_types = tuple(
        sorted(
            [kind for kind in (core.CAPACITY_ON_DEMAND, core.CAPACITY_SPOT) if kind in facts.usage]
            + ([core.CAPACITY_RESERVED] if reserved else [])
        )
    )
    expressions = type_requirements(facts, node_class.family, region.name, zones, capacity_types)
    requirements = from_expressions(expressions)
    return SizedType(
        facts=facts,
        sizes=sizes_of(facts, node_class, settings, observed_memory),
        expressions=expressions,
        requirements=requirements,
        zones=frozenset(zones),
        capacity_types=capacity_types,
        unsuited=unsuited(facts, node_class),
        has_image=image_for(node_class.images, requirements) is not None,
        plain="metal" not in facts.size and not facts.has_accelerators,
    )
