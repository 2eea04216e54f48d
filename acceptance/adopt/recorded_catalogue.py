"""The catalogue of the cloud in which the states were recorded, for a simulated world.

Region, zones and prices are those of the test bed's AWS server, of whose types the recorded pools allow m5 only. What
a type has follows from its size by the provider's own arithmetic: 7.5 % of the memory is the hypervisor's; the kubelet
keeps some cpu by the core and 11 MiB of memory for each pod. Types that were not offered there are left out: a cheaper
one would be a reason to consolidate nodes that were not consolidated in the recording.
"""

from typing import Final

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.cloud.state.world import default_world

# size: cpu, MiB of memory, pods, branch interfaces, EBS and network bandwidth in Mbps
_SIZES: Final[dict[str, tuple[int, int, int, int, int, int]]] = {
    "large": (2, 8192, 29, 9, 4750, 750),
    "xlarge": (4, 16384, 58, 18, 4750, 1250),
    "2xlarge": (8, 32768, 58, 38, 4750, 2500),
    "metal": (96, 393216, 737, 120, 19000, 25000),
}
_OURS: Final = "karpenter.k8s.aws/instance-"


def recorded_catalogue() -> Json:
    """The declaration for SimulatedWorld.declare_catalogue."""
    world = default_world()
    return {
        "region": world["region"],
        "scheme": "aws",
        "nodeClasses": [["karpenter.k8s.aws", "EC2NodeClass"]],
        "zones": {zone: {"topology.k8s.aws/zone-id": identity} for zone, identity in world["zones"].items()},
        "types": [_type(size, world["prices"][f"m5.{size}"]) for size in _SIZES],
    }


def _type(size: str, price: float) -> Json:
    cpu, memory, pods, interfaces, *_ = _SIZES[size]
    # 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest, in hundredths of a millicore
    kept = 6000 + 1000 + 500 * min(max(cpu - 2, 0), 2) + 250 * max(cpu - 4, 0)
    return {
        "name": f"m5.{size}",
        "labels": _labels(size),
        "price": price,
        "capacity": {
            "cpu": str(cpu),
            "memory": f"{memory * 925 // 1000}Mi",
            "pods": str(pods),
            "ephemeral-storage": "20Gi",
            "vpc.amazonaws.com/pod-eni": str(interfaces),
        },
        "overhead": {
            "cpu": f"{kept // 100}m",
            "memory": f"{11 * pods + 255 + 100}Mi",  # the last is the eviction threshold
            "ephemeral-storage": "3Gi",
        },
    }


def _labels(size: str) -> dict[str, str]:
    cpu, memory, _, _, disk, network = _SIZES[size]
    return {
        names.INSTANCE_TYPE: f"m5.{size}",
        names.ARCH: "amd64",
        names.OS: "linux",
        "karpenter.k8s.aws/nitro-sandbox": "false",
        f"{_OURS}capability-flex": "false",
        f"{_OURS}category": "m",
        f"{_OURS}cpu": str(cpu),
        f"{_OURS}cpu-manufacturer": "intel",
        f"{_OURS}cpu-sustained-clock-speed-mhz": "3100",
        f"{_OURS}ebs-bandwidth": str(disk),
        f"{_OURS}encryption-in-transit-supported": "false",
        f"{_OURS}family": "m5",
        f"{_OURS}generation": "5",
        f"{_OURS}hypervisor": "" if size == "metal" else "nitro",
        f"{_OURS}memory": str(memory),
        f"{_OURS}network-bandwidth": str(network),
        f"{_OURS}size": size,
        f"{_OURS}tenancy": "default",
    }
