"""The node that a replacement would become: its cheapest type where that is sold cheapest, joined and empty.

A launch may end with another type of the list, when the cloud is short of the first. The objects made here exist only
in a snapshot; their names say so.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.disruption.nodes.offerings import value_of
from dovetail.disruption.rounds import Round
from dovetail.disruption.simulation.simulation import Replacement
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.pools import InstanceType, NodePool, Offering
from dovetail.model.scheduling.requirements import RequirementSet, compatible, from_expressions
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.resources import subtract

_UP: Final = (
    names.LAUNCHED,
    names.REGISTERED_CONDITION,
    names.INITIALIZED_CONDITION,
    names.READY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """A node that does not exist yet. `price` is 0 if nothing that is sold suits it."""

    name: str
    pool: str
    instance_type: InstanceType | None
    zone: str
    capacity_type: str
    price: float


def successor_of(round_: Round, made: Replacement, name: str) -> Successor:
    """What the replacement would most likely be."""
    types = made.types or _types_of_static(round_, made)
    well_known = round_.settings.well_known
    instance_type = types[0] if types else None
    offering = _cheapest(instance_type, made.requirements, well_known) if instance_type is not None else None
    return Successor(
        name=name,
        pool=made.pool,
        instance_type=instance_type,
        zone=value_of(offering, names.ZONE) if offering else "",
        capacity_type=value_of(offering, names.CAPACITY_TYPE) if offering else "",
        price=offering.price if offering else 0.0,
    )


def _types_of_static(round_: Round, made: Replacement) -> tuple[InstanceType, ...]:
    """A node of a static pool is launched from the template: all types that the pool permits, in price order."""
    well_known = round_.settings.well_known
    suited = [
        each
        for each in round_.fleet.types_of(made.pool).values()
        if compatible(from_expressions(each.requirements), made.requirements, well_known)
        and not math.isinf(round_.prices.best(each, made.requirements))
    ]
    return round_.prices.ordered(suited, made.requirements)


def _cheapest(sold: InstanceType, wanted: RequirementSet, well_known: frozenset[str]) -> Offering | None:
    suited = [
        each
        for each in sold.offerings
        if each.available and compatible(wanted, from_expressions(each.requirements), well_known)
    ]
    return min(suited, key=lambda each: each.price, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Template:
    """What claim and node inherit from their pool."""

    node_class: NodeClassRef
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    expire_after: float | None
    grace: float | None


def objects_of(made: Replacement, successor: Successor, pool: NodePool, at: float) -> tuple[NodeClaim, Node] | None:
    """Its claim and its node as they would be then; None if its size is unknown."""
    sold = successor.instance_type
    if sold is None:
        return None
    template = _template(made, pool)
    labels = {
        **_labels(sold.requirements),
        **template.labels,
        names.NODE_POOL: successor.pool,
        names.INSTANCE_TYPE: sold.name,
        names.ZONE: successor.zone,
        names.CAPACITY_TYPE: successor.capacity_type,
        names.HOSTNAME: successor.name,
        names.REGISTERED: "true",
        names.INITIALIZED: "true",
    }
    provider_id, room = f"outlook:///{successor.name}", subtract(sold.capacity, sold.overhead)
    up = tuple(Condition(type=kind, status="True", reason=kind, changed=at) for kind in _UP)
    claim = NodeClaim(
        name=successor.name,
        uid=successor.name,
        created=at,
        labels=labels,
        annotations=template.annotations,
        node_class=template.node_class,
        requests={},
        taints=template.taints,
        expire_after=template.expire_after,
        termination_grace=template.grace,
        node_name=successor.name,
        provider_id=provider_id,
        capacity=sold.capacity,
        allocatable=room,
        conditions=up,
        last_pod_event=at,
    )
    node = Node(
        name=successor.name,
        uid=successor.name,
        provider_id=provider_id,
        created=at,
        labels=labels,
        taints=template.taints,
        capacity=sold.capacity,
        allocatable=room,
        conditions=(Condition(type=names.READY, status="True", changed=at),),
    )
    return claim, node


def _template(made: Replacement, pool: NodePool) -> _Template:
    template = pool.template
    stamps = {k: v for k, v in pool.annotations.items() if k in (names.NODE_POOL_HASH, names.NODE_POOL_HASH_VERSION)}
    own = dict(made.node.labels) if made.node is not None else {}
    fixed = {r.key: next(iter(r.values)) for r in made.requirements.values() if not r.complement and len(r.values) == 1}
    return _Template(
        node_class=template.node_class,
        labels={**fixed, **template.labels, **own},
        annotations={**template.annotations, **stamps},
        taints=template.taints,
        expire_after=template.expire_after,
        grace=template.termination_grace,
    )


def _labels(requirements: tuple[Expression, ...]) -> dict[str, str]:
    """The labels for which a type has only one value."""
    return {e.key: e.values[0] for e in requirements if e.operator == "In" and len(e.values) == 1}
