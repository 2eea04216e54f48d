"""What AWS's labels, annotations, tags and extended resources are called (AWS-3 to AWS-7).

All are upstream's wire format, byte for byte; dovetail/model/names.py has those of Karpenter's core.
"""

from typing import Final

GROUP: Final = "karpenter.k8s.aws"
KIND: Final = "EC2NodeClass"
SUPPORTED: Final = frozenset({(GROUP, KIND)})
TERMINATION: Final = "karpenter.k8s.aws/termination"

_AWS: Final = "karpenter.k8s.aws/"
NODE_CLASS: Final = _AWS + "ec2nodeclass"
HASH: Final = _AWS + "ec2nodeclass-hash"
HASH_VERSION: Final = _AWS + "ec2nodeclass-hash-version"
TAGGED: Final = _AWS + "tagged"
CLUSTER_TAGGED: Final = "compatibility.karpenter.k8s.aws/cluster-name-tagged"
PROFILE_NAME: Final = _AWS + "instance-profile-name"

RESERVATION_ID: Final = _AWS + "capacity-reservation-id"
RESERVATION_TYPE: Final = _AWS + "capacity-reservation-type"
INTERRUPTIBLE: Final = _AWS + "capacity-reservation-interruptible"
RESERVATION_LABELS: Final = (RESERVATION_ID, RESERVATION_TYPE, INTERRUPTIBLE)
PLACEMENT_GROUP: Final = _AWS + "placement-group-id"
PARTITION: Final = _AWS + "placement-group-partition"
PARTITION_HOOK: Final = PARTITION  # what a registration waits for until the partition is known (AWS-95)
TENANCY: Final = _AWS + "instance-tenancy"
ZONE_ID: Final = "topology.k8s.aws/zone-id"

CATEGORY: Final = _AWS + "instance-category"
FAMILY: Final = _AWS + "instance-family"
GENERATION: Final = _AWS + "instance-generation"
SIZE: Final = _AWS + "instance-size"
FLEX: Final = _AWS + "instance-capability-flex"
HYPERVISOR: Final = _AWS + "instance-hypervisor"
ENCRYPTION: Final = _AWS + "instance-encryption-in-transit-supported"
SANDBOX: Final = _AWS + "nitro-sandbox"
LOCAL_NVME: Final = _AWS + "instance-local-nvme"
CPU: Final = _AWS + "instance-cpu"
CPU_MANUFACTURER: Final = _AWS + "instance-cpu-manufacturer"
CLOCK: Final = _AWS + "instance-cpu-sustained-clock-speed-mhz"
MEMORY: Final = _AWS + "instance-memory"
EBS_BANDWIDTH: Final = _AWS + "instance-ebs-bandwidth"
NETWORK_BANDWIDTH: Final = _AWS + "instance-network-bandwidth"
GPU_NAME: Final = _AWS + "instance-gpu-name"
GPU_MANUFACTURER: Final = _AWS + "instance-gpu-manufacturer"
GPU_COUNT: Final = _AWS + "instance-gpu-count"
GPU_MEMORY: Final = _AWS + "instance-gpu-memory"
ACCELERATOR_NAME: Final = _AWS + "instance-accelerator-name"
ACCELERATOR_MANUFACTURER: Final = _AWS + "instance-accelerator-manufacturer"
ACCELERATOR_COUNT: Final = _AWS + "instance-accelerator-count"

# Labels of every instance type or offering; a pool that does not name one lets any value through (AWS-3).
WELL_KNOWN: Final = frozenset(
    {
        *RESERVATION_LABELS,
        PLACEMENT_GROUP,
        PARTITION,
        TENANCY,
        ZONE_ID,
        CATEGORY,
        FAMILY,
        GENERATION,
        SIZE,
        FLEX,
        HYPERVISOR,
        ENCRYPTION,
        SANDBOX,
        LOCAL_NVME,
        CPU,
        CPU_MANUFACTURER,
        CLOCK,
        MEMORY,
        EBS_BANDWIDTH,
        NETWORK_BANDWIDTH,
        GPU_NAME,
        GPU_MANUFACTURER,
        GPU_COUNT,
        GPU_MEMORY,
        ACCELERATOR_NAME,
        ACCELERATOR_MANUFACTURER,
        ACCELERATOR_COUNT,
    }
)

NVIDIA_GPU: Final = "nvidia.com/gpu"
AMD_GPU: Final = "amd.com/gpu"
NEURON: Final = "aws.amazon.com/neuron"
NEURON_CORE: Final = "aws.amazon.com/neuroncore"
GAUDI: Final = "habana.ai/gaudi"
POD_ENI: Final = "vpc.amazonaws.com/pod-eni"
EFA: Final = "vpc.amazonaws.com/efa"
PRIVATE_ADDRESS: Final = "vpc.amazonaws.com/PrivateIPv4Address"

NAME_TAG: Final = "Name"
CLAIM_TAG: Final = "karpenter.sh/nodeclaim"
CLUSTER_TAG: Final = "eks:eks-cluster-name"


def owned_tag(cluster: str) -> str:
    """The tag that names the cluster that an instance belongs to."""
    return f"kubernetes.io/cluster/{cluster}"
