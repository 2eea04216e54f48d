"""Which labels a node of an instance type may carry (AWS-50 to AWS-53).

A label that a type has no value for is DoesNotExist, never absent: absent would mean "anything".
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.instance_types.type_facts import TypeFacts
from dovetail.adapters.aws.resources.image_families import FAMILIES
from dovetail.model import names as core
from dovetail.model.pods import Expression

TENANCIES: Final = ("dedicated", "default")


@lru_cache(maxsize=8192)
def one_of(key: str, values: tuple[str, ...]) -> Expression:
    """Shared, because thousands of offerings say the same."""
    return Expression(key=key, operator="In", values=values)


@lru_cache(maxsize=256)
def never(key: str) -> Expression:
    """The label does not exist."""
    return Expression(key=key, operator="DoesNotExist")


def _fixed(facts: TypeFacts, family: str) -> dict[str, str]:
    category, generation = facts.category_and_generation
    gpu = facts.gpus[0] if len(facts.gpus) == 1 else None
    accelerators = facts.neuron if facts.has_neuron else facts.inference
    accelerator = accelerators[0] if len(accelerators) == 1 else None
    build = FAMILIES[family].windows_build
    runs_windows = bool(build) and facts.arch == "amd64"
    return {
        core.INSTANCE_TYPE: facts.name,
        core.ARCH: facts.arch,
        core.OS: "linux" if not build else "windows" if runs_windows else "",
        core.WINDOWS_BUILD: build if runs_windows else "",
        names.CATEGORY: category,
        names.GENERATION: generation,
        names.FAMILY: facts.family,
        names.SIZE: facts.size,
        names.FLEX: "true" if "-flex" in facts.family else "false",
        names.CPU: str(facts.cpus),
        names.MEMORY: str(facts.memory_mib),
        names.ENCRYPTION: "true" if facts.encryption else "false",
        names.SANDBOX: "true" if facts.enclaves else "false",
        names.CPU_MANUFACTURER: facts.manufacturer,
        names.CLOCK: _number(facts.clock_mhz),
        names.EBS_BANDWIDTH: _number(facts.ebs_bandwidth),
        names.NETWORK_BANDWIDTH: _number(facts.network_bandwidth),
        names.LOCAL_NVME: _number(facts.store_gb) if facts.nvme else "",
        names.GPU_NAME: gpu.name if gpu else "",
        names.GPU_MANUFACTURER: gpu.manufacturer if gpu else "",
        names.GPU_COUNT: str(gpu.count) if gpu else "",
        names.GPU_MEMORY: str(gpu.memory_mib) if gpu else "",
        names.ACCELERATOR_NAME: accelerator.name if accelerator else "",
        names.ACCELERATOR_MANUFACTURER: accelerator.manufacturer if accelerator else "",
        names.ACCELERATOR_COUNT: str(accelerator.count) if accelerator else "",
    }


def _number(value: int) -> str:
    return str(value) if value else ""


def type_requirements(
    facts: TypeFacts, family: str, region: str, zones: Mapping[str, str], capacity_types: tuple[str, ...]
) -> tuple[Expression, ...]:
    """All requirements. `zones` are those that type and class share, by name with their ids."""
    fixed = _fixed(facts, family)
    zone_ids = tuple(sorted(filter(None, zones.values())))
    return (
        *(one_of(key, (value,)) if value else never(key) for key, value in fixed.items()),
        # Bare metal has no hypervisor, and upstream's label says so with an empty text (AWS-52).
        one_of(names.HYPERVISOR, (facts.hypervisor,)),
        one_of(core.ZONE, tuple(sorted(zones))),
        one_of(names.ZONE_ID, zone_ids) if zone_ids else never(names.ZONE_ID),
        one_of(core.REGION, (region,)),
        one_of(core.CAPACITY_TYPE, capacity_types),
        one_of(names.TENANCY, TENANCIES),
    )
