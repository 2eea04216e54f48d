"""The relevant facts about an instance type, from DescribeInstanceTypes.

What AWS's API lacks (network bandwidth that its documents describe vaguely, branch interfaces) comes from facts.json,
which is dated. The API's own dictionaries are not kept, because they take ten times the memory.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from dovetail.model.values.json import Json

_NAME: Final = re.compile(r"(?P<category>[a-z]+)(?:-[0-9]+tb)?(?P<generation>[0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One kind of GPU or accelerator of a type."""

    name: str
    manufacturer: str
    count: int
    memory_mib: int = 0
    cores: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeFacts:
    name: str
    architectures: tuple[str, ...]
    usage: frozenset[str]
    cpus: int
    memory_mib: int
    hypervisor: str
    encryption: bool
    enclaves: bool
    manufacturer: str
    clock_mhz: int
    features: frozenset[str]
    ebs_bandwidth: int
    network_bandwidth: int
    branch_interfaces: int
    nvme: bool
    store_gb: int
    gpus: tuple[Gpu, ...]
    inference: tuple[Gpu, ...]
    neuron: tuple[Gpu, ...]
    has_neuron: bool
    ena: bool
    efa_interfaces: int
    addresses: int
    default_card: int
    cards: tuple[tuple[int, int], ...]  # (index, most interfaces)
    strategies: frozenset[str]

    @property
    def arch(self) -> str:
        """As Kubernetes calls it; amd64 for a type that can be both."""
        return "arm64" if "x86_64" not in self.architectures else "amd64"

    @property
    def family(self) -> str:
        """m5d of m5d.large."""
        return self.name.partition(".")[0]

    @property
    def size(self) -> str:
        """large of m5d.large."""
        return self.name.partition(".")[2]

    @property
    def category_and_generation(self) -> tuple[str, str]:
        """From the name; empty if the name has none (AWS-51)."""
        found = _NAME.match(self.name)
        return (found["category"], found["generation"]) if found else ("", "")

    @property
    def has_accelerators(self) -> bool:
        """Whether it has GPUs, Neuron or Gaudi (AWS-80)."""
        return bool(self.gpus or self.inference or self.neuron)

    @property
    def interfaces(self) -> int:
        """Network interfaces of the default card."""
        return next((most for index, most in self.cards if index == self.default_card), 0)


@cache
def known_facts() -> Mapping[str, Any]:
    """facts.json."""
    found: Mapping[str, Any] = json.loads(Path(__file__).with_name("facts.json").read_text(encoding="utf-8"))
    return found


def read_type(raw: Json) -> TypeFacts:
    name: str = raw["InstanceType"]
    processor, network = raw.get("ProcessorInfo") or {}, raw.get("NetworkInfo") or {}
    storage, ebs = raw.get("InstanceStorageInfo") or {}, raw.get("EbsInfo") or {}
    facts = known_facts()
    cards = network.get("NetworkCards") or []
    return TypeFacts(
        name=name,
        architectures=tuple(processor.get("SupportedArchitectures") or ()),
        usage=frozenset(raw.get("SupportedUsageClasses") or ()),
        cpus=int((raw.get("VCpuInfo") or {}).get("DefaultVCpus", 0)),
        memory_mib=int((raw.get("MemoryInfo") or {}).get("SizeInMiB", 0)),
        hypervisor=raw.get("Hypervisor") or "",
        encryption=bool(network.get("EncryptionInTransitSupported")),
        enclaves=raw.get("NitroEnclavesSupport") == "supported",
        manufacturer=_kebab(processor.get("Manufacturer") or ""),
        clock_mhz=round(float(processor.get("SustainedClockSpeedInGhz") or 0.0) * 1000),
        features=frozenset(processor.get("SupportedFeatures") or ()),
        ebs_bandwidth=_ebs_bandwidth(ebs),
        network_bandwidth=int(facts["bandwidth"].get(name, 0)) or _bandwidth(cards),
        branch_interfaces=int(facts["branch_interfaces"].get(name, 0)),
        nvme=bool(storage) and storage.get("NvmeSupport", "unsupported") != "unsupported",
        store_gb=int(storage.get("TotalSizeInGB", 0)),
        gpus=tuple(_gpu(each) for each in (raw.get("GpuInfo") or {}).get("Gpus") or ()),
        inference=tuple(_gpu(each) for each in (raw.get("InferenceAcceleratorInfo") or {}).get("Accelerators") or ()),
        neuron=tuple(_neuron(each) for each in (raw.get("NeuronInfo") or {}).get("NeuronDevices") or ()),
        has_neuron=bool(raw.get("NeuronInfo")),
        ena=network.get("EnaSupport", "unsupported") != "unsupported",
        efa_interfaces=int((network.get("EfaInfo") or {}).get("MaximumEfaInterfaces", 0)),
        addresses=int(network.get("Ipv4AddressesPerInterface", 0)),
        default_card=int(network.get("DefaultNetworkCardIndex", 0)),
        cards=tuple((int(c.get("NetworkCardIndex", 0)), int(c.get("MaximumNetworkInterfaces", 0))) for c in cards),
        strategies=frozenset((raw.get("PlacementGroupInfo") or {}).get("SupportedStrategies") or ()),
    )


def _ebs_bandwidth(ebs: Json) -> int:
    """Only if the type is EBS-optimised by default."""
    if ebs.get("EbsOptimizedSupport") != "default":
        return 0
    return int((ebs.get("EbsOptimizedInfo") or {}).get("MaximumBandwidthInMbps", 0))


def _bandwidth(cards: list[Json]) -> int:
    """For a type that facts.json lacks: the sum over its cards, which matches AWS's documentation except for rounding
    (MOT-3)."""
    return round(sum(float(card.get("BaselineBandwidthInGbps") or 0.0) for card in cards) * 1000)


def _gpu(raw: Json) -> Gpu:
    return Gpu(
        name=_kebab(raw.get("Name") or ""),
        manufacturer=_kebab(raw.get("Manufacturer") or ""),
        count=int(raw.get("Count", 0)),
        memory_mib=int((raw.get("MemoryInfo") or {}).get("SizeInMiB", 0)),
    )


def _neuron(raw: Json) -> Gpu:
    return Gpu(
        name=_kebab(raw.get("Name") or ""),
        manufacturer="aws",
        count=int(raw.get("Count", 0)),
        cores=int((raw.get("CoreInfo") or {}).get("Count", 0)),
    )


def _kebab(text: str) -> str:
    """As label values are written (AWS-52)."""
    return text.lower().replace(" ", "-")
