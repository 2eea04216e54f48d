"""What does an EC2NodeClass say (AWS-9, AWS-14, AWS-21 to AWS-25)?

`spec.kubelet` is an open object, as in Karpenter since 1.15: the API server keeps whatever stands there and the
class's own validation judges it (AWS-40), because the kubelet's fields change with every Kubernetes version and may be
expressions.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dovetail.api.aws.ami_selectors import AMI_FAMILIES, AmiSelectorTerms, alias_family
from dovetail.api.aws.devices import (
    BlockDeviceMappings,
    ConnectionTracking,
    CpuOptions,
    EnclaveOptions,
    MetadataOptions,
    NetworkInterfaces,
)
from dovetail.api.aws.ec2_node_class_status import EC2NodeClassStatus
from dovetail.api.aws.selectors import (
    CapacityReservationSelectorTerms,
    PlacementGroupSelector,
    SecurityGroupSelectorTerms,
    SubnetSelectorTerms,
)
from dovetail.api.schema.field_types import Bool, Int32
from dovetail.api.schema.object_meta import Metadata
from dovetail.api.schema.rules import Obeys, Rule, without_nulls
from dovetail.api.schema.structural import ApiModel

AmiFamily = Literal["AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"]
CUSTOM: Literal["Custom"] = "Custom"

# AWS-8: Karpenter writes these itself; a user's value would be overwritten or, worse, hide an instance from its
# cluster.
RESERVED_TAGS = (
    "eks:eks-cluster-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/nodeclaim",
    "karpenter.k8s.aws/ec2nodeclass",
)


def _reserved(tag: str) -> Rule:
    return Rule(
        message=f"tag contains a restricted tag matching {tag}",
        cel=f"!('{tag}' in self)",
        holds=lambda tags: tag not in tags,
    )


_TAG_RULES = Obeys(
    Rule(message="empty tag keys aren't supported", cel="!('' in self)", holds=lambda tags: "" not in tags),
    Rule(
        message="tag contains a restricted tag matching kubernetes.io/cluster/",
        cel="self.all(key, !key.startsWith('kubernetes.io/cluster'))",
        holds=lambda tags: not any(key.startswith("kubernetes.io/cluster") for key in tags),
    ),
    *(_reserved(tag) for tag in RESERVED_TAGS),
)


def _not_empty(field: str) -> Obeys:
    return Obeys(Rule(message=f"{field} cannot be empty", cel="self != ''", holds=lambda text: text != ""))


def _family_fits(alias: str, family: str) -> Rule:
    """AWS-14: beside an alias, amiFamily is the alias's own family or Custom."""
    used = f"self.amiSelectorTerms.exists(term, has(term.alias) && term.alias.split('@')[0] == '{alias}')"
    return Rule(
        message=f"if set, amiFamily must be '{family}' or 'Custom' when using {_article(family)} alias",
        cel=f"!has(self.amiFamily) || self.amiFamily in ['{family}', 'Custom'] || !{used}",
        holds=lambda spec: spec.ami_family in (None, family, CUSTOM) or alias not in spec.ami_aliases,
    )


def _article(family: str) -> str:
    return f"{'an' if family.startswith('A') else 'a'} {family}"


class EC2NodeClassSpec(ApiModel):
    """How the instances are launched."""

    rules = (
        Rule(
            message="must specify exactly one of ['role', 'instanceProfile']",
            cel="has(self.role) != has(self.instanceProfile)",
            holds=lambda spec: (spec.role is None) != (spec.instance_profile is None),
        ),
        *(_family_fits(alias, family) for alias, family in AMI_FAMILIES.items()),
        Rule(
            message="must specify amiFamily if amiSelectorTerms does not contain an alias",
            cel="has(self.amiFamily) || self.amiSelectorTerms.exists(term, has(term.alias))",
            holds=lambda spec: spec.ami_family is not None or bool(spec.ami_aliases),
        ),
    )

    subnet_selector_terms: SubnetSelectorTerms
    """Which subnets instances may be launched into."""
    security_group_selector_terms: SecurityGroupSelectorTerms
    """Which security groups instances get."""
    ami_selector_terms: AmiSelectorTerms
    """Which images instances may be started from."""
    ami_family: AmiFamily | None = None
    """The format of the user data and the default disks; follows from the alias if there is one."""
    role: Annotated[str, _not_empty("role")] | None = None
    """The IAM role of the nodes; an instance profile is made for it."""
    instance_profile: Annotated[str, _not_empty("instanceProfile")] | None = None
    """An instance profile that exists already, instead of a role."""
    capacity_reservation_selector_terms: CapacityReservationSelectorTerms | None = None
    """Which capacity reservations launches may use."""
    placement_group_selector: PlacementGroupSelector | None = None
    """The placement group of the instances."""
    tags: Annotated[dict[str, str], BeforeValidator(without_nulls), _TAG_RULES] | None = None
    """Tags of everything that is made in the cloud for the class."""
    user_data: str | None = None
    """What the instances run at their start; Karpenter's own part is merged into it."""
    block_device_mappings: BlockDeviceMappings | None = None
    """The instances' disks."""
    instance_store_policy: Literal["RAID0"] | None = None
    """What becomes of the disks that an instance type brings along."""
    metadata_options: Annotated[
        MetadataOptions,
        Field(
            json_schema_extra={
                "default": {
                    "httpEndpoint": "enabled",
                    "httpProtocolIPv6": "disabled",
                    "httpPutResponseHopLimit": 1,
                    "httpTokens": "required",
                }
            }
        ),
    ] = Field(default_factory=MetadataOptions)
    """How instances reach their metadata service."""
    kubelet: (
        Annotated[
            dict[str, Any],
            Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True, "additionalProperties": None}),
        ]
        | None
    ) = None
    """The kubelet's configuration; any of its fields."""
    network_interfaces: NetworkInterfaces | None = None
    """The instances' network interfaces."""
    connection_tracking: ConnectionTracking | None = None
    """How long the network remembers idle connections."""
    cpu_options: CpuOptions | None = None
    """How instances present their processors."""
    enclave_options: EnclaveOptions | None = None
    """Whether instances may run Nitro Enclaves; they may not if absent."""
    associate_public_ip_address: Bool | None = Field(default=None, alias="associatePublicIPAddress")
    """Whether instances get a public address; the subnet decides if absent."""
    ip_prefix_count: Annotated[Int32, Field(ge=0)] | None = None
    """How many IPv4 prefixes the network interface gets."""
    detailed_monitoring: Bool | None = None
    """Whether instances report to CloudWatch each minute."""
    context: str | None = None
    """Passed on to the launch as it is."""

    @property
    def ami_aliases(self) -> frozenset[str]:
        """The families named by aliases, as written there: al2023, bottlerocket, …"""
        return frozenset(alias_family(term.alias) for term in self.ami_selector_terms if term.alias is not None)

    @property
    def wants_enclaves(self) -> bool:
        """Whether instances are launched with Nitro Enclaves."""
        return self.enclave_options is not None and self.enclave_options.enabled


class EC2NodeClass(ApiModel):
    """An EC2NodeClass says how the nodes of a pool are launched as EC2 instances."""

    api_version: Literal["karpenter.k8s.aws/v1"]
    kind: Literal["EC2NodeClass"]
    metadata: Metadata
    spec: EC2NodeClassSpec
    status: EC2NodeClassStatus | None = None
