"""AWS's own environment variables: upstream's provider settings (AWS-157), by upstream's names and defaults.

dovetail/settings/settings.py reads the environment and fills this model; `AwsSettings` is what the adapter works with.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dovetail.adapters.aws.settings import MEMORY_OVERHEAD, AwsSettings
from dovetail.model.values.setting_texts import gates_of, seconds_of
from dovetail.ports.provider import SharedSettings

GATES: Final = {"LaunchGroups": False, "NodeClassCEL": False, "RebootForRepair": False}


class AwsEnvironment(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    region: str = Field("", alias="AWS_REGION")
    """the region; without it as botocore finds it"""
    endpoint_url: str = Field("", alias="AWS_ENDPOINT_URL")
    """where AWS is, for a server of one's own"""
    isolated_vpc: bool = Field(False, alias="ISOLATED_VPC")
    """`true`: no price list, no clean-up of instance profiles; prices are the table that ships"""
    memory_overhead: float = Field(MEMORY_OVERHEAD, alias="VM_MEMORY_OVERHEAD_PERCENT", ge=0, lt=1)
    """the share of memory that nodes lack, until a node of a type has shown its own"""
    interruption_queue: str = Field("", alias="INTERRUPTION_QUEUE")
    """the name of the queue of warnings; without one none is read. EC2's own checks of instances are looked at every
    minute either way"""
    reserved_enis: int = Field(0, alias="RESERVED_ENIS", ge=0)
    """network interfaces of each node that pods cannot have"""
    disable_dry_run: bool = Field(False, alias="DISABLE_DRY_RUN")
    """`true`: classes are ready without having asked EC2 whether a launch would be allowed"""
    enable_zonal_shift: bool = Field(False, alias="ENABLE_ZONAL_SHIFT")
    """`true`: read shifts every 30 s; the cluster must be registered, or the worker does not start"""
    eks_control_plane: bool = Field(False, alias="EKS_CONTROL_PLANE")
    """`true`: ask EKS for the version instead of the API server (every five minutes either way)"""
    image_refresh: float = Field(60.0, alias="AMI_REFRESH_INTERVAL", ge=60)
    """how often images are looked up, at least `1m`"""
    subnet_refresh: float = Field(60.0, alias="SUBNET_REFRESH_INTERVAL", ge=60)
    """how often subnets are looked up, at least `1m`"""
    security_group_refresh: float = Field(60.0, alias="SECURITY_GROUP_REFRESH_INTERVAL", ge=60)
    """how often security groups are looked up, at least `1m`"""
    gates: Mapping[str, bool] = Field(default_factory=lambda: dict(GATES), alias="AWS_FEATURE_GATES")
    """`NodeClassCEL=true`: formulas in `spec.kubelet`. `RebootForRepair=true`, where nodes are repaired: an instance is
    rebooted before its node is replaced, where its fault is one that a reboot clears. `LaunchGroups=true`, once every
    worker has this version: NodeClaims that ask for the same at the same time are launched by one call"""

    @field_validator("image_refresh", "subnet_refresh", "security_group_refresh", mode="before")
    @classmethod
    def _duration(cls, value: Any) -> Any:
        return seconds_of(value)

    @field_validator("gates", mode="before")
    @classmethod
    def _gates(cls, value: Any) -> Any:
        return gates_of(value, GATES)


def aws_settings(given: AwsEnvironment, shared: SharedSettings) -> AwsSettings:
    return AwsSettings(
        cluster=shared.cluster,
        cluster_uid=shared.cluster_uid,
        **given.model_dump(exclude={"gates", "eks_control_plane"}),
        reserved_capacity=shared.gates["ReservedCapacity"],
        best_effort_min_values=shared.best_effort_min_values,
        expressions=given.gates["NodeClassCEL"],
        launch_groups=given.gates["LaunchGroups"],
        reboots=given.gates["RebootForRepair"],
        legacy_repair=shared.legacy_repair,
    )
