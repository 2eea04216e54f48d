"""What the simulated cloud sells unless its world declares a catalogue: the 144 types of upstream's simulator (KWK-10).

Twelve sizes, three ratios of memory to cpu, two architectures, two operating systems; each in four zones, spot and
on-demand. Prices are added in upstream's own order, so that they are equal to the last bit.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

from dovetail.model import names
from dovetail.model.values.resources import NANO, Resources, subtract

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
WINDOWS_BUILD: Final = "10.0.20348"

# KWK-10: what the kubelet keeps for itself.
OVERHEAD: Final[Resources] = {"cpu": NANO // 10, "memory": 10 * _MIB}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedType:
    """One instance type: what it is, has and costs on demand per hour."""

    name: str
    labels: tuple[tuple[str, str], ...]
    capacity: Resources
    price: float
    overhead: Resources = field(default_factory=lambda: dict(OVERHEAD))

    @property
    def allocatable(self) -> Resources:
        """What pods may request of it."""
        return subtract(self.capacity, self.overhead)

    def price_of(self, capacity_type: str) -> float:
        """KWK-10: spot costs seven tenths, in the decimals that upstream publishes."""
        return round(self.price * 0.7, 15) if capacity_type == names.CAPACITY_SPOT else self.price


class CapacityPool(NamedTuple):
    """Where the cloud has capacity, or has none."""

    instance_type: str
    zone: str
    capacity_type: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SimulatedOffering:
    """A capacity pool at a price; ordered by price, then by name, so that no choice is random."""

    price: float
    pool: CapacityPool


@cache
def default_types() -> dict[str, SimulatedType]:
    return {
        each.name: each
        for family, gib in _GIB_PER_CPU.items()
        for cpu in _CPUS
        for system in ("linux", "windows")
        for arch in ("amd64", "arm64")
        for each in (_type(family, cpu, cpu * gib, arch, system),)
    }


def _type(family: str, cpu: int, gib: int, arch: str, system: str) -> SimulatedType:
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
        labels[names.WINDOWS_BUILD] = WINDOWS_BUILD
    capacity = {
        "cpu": cpu * NANO,
        "memory": memory,
        "pods": min(16 * cpu, 1024),
        "ephemeral-storage": 20 * _GIB,
    }
    price = 0.025 * cpu + 0.001 * memory / 1e9
    return SimulatedType(name=name, labels=tuple(labels.items()), capacity=capacity, price=price)
