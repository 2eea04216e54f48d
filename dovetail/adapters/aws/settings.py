"""The adapter's settings: upstream's provider settings (AWS-157), under upstream's names.

They are filled from `AwsEnvironment`, the variables that dovetail/settings/settings.py reads. Facts of the cluster
(version, DNS address) are not settings and are in `ClusterFacts`; those not given there are requested from EKS.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

MEMORY_OVERHEAD: Final = 0.075  # the share of an instance's memory that the hypervisor and the system keep (AWS-54)


class RateLimit(NamedTuple):
    """How often one operation may be called."""

    operation: str
    burst: float
    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSettings:
    cluster: str  # CLUSTER_NAME
    cluster_uid: str = ""  # of its namespace kube-system; empty: not known, and no instance is tagged with it
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
    security_group_refresh: float = 60.0  # SECURITY_GROUP_REFRESH_INTERVAL
    reserved_capacity: bool = True  # the gate ReservedCapacity
    best_effort_min_values: bool = False  # MIN_VALUES_POLICY=BestEffort
    expressions: bool = False  # the gate NodeClassCEL of AWS_FEATURE_GATES
    launch_groups: bool = False  # the gate LaunchGroups
    reboots: bool = False  # the gate RebootForRepair
    legacy_repair: bool = False  # LEGACY_NODE_REPAIR: the policies until 1.14
    threads: int = 32  # calls under way at once
    read_seconds: float = 60.0  # how long an answer may take
    rates: tuple[RateLimit, ...] = (
        # What an account has whose rates were never raised: for mutating calls 50 refilled by 5 a second, for
        # describing ones 100 and 20 (AWS-182). Once AWS has throttled, nothing goes faster than this.
        RateLimit("CreateFleet", burst=50.0, per_second=5.0),
        RateLimit("RunInstances", burst=50.0, per_second=2.0),
        RateLimit("CreateLaunchTemplate", burst=50.0, per_second=5.0),
        RateLimit("DeleteLaunchTemplate", burst=50.0, per_second=5.0),
        RateLimit("TerminateInstances", burst=50.0, per_second=5.0),
        RateLimit("CreateTags", burst=50.0, per_second=10.0),
        RateLimit("DescribeInstances", burst=100.0, per_second=20.0),
        RateLimit("DescribeLaunchTemplates", burst=100.0, per_second=20.0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What new nodes must know of their cluster. Empty fields are asked of EKS when first needed."""

    version: str = ""  # "1.36"
    endpoint: str = ""  # CLUSTER_ENDPOINT
    ca_bundle: str = ""  # CLUSTER_CA_BUNDLE, base64
    dns_address: str = ""  # the ClusterIP of kube-system/kube-dns
    service_cidr: str = ""
