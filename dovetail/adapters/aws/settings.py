"""With what is the adapter opened? Upstream's provider settings (W-157), under upstream's names.

Filled by worker/settings.py, the only place that reads the environment. Facts of the cluster that are not settings
(version, DNS address) are in `ClusterFacts`, which whoever opens the adapter may give; what is not given is asked of
EKS.
"""

from dataclasses import dataclass, field
from typing import Final

MEMORY_OVERHEAD: Final = 0.075  # of an instance's memory, what the hypervisor and the system keep (W-54)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSettings:
    """One cluster's settings."""

    cluster: str  # CLUSTER_NAME
    region: str = ""  # AWS_REGION; empty: as botocore finds it
    endpoint_url: str = ""  # AWS_ENDPOINT_URL; empty: as botocore finds it
    isolated_vpc: bool = False  # ISOLATED_VPC: no pricing, no clean-up of profiles
    memory_overhead: float = MEMORY_OVERHEAD  # VM_MEMORY_OVERHEAD_PERCENT
    interruption_queue: str = ""  # INTERRUPTION_QUEUE: a queue's name
    reserved_enis: int = 0  # RESERVED_ENIS
    disable_dry_run: bool = False  # DISABLE_DRY_RUN
    enable_zonal_shift: bool = False  # ENABLE_ZONAL_SHIFT
    image_refresh: float = 60.0  # AMI_REFRESH_INTERVAL
    subnet_refresh: float = 60.0  # SUBNET_REFRESH_INTERVAL
    reserved_capacity: bool = True  # the gate ReservedCapacity
    best_effort_min_values: bool = False  # MIN_VALUES_POLICY=BestEffort
    expressions: bool = False  # the gate NodeClassCEL of AWS_FEATURE_GATES
    threads: int = 32  # calls under way at once
    read_seconds: float = 60.0  # that an answer may take
    rates: tuple[tuple[str, float, float], ...] = field(
        default=(
            # (operation, burst, a second): EC2's own bucket for mutating calls is 50 refilled by 5 a second, for
            # describing calls 100 and 20 (W-182); staying below leaves room for others in the account.
            ("CreateFleet", 50.0, 5.0),
            ("RunInstances", 50.0, 2.0),
            ("CreateLaunchTemplate", 50.0, 5.0),
            ("DeleteLaunchTemplate", 50.0, 5.0),
            ("TerminateInstances", 50.0, 5.0),
            ("CreateTags", 50.0, 10.0),
            ("DescribeInstances", 100.0, 20.0),
            ("DescribeLaunchTemplates", 100.0, 20.0),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What new nodes must be told of their cluster. Empty fields are asked of EKS when first needed."""

    version: str = ""  # "1.36"
    endpoint: str = ""  # CLUSTER_ENDPOINT
    ca_bundle: str = ""  # CLUSTER_CA_BUNDLE, base64
    dns_address: str = ""  # the ClusterIP of kube-system/kube-dns
    service_cidr: str = ""
