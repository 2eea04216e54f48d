"""AWS's own environment variables: upstream's provider settings (AWS-157), by upstream's names and defaults.

worker/settings.py reads the environment and fills this model; `AwsSettings` is what the adapter works with.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dovetail.adapters.aws.settings import MEMORY_OVERHEAD, AwsSettings
from dovetail.model.setting_texts import gates_of, seconds_of
from dovetail.ports.provider import SharedSettings

GATES: Final = {"NodeClassCEL": False}


class AwsEnvironment(BaseModel):
    """One field a variable."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    region: str = Field("", alias="AWS_REGION")
    endpoint_url: str = Field("", alias="AWS_ENDPOINT_URL")
    isolated_vpc: bool = Field(False, alias="ISOLATED_VPC")
    memory_overhead: float = Field(MEMORY_OVERHEAD, alias="VM_MEMORY_OVERHEAD_PERCENT", ge=0, lt=1)
    interruption_queue: str = Field("", alias="INTERRUPTION_QUEUE")
    reserved_enis: int = Field(0, alias="RESERVED_ENIS", ge=0)
    disable_dry_run: bool = Field(False, alias="DISABLE_DRY_RUN")
    enable_zonal_shift: bool = Field(False, alias="ENABLE_ZONAL_SHIFT")
    eks_control_plane: bool = Field(False, alias="EKS_CONTROL_PLANE")
    image_refresh: float = Field(60.0, alias="AMI_REFRESH_INTERVAL", ge=60)
    subnet_refresh: float = Field(60.0, alias="SUBNET_REFRESH_INTERVAL", ge=60)
    gates: Mapping[str, bool] = Field(default_factory=lambda: dict(GATES), alias="AWS_FEATURE_GATES")

    @field_validator("image_refresh", "subnet_refresh", mode="before")
    @classmethod
    def _duration(cls, value: Any) -> Any:
        return seconds_of(value)

    @field_validator("gates", mode="before")
    @classmethod
    def _gates(cls, value: Any) -> Any:
        return gates_of(value, GATES)


def aws_settings(given: AwsEnvironment, shared: SharedSettings) -> AwsSettings:
    """The adapter's settings."""
    return AwsSettings(
        cluster=shared.cluster,
        region=given.region,
        endpoint_url=given.endpoint_url,
        isolated_vpc=given.isolated_vpc,
        memory_overhead=given.memory_overhead,
        interruption_queue=given.interruption_queue,
        reserved_enis=given.reserved_enis,
        disable_dry_run=given.disable_dry_run,
        enable_zonal_shift=given.enable_zonal_shift,
        image_refresh=given.image_refresh,
        subnet_refresh=given.subnet_refresh,
        reserved_capacity=shared.gates["ReservedCapacity"],
        best_effort_min_values=shared.best_effort_min_values,
        expressions=given.gates["NodeClassCEL"],
    )
