"""What the embedded cloud sells: the 144 instance types of upstream's simulator (K-10).

Asked by the cloud when it buys and by the catalogue that planners read. Twelve sizes, three ratios of memory to cpu,
two architectures, two operating systems; each in four zones, spot and on-demand. Prices are added in upstream's own
order, so that they are equal to the last bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from core.model import names
from core.model.pods import Expression
from core.model.resources import NANO, Resources, subtract

REGION: Final = "test-region"
ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
CAPACITY_TYPES: Final = (names.CAPACITY_SPOT, names.CAPACITY_ON_DEMAND)

# Custom labels with which a pool may narrow its choice.
FAMILY: Final = "embedded.dovetail.sh/instance-family"
CPU_COUNT: Final = "embedded.dovetail.sh/instance-cpu"
MEMORY_MIB: Final = "embedded.dovetail.sh/instance-memory"

_CPUS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
_GIB_PER_CPU: Final = {"c": 2, "s": 4, "m": 8}
_GIB: Final = 2**30
_MIB: Final = 2**20
_WINDOWS_BUILD: Final = "10.0.20348"

# K-10: what the kubelet keeps for itself.
OVERHEAD: Final[Resources] = {"cpu": NANO // 10, "memory": 10 * _MIB}


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """One instance type: what it is, has and costs on demand per hour."""

    name: str
    labels: tuple[tuple[str, str], ...]
    capacity: Resources
    price: float

    @property
    def allocatable(self) -> Resources:
        """What pods may ask of it."""
        return subtract(self.capacity, OVERHEAD)

    def price_of(self, capacity_type: str) -> float:
        """K-10: spot costs seven tenths, in the decimals that upstream publishes."""
        return round(self.price * 0.7, 15) if capacity_type == names.CAPACITY_SPOT else self.price


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Offer:
    """One way to buy: ordered by price, then by name, so that a choice never hangs on chance."""

    price: float
    instance_type: str
    zone: str
    capacity_type: str

    @property
    def pool(self) -> tuple[str, str, str]:
        """The capacity pool that it draws on."""
        return (self.instance_type, self.zone, self.capacity_type)


@cache
def machine_types() -> dict[str, MachineType]:
    """All types by name."""
    return {
        machine.name: machine
        for family, gib in _GIB_PER_CPU.items()
        for cpu in _CPUS
        for system in ("linux", "windows")
        for arch in ("amd64", "arm64")
        for machine in (_machine(family, cpu, cpu * gib, (arch, system)),)
    }


@cache
def offers() -> tuple[Offer, ...]:
    """Everything that is for sale, cheapest first."""
    return tuple(sorted(_offers()))


def labels_of(offer: Offer) -> dict[str, str]:
    """The labels of an instance bought that way."""
    return {
        **dict(machine_types()[offer.instance_type].labels),
        names.ZONE: offer.zone,
        names.REGION: REGION,
        names.CAPACITY_TYPE: offer.capacity_type,
    }


def requirements_of(machine: MachineType, zones: tuple[str, ...]) -> tuple[Expression, ...]:
    """What a type promises for every label (C-11): those it cannot have are DoesNotExist."""
    fixed = [Expression(key=key, operator="In", values=(value,)) for key, value in machine.labels]
    absent = [] if (names.WINDOWS_BUILD, _WINDOWS_BUILD) in machine.labels else [names.WINDOWS_BUILD]
    return (
        *fixed,
        Expression(key=names.ZONE, operator="In", values=zones),
        Expression(key=names.REGION, operator="In", values=(REGION,)),
        Expression(key=names.CAPACITY_TYPE, operator="In", values=tuple(sorted(CAPACITY_TYPES))),
        *(Expression(key=key, operator="DoesNotExist") for key in absent),
    )


def _offers() -> Iterator[Offer]:
    for machine in machine_types().values():
        for zone in ZONES:
            for capacity_type in CAPACITY_TYPES:
                price = machine.price_of(capacity_type)
                yield Offer(price=price, instance_type=machine.name, zone=zone, capacity_type=capacity_type)


def _machine(family: str, cpu: int, gib: int, platform: tuple[str, str]) -> MachineType:
    arch, system = platform
    name, memory = f"{family}-{cpu}x-{arch}-{system}", gib * _GIB
    labels = {
        names.INSTANCE_TYPE: name,
        names.ARCH: arch,
        names.OS: system,
        FAMILY: family,
        CPU_COUNT: str(cpu),
        MEMORY_MIB: str(memory // _MIB),
    }
    if system == "windows":
        labels[names.WINDOWS_BUILD] = _WINDOWS_BUILD
    capacity = {
        "cpu": cpu * NANO,
        "memory": memory,
        "pods": min(16 * cpu, 1024),
        "ephemeral-storage": 20 * _GIB,
    }
    price = 0.025 * cpu + 0.001 * memory / 1e9
    return MachineType(name=name, labels=tuple(labels.items()), capacity=capacity, price=price)
