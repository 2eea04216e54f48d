"""Capacity of an instance's node, and the part of it that pods may use.

Capacity from the facts of the type, allocatable as kubelet computes it: capacity less kubeReserved, systemReserved and
the hard eviction threshold (AWS-54 to AWS-61). Written apart from the product's own formulas: a shared mistake would
hide itself in every test.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from testbed.cloud.json_object import Json
from testbed.cloud.kubelets.user_data import KubeletSetup

MI, GI = 2**20, 2**30
UNITS = {
    "Ki": 2**10, "Mi": MI, "Gi": GI, "Ti": 2**40,
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "m": 0.001,
}  # fmt: skip
ROOT_DEVICES = {"al2": "/dev/xvda", "al2023": "/dev/xvda", "bottlerocket": "/dev/xvdb", "windows": "/dev/sda1"}
GPU_MAKERS = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BootedInstance:
    """One instance: the facts of its type, what its template attached, what its kubelet was given."""

    facts: Json
    block_devices: list[Json]
    interfaces: list[Json]
    setup: KubeletSetup
    memory_overhead: float


def amount(quantity: str) -> float:
    """A Kubernetes quantity in its base unit."""
    for unit, factor in UNITS.items():
        if quantity.endswith(unit):
            return float(quantity.removesuffix(unit)) * factor
    return float(quantity)


def threshold(text: str, capacity: float) -> float:
    """An eviction threshold: a quantity or a share of the capacity; 100 % switches it off."""
    if not text.endswith("%"):
        return amount(text)
    share = float(text.removesuffix("%"))
    return 0 if share >= 100 else math.ceil(capacity * share / 100)


def _memory(instance: BootedInstance) -> int:
    mebibytes = int(instance.facts["MemoryInfo"]["SizeInMiB"])
    if instance.facts["ProcessorInfo"]["SupportedArchitectures"][0] == "arm64":
        mebibytes -= 64
    return (mebibytes - math.ceil(mebibytes * instance.memory_overhead)) * MI


def interface_limited_pods(facts: Json) -> int:
    """What the addresses of the default network card allow."""
    network = facts["NetworkInfo"]
    card = network["NetworkCards"][network["DefaultNetworkCardIndex"]]
    interfaces = int(card["MaximumNetworkInterfaces"])
    return interfaces * (int(network["Ipv4AddressesPerInterface"]) - 1) + 2


def _pods(instance: BootedInstance) -> int:
    setup = instance.setup
    by_address = 110 if setup.family == "windows" else interface_limited_pods(instance.facts)
    pods = setup.max_pods if setup.max_pods is not None else by_address
    if setup.pods_per_core:
        pods = min(pods, setup.pods_per_core * int(instance.facts["VCpuInfo"]["DefaultVCpus"]))
    return pods


def _storage(instance: BootedInstance) -> int:
    disks = instance.facts.get("InstanceStorageInfo") or {}
    if instance.setup.local_disks and disks:
        return int(disks["TotalSizeInGB"]) * 10**9
    family = instance.setup.family
    sized = [each for each in instance.block_devices if (each.get("Ebs") or {}).get("VolumeSize")]
    wanted = [each for each in sized if each.get("DeviceName") == ROOT_DEVICES.get(family)]
    chosen = wanted or (sized[-1:] if family == "custom" else [])
    if chosen:
        return int(chosen[-1]["Ebs"]["VolumeSize"]) * GI
    return (50 if family == "windows" else 20) * GI


def _devices(instance: BootedInstance) -> dict[str, int]:
    facts = instance.facts
    counts: dict[str, int] = {}
    for gpu in (facts.get("GpuInfo") or {}).get("Gpus", ()):
        name = GPU_MAKERS.get(gpu["Manufacturer"])
        if name is not None:
            counts[name] = counts.get(name, 0) + int(gpu["Count"])
    neurons = (facts.get("NeuronInfo") or {}).get("NeuronDevices", ())
    if neurons:
        counts["aws.amazon.com/neuron"] = sum(int(each["Count"]) for each in neurons)
        counts["aws.amazon.com/neuroncore"] = int(neurons[0]["Count"]) * int(neurons[0]["CoreInfo"]["Count"])
    fabric = sum(1 for each in instance.interfaces if each.get("InterfaceType") in ("efa", "efa-only"))
    if fabric:
        counts["vpc.amazonaws.com/efa"] = fabric
    return counts


def _huge_pages(instance: BootedInstance) -> dict[str, int]:
    """The sizes that the kernel knows; none is set aside at boot."""
    if instance.setup.family == "windows":
        return {}
    arm = instance.facts["ProcessorInfo"]["SupportedArchitectures"][0] == "arm64"
    sizes = ("64Ki", "2Mi", "32Mi", "1Gi") if arm else ("2Mi", "1Gi")
    return {f"hugepages-{size}": 0 for size in sizes}


def _reserved_cpu(cores: int) -> int:
    """Millicores: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest."""
    tiers = ((1, 60.0), (1, 10.0), (2, 5.0), (cores, 2.5))
    reserved, left = 0, cores
    for size, share in tiers:
        used = min(left, size)
        reserved += int(used * share)
        left -= used
    return reserved


def _kube_reserved(instance: BootedInstance) -> dict[str, float]:
    setup = instance.setup
    # Bottlerocket and Windows count the pods that they allow, the others those that the addresses allow
    counted = _pods(instance) if setup.family in ("bottlerocket", "windows") else interface_limited_pods(instance.facts)
    reserved = {
        "cpu": _reserved_cpu(int(instance.facts["VCpuInfo"]["DefaultVCpus"])) / 1000,
        "memory": float((11 * counted + 255) * MI),
        "ephemeral-storage": float(GI),
    }
    return reserved | {key: amount(value) for key, value in setup.kube_reserved.items() if key != "pid"}


def _written(name: str, value: float) -> str:
    if name == "cpu":
        return f"{round(value * 1000)}m"
    whole = int(value)
    return f"{whole // 1024}Ki" if name in ("memory", "ephemeral-storage") and whole % 1024 == 0 else str(whole)


def capacity_and_allocatable(instance: BootedInstance) -> tuple[dict[str, str], dict[str, str]]:
    """Both lists as a Node's status carries them."""
    capacity: dict[str, float] = {
        "cpu": float(instance.facts["VCpuInfo"]["DefaultVCpus"]),
        "memory": float(_memory(instance)),
        "ephemeral-storage": float(_storage(instance)),
        "pods": float(_pods(instance)),
        **{name: float(count) for name, count in (_devices(instance) | _huge_pages(instance)).items()},
    }
    setup = instance.setup
    kept: list[Mapping[str, float]] = [
        _kube_reserved(instance),
        {key: amount(value) for key, value in setup.system_reserved.items()},
        {
            "memory": threshold(setup.eviction_hard.get("memory.available", "100Mi"), capacity["memory"]),
            "ephemeral-storage": threshold(
                setup.eviction_hard.get("nodefs.available", "10%"), capacity["ephemeral-storage"]
            ),
        },
    ]
    allocatable = {name: max(0.0, value - sum(each.get(name, 0) for each in kept)) for name, value in capacity.items()}
    return (
        {name: _written(name, value) for name, value in capacity.items()},
        {name: _written(name, value) for name, value in allocatable.items()},
    )
