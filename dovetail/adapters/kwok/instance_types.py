"""What the cloud kwok sells: the instance types of a JSON file, or 144 by formula.

The file is in the format of Karpenter's kwok provider, both as it is today (`Requirements` and `Price` of each
offering) and as it was (`zone`, `capacityType`, `price`); like Go's reader, this one does not look at the case of
names. A type that cannot be read is an error that names it: a shorter catalogue would go unnoticed.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

import orjson

from dovetail.adapters.kubernetes_json.parsing.devices import parse_device
from dovetail.adapters.kwok import names as own
from dovetail.model import names
from dovetail.model.pods import Expression
from dovetail.model.scheduling.devices import DevicePool
from dovetail.model.scheduling.requirements import RequirementSet, from_expressions
from dovetail.model.values.resources import NANO, QuantityError, Resources, format_resources, parse_resources, subtract
from dovetail.ports.failures import Misconfigured

ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")

_CPUS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
_GIB_PER_CPU: Final = {"c": 2, "s": 4, "m": 8}
_SPOT: Final = 0.7  # of the price on demand, in the decimals that upstream publishes
_WINDOWS_BUILD: Final = "10.0.20348"
_DEFAULT_PODS: Final = 110
_SIZE_NAME: Final = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)")


class OfferingKey(NamedTuple):
    """Where there is capacity, or none."""

    instance_type: str
    zone: str
    capacity_type: str


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: requirements are worked out once; equal only to itself
class SoldType:
    """One instance type: its labels, what it has, and its price in each zone under each capacity type."""

    name: str
    labels: Mapping[str, tuple[str, ...]]
    capacity: Resources
    prices: Mapping[OfferingKey, float]
    devices: tuple[DevicePool, ...] = ()
    reserved: Resources | None = None  # not for pods; None: what the NodeClass defines

    @property
    def allocatable(self) -> Resources:
        """For pods, if its NodeClass defines nothing."""
        return subtract(self.capacity, self.reserved or {})

    @cached_property
    def requirement_set(self) -> RequirementSet:
        return from_expressions(self.requirements)

    @cached_property
    def requirements(self) -> tuple[Expression, ...]:
        """Its requirement for every label (CLD-11); DoesNotExist for labels that it cannot have."""
        said = {
            **self.labels,
            names.ZONE: tuple(sorted({pool.zone for pool in self.prices})),
            names.CAPACITY_TYPE: tuple(sorted({pool.capacity_type for pool in self.prices})),
        }
        absent = [key for key in (names.REGION, names.WINDOWS_BUILD) if key not in said]
        return (
            *(Expression(key=key, operator="In", values=values) for key, values in said.items()),
            *(Expression(key=key, operator="DoesNotExist") for key in absent),
        )


def read_types(text: bytes) -> tuple[SoldType, ...]:
    """The types of a file; Misconfigured names the type and field that cannot be read."""
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Misconfigured("INSTANCE_TYPES_FILE_PATH", f"no JSON: {error}") from None
    if not isinstance(body, list) or not body:
        raise Misconfigured("INSTANCE_TYPES_FILE_PATH", "not a list of instance types, or an empty one")
    return tuple(_read_type(number, entry) for number, entry in enumerate(body))


def _read_type(number: int, entry: Any) -> SoldType:
    try:
        given = _lower(entry)
        name = str(given["name"])
        capacity = parse_resources({"pods": _DEFAULT_PODS, **given["resources"]})
        prices = dict(_read_offering(name, _lower(offering)) for offering in given["offerings"])
        systems = tuple(str(system) for system in given["operatingsystems"])
        sold = _sold(name, str(given["architecture"]), systems, capacity, prices)
        return replace(sold, devices=tuple(_read_pool(_lower(each)) for each in given.get("devices") or ()))
    except (KeyError, TypeError, ValueError, AttributeError, QuantityError) as error:
        raise Misconfigured("INSTANCE_TYPES_FILE_PATH", f"[{number}]: {type(error).__name__}: {error}") from None


def _read_pool(given: Mapping[str, Any]) -> DevicePool:
    """Devices that nodes of the type will publish, in the form of a ResourceSlice's spec."""
    driver = str(given["driver"])
    return DevicePool(driver=driver, devices=tuple(parse_device(driver, "", each) for each in given["devices"]))


def _lower(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower(): value for key, value in entry.items()}


def _read_offering(name: str, given: Mapping[str, Any]) -> tuple[OfferingKey, float]:
    if "requirements" in given:
        said = {each["key"]: str(each["values"][0]) for each in given["requirements"]}
        return OfferingKey(name, said[names.ZONE], said[names.CAPACITY_TYPE]), float(given["price"])
    return OfferingKey(name, str(given["zone"]), str(given["capacitytype"])), float(given["price"])


def _sold(
    name: str, arch: str, systems: Iterable[str], capacity: Resources, prices: Mapping[OfferingKey, float]
) -> SoldType:
    """With the labels that Karpenter's provider derives from name and amounts."""
    written = format_resources(capacity)
    gib, rest = divmod(capacity["memory"], 2**30)
    size = _SIZE_NAME.fullmatch(name)
    systems = tuple(systems)
    labels = {
        names.INSTANCE_TYPE: (name,),
        names.ARCH: (arch,),
        names.OS: systems,
        own.SIZE: (size[1] if size else written["cpu"],),
        own.FAMILY: (re.split(r"[.-]", name, maxsplit=1)[0] if re.search(r"[.-]", name) else name[:1],),
        own.CPU: (written["cpu"],),
        own.MEMORY: (written["memory"] if rest else f"{gib}Gi",),
    }
    if systems == ("windows",):
        labels[names.WINDOWS_BUILD] = (_WINDOWS_BUILD,)
    return SoldType(name=name, labels=labels, capacity=capacity, prices=prices)


@cache
def default_types() -> tuple[SoldType, ...]:
    """Twelve sizes, three ratios of memory to cpu, two architectures, two operating systems."""
    return tuple(
        _generated(family, cpu, arch, system)
        for cpu in _CPUS
        for family in _GIB_PER_CPU
        for system in ("linux", "windows")
        for arch in ("amd64", "arm64")
    )


def _generated(family: str, cpu: int, arch: str, system: str) -> SoldType:
    name = f"{family}-{cpu}x-{arch}-{system}"
    memory = cpu * _GIB_PER_CPU[family] * 2**30
    capacity = {
        "cpu": cpu * NANO,
        "memory": memory,
        "pods": min(16 * cpu, 1024),
        "ephemeral-storage": 20 * 2**30,
    }
    prices = prices_of(name, ZONES, 0.025 * cpu + 0.001 * memory / 1e9)
    return _sold(name, arch, (system,), capacity, prices)


def prices_of(name: str, zones: Iterable[str], on_demand: float) -> dict[OfferingKey, float]:
    """The prices of a type that costs the same in all zones."""
    of_type = {names.CAPACITY_SPOT: round(on_demand * _SPOT, 15), names.CAPACITY_ON_DEMAND: on_demand}
    return {OfferingKey(name, zone, kind): amount for zone in zones for kind, amount in of_type.items()}
