"""How much of each resource an instance has, and how much of it the system and the kubelet keep (AWS-54 to AWS-62).

The formulas are upstream's, rounding included: a pod that fits there fits here. kube-reserved counts the pods that the
network interfaces allow, not maxPods, except in the families that count maxPods.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.instance_types.type_facts import TypeFacts
from dovetail.adapters.aws.kubelet.formulas import FormulaInputs, formulas_in, resolved, without_formulas
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.image_families import FAMILIES, Family
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model.expressions.values import ExpressionError
from dovetail.model.values.json import Json
from dovetail.model.values.resources import NANO, Resources, parse_amount, parse_quantity

_MIB: Final = 2**20
_GIB: Final = 2**30
_ARM_KEEPS_MIB: Final = 64  # CMA memory that Graviton kernels keep (AWS-54)
_PODS_WITHOUT_DENSITY: Final = 110
_EVICTION_MEMORY: Final = 100 * _MIB
_PERCENT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")
# AWS-60: shares of cores 1, 2, 3 to 4 and the rest, in hundred-thousandths of a core for exact arithmetic.
_CPU_TIERS: Final = ((1, 6000), (1, 1000), (2, 500), (10**9, 250))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    capacity: Resources
    overhead: Resources
    kubelet: Mapping[str, Any] | None = None  # spec.kubelet with numbers for its formulas, where it has any (AWS-24)

    @property
    def pods(self) -> int:
        return self.capacity["pods"]


def sizes_of(facts: TypeFacts, node_class: NodeClass, settings: AwsSettings, observed_memory: int = 0) -> Sizes:
    """Capacity and overhead. `observed_memory` is what nodes of this type have shown (AWS-55), 0 if none has."""
    family = FAMILIES[node_class.family]
    kubelet = kubelet_for(facts, node_class, settings)
    computed = memory_bytes(facts, settings.memory_overhead)
    storage = storage_bytes(facts, node_class, family)
    pods = max_pods(facts, node_class, kubelet, settings)
    amounts = {
        "cpu": facts.cpus * NANO,
        "memory": observed_memory or computed,
        "ephemeral-storage": storage,
        "pods": pods,
        **_devices(facts, node_class, family),
    }
    capacity = {name: amount for name, amount in amounts.items() if amount or name == "pods"}
    kept = _overhead(facts, family, kubelet, {"memory": computed, "ephemeral-storage": storage, "pods": pods})
    return Sizes(
        capacity=capacity,
        # What is kept of something that a node does not count (process ids) takes nothing away.
        overhead={name: amount for name, amount in kept.items() if name in capacity},
        kubelet=kubelet if any(formulas_in(node_class.kubelet)) else None,
    )


def kubelet_for(facts: TypeFacts, node_class: NodeClass, settings: AwsSettings) -> Json:
    """spec.kubelet without formulas; those without a result here are left out, as all are if the gate is closed."""
    kubelet = node_class.kubelet
    if not any(formulas_in(kubelet)):
        return kubelet
    if settings.expressions:
        try:
            return resolved(kubelet, formula_inputs(facts, node_class, settings))
        except ExpressionError:
            return without_formulas(kubelet)  # validation refuses such a class, and nothing is launched for it
    return without_formulas(kubelet)


def formula_inputs(facts: TypeFacts, node_class: NodeClass, settings: AwsSettings) -> FormulaInputs:
    return FormulaInputs(
        instance_type=facts.name,
        vcpus=facts.cpus,
        memory_mib=facts.memory_mib,
        default_enis=facts.interfaces,
        ips_per_eni=facts.addresses,
        pods=_default_pods(facts, node_class, settings),
    )


def memory_bytes(facts: TypeFacts, overhead: float) -> int:
    """The estimate: without what the hypervisor keeps, rounded as upstream does (AWS-54)."""
    mib = facts.memory_mib - (_ARM_KEEPS_MIB if facts.architectures[:1] == ("arm64",) else 0)
    kept = mib * _MIB * overhead
    return mib * _MIB - _ceil_div(int(kept) + (kept > int(kept)), _MIB) * _MIB


def max_pods(facts: TypeFacts, node_class: NodeClass, kubelet: Json, settings: AwsSettings) -> int:
    """How many pods a node takes: maxPods, or what its interfaces allow; podsPerCore limits both (AWS-56)."""
    if isinstance(kubelet.get("maxPods"), int):
        pods = int(kubelet["maxPods"])
    else:
        pods = _default_pods(facts, node_class, settings)
    per_core = kubelet.get("podsPerCore")
    if isinstance(per_core, int) and per_core > 0 and FAMILIES[node_class.family].pods_per_core:
        pods = min(pods, per_core * facts.cpus)
    return pods


def _default_pods(facts: TypeFacts, node_class: NodeClass, settings: AwsSettings) -> int:
    if not FAMILIES[node_class.family].eni_density:
        return _PODS_WITHOUT_DENSITY
    return eni_pods(facts, settings.reserved_enis + _efa_only(node_class, card=0))


def eni_pods(facts: TypeFacts, taken: int) -> int:
    """The pods that the interfaces allow (AWS-57).

    One address of each interface is the interface's own; two pods use the host's network.
    """
    interfaces = max(0, facts.interfaces - taken)
    return interfaces * (facts.addresses - 1) + 2 if interfaces else 0


def _efa_only(node_class: NodeClass, card: int | None = None) -> int:
    return sum(
        1
        for each in node_class.spec.network_interfaces or ()
        if each.interface_type == "efa-only" and card in (None, each.network_card_index)
    )


def storage_bytes(facts: TypeFacts, node_class: NodeClass, family: Family) -> int:
    """The pods' storage: RAID0 of the local disks, else the root volume, else the family's default (AWS-58)."""
    spec = node_class.spec
    if spec.instance_store_policy == "RAID0" and facts.store_gb:
        return facts.store_gb * 10**9
    mappings = spec.block_device_mappings or ()
    root = next((m for m in mappings if m.root_volume and m.ebs and m.ebs.volume_size), None)
    if root is None and node_class.family == "Custom":
        root = mappings[-1] if mappings and mappings[-1].ebs and mappings[-1].ebs.volume_size else None
    elif root is None:
        sized = (m for m in mappings if m.ebs and m.ebs.volume_size)
        root = next((m for m in sized if m.device_name == family.ephemeral_device), None)
    if root is not None and root.ebs is not None and root.ebs.volume_size:
        return parse_quantity(root.ebs.volume_size)
    return parse_quantity(family.default_storage)


def _devices(facts: TypeFacts, node_class: NodeClass, family: Family) -> dict[str, int]:
    """Extended resources: GPUs, accelerators, network interfaces (AWS-59)."""
    interfaces = node_class.spec.network_interfaces
    by_maker = {"nvidia": 0, "amd": 0, "habana": 0}
    for gpu in facts.gpus:
        if gpu.manufacturer in by_maker:
            by_maker[gpu.manufacturer] += gpu.count
    return {
        names.NVIDIA_GPU: by_maker["nvidia"],
        names.AMD_GPU: by_maker["amd"],
        names.GAUDI: by_maker["habana"],
        names.NEURON: sum(device.count for device in facts.neuron),
        names.NEURON_CORE: facts.neuron[0].count * facts.neuron[0].cores if facts.neuron else 0,
        names.EFA: _efa_only(node_class) if interfaces else facts.efa_interfaces,
        names.POD_ENI: facts.branch_interfaces,
        names.PRIVATE_ADDRESS: max(0, facts.addresses - 1) if family.windows_build else 0,
    }


def _overhead(facts: TypeFacts, family: Family, kubelet: Json, computed: Resources) -> dict[str, int]:
    """What the system, the kubelet and the eviction thresholds keep of the computed capacity."""
    counted = eni_pods(facts, 0) if family.reserved_by_interfaces else computed["pods"]
    kube = {
        "cpu": reserved_cpu(facts.cpus),
        "memory": (11 * counted + 255) * _MIB,
        "ephemeral-storage": _GIB,
        **_quantities(kubelet.get("kubeReserved")),
    }
    evicted = {"memory": _EVICTION_MEMORY, "ephemeral-storage": _ceil_div(computed["ephemeral-storage"], 10)}
    hard = kubelet.get("evictionHard") or {}
    for signal, resource in (("memory.available", "memory"), ("nodefs.available", "ephemeral-storage")):
        if signal in hard:
            evicted[resource] = threshold(str(hard[signal]), computed[resource])
    result: dict[str, int] = {}
    for part in (kube, _quantities(kubelet.get("systemReserved")), evicted):
        for name, amount in part.items():
            result[name] = result.get(name, 0) + amount
    return result


def reserved_cpu(cpus: int) -> int:
    """The cores that kube-reserved keeps, in nanocores; each tier is cut to whole millicores (AWS-60)."""
    left, millicores = cpus, 0
    for cores, share in _CPU_TIERS:
        taken = min(left, cores)
        millicores += taken * share // 100
        left -= taken
    return millicores * (NANO // 1000)


def threshold(text: str, total: int) -> int:
    """An eviction threshold: a quantity, or a share of the whole; 100 % means none (AWS-61)."""
    share = _PERCENT.fullmatch(text)
    if share is None:
        return parse_quantity(text)
    percent = min(float(share[1]), 1000.0)  # validation refuses what is above 100
    if percent == 100.0:
        return 0
    return ceil(float(total) / 100 * percent)  # in floats and in this order: a byte more or less is a difference


def _quantities(raw: Json | None) -> dict[str, int]:
    return {name: parse_amount(name, str(text)) for name, text in (raw or {}).items()}


def _ceil_div(value: int, by: int) -> int:
    return -(-value // by)
