"""Instance types without peculiarities, for clusters that benchmarks make up."""

from typing import Final

from dovetail.model import names
from dovetail.model.pods import Expression
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.values.resources import parse_resources

ZONES: Final = ("z1", "z2", "z3")


def plain_type(
    name: str, amounts: dict[str, str], overhead: dict[str, str], offerings: tuple[Offering, ...] = ()
) -> InstanceType:
    """Linux on amd64, in every zone and of both capacity types; `amounts`: of cpu and memory."""
    wanted = {
        names.INSTANCE_TYPE: (name,),
        names.ARCH: ("amd64",),
        names.OS: ("linux",),
        names.ZONE: ZONES,
        names.CAPACITY_TYPE: (names.CAPACITY_ON_DEMAND, names.CAPACITY_SPOT),
    }
    return InstanceType(
        name=name,
        requirements=tuple(Expression(key=k, operator="In", values=v) for k, v in wanted.items()),
        capacity=parse_resources({**amounts, "pods": "110"}),
        overhead=parse_resources(overhead),
        offerings=offerings,
    )


def plain_offering(zone: str, capacity_type: str, price: float) -> Offering:
    """The type in one zone, on demand or as spot."""
    wanted = {names.CAPACITY_TYPE: (capacity_type,), names.ZONE: (zone,)}
    requirements = tuple(Expression(key=k, operator="In", values=v) for k, v in wanted.items())
    return Offering(requirements=requirements, price=price)
