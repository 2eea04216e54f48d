"""Every setting, read from the environment once. The only file that reads it.

Names and defaults are upstream's where it has the setting (OPS-1), so that a chart's values carry over; ours begin with
DOVETAIL_. A value that cannot be read is an error that names the variable, rather than a default that was not chosen.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from dovetail.model.durations import parse_seconds
from dovetail.model.pods import SpreadConstraint
from dovetail.worker.scheduler_config import default_spread

# The part of Go's durations that settings take: no sign, and no unit below a millisecond.
_DURATION: Final = re.compile(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+")

GATES: Final = {
    "NodeRepair": False,
    "ReservedCapacity": True,
    "SpotToSpotConsolidation": False,
    "NodeOverlay": False,
    "StaticCapacity": False,
    "CapacityBuffer": False,
}

AWS_GATES: Final = {"NodeClassCEL": False}

Role = Literal["control", "plan"]


class SettingsError(ValueError):
    """A setting that cannot be used; the message names its variable."""


class Settings(BaseModel):
    """All settings of a worker and of the CLI."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    cluster: str = Field("", alias="CLUSTER_NAME")
    kubeconfig: Path | None = Field(None, alias="KUBECONFIG")
    world: Path | None = Field(None, alias="DOVETAIL_WORLD")  # an embedded world's file, in place of cluster and cloud
    roles: tuple[Role, ...] = Field(("control", "plan"), alias="DOVETAIL_ROLES")
    metrics_port: int = Field(0, alias="METRICS_PORT")  # 0: no endpoint
    health_port: int = Field(0, alias="HEALTH_PROBE_PORT")  # 0: no endpoint
    listen_address: str = Field("127.0.0.1", alias="DOVETAIL_LISTEN_ADDRESS")  # in a pod: 0.0.0.0
    unobserved: bool = Field(False, alias="DISABLE_CLUSTER_STATE_OBSERVABILITY")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", alias="LOG_LEVEL")
    batch_idle: float = Field(1.0, alias="BATCH_IDLE_DURATION", gt=0)
    batch_max: float = Field(10.0, alias="BATCH_MAX_DURATION", gt=0)
    preferences: Literal["Respect", "Ignore"] = Field("Respect", alias="PREFERENCE_POLICY")
    min_values: Literal["Strict", "BestEffort"] = Field("Strict", alias="MIN_VALUES_POLICY")
    gates: Mapping[str, bool] = Field(default_factory=lambda: dict(GATES), alias="FEATURE_GATES")
    default_spread: tuple[SpreadConstraint, ...] = Field((), alias="SCHEDULER_CONFIG")
    max_history: int = Field(0, alias="DOVETAIL_MAX_HISTORY")  # tests: renew the Scheduler this often
    namespace: str = Field("kube-system", alias="SYSTEM_NAMESPACE")  # where the ConfigMap of shortages is
    cluster_endpoint: str = Field("", alias="CLUSTER_ENDPOINT")
    cluster_ca_bundle: str = Field("", alias="CLUSTER_CA_BUNDLE")
    region: str = Field("", alias="AWS_REGION")
    endpoint_url: str = Field("", alias="AWS_ENDPOINT_URL")
    isolated_vpc: bool = Field(False, alias="ISOLATED_VPC")
    memory_overhead: float = Field(0.075, alias="VM_MEMORY_OVERHEAD_PERCENT", ge=0, lt=1)
    interruption_queue: str = Field("", alias="INTERRUPTION_QUEUE")
    reserved_enis: int = Field(0, alias="RESERVED_ENIS", ge=0)
    disable_dry_run: bool = Field(False, alias="DISABLE_DRY_RUN")
    enable_zonal_shift: bool = Field(False, alias="ENABLE_ZONAL_SHIFT")
    eks_control_plane: bool = Field(False, alias="EKS_CONTROL_PLANE")
    image_refresh: float = Field(60.0, alias="AMI_REFRESH_INTERVAL", ge=60)
    subnet_refresh: float = Field(60.0, alias="SUBNET_REFRESH_INTERVAL", ge=60)
    aws_gates: Mapping[str, bool] = Field(default_factory=lambda: dict(AWS_GATES), alias="AWS_FEATURE_GATES")
    build: str = Field("", alias="TEMPORAL_WORKER_BUILD_ID")
    deployment: str = Field("", alias="TEMPORAL_DEPLOYMENT_NAME")

    @field_validator("batch_idle", "batch_max", "image_refresh", "subnet_refresh", mode="before")
    @classmethod
    def _duration(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if not _DURATION.fullmatch(value):
            raise ValueError(f"not a duration: {value!r}")
        return parse_seconds(value)

    @field_validator("default_spread", mode="before")
    @classmethod
    def _spread(cls, value: Any) -> Any:
        return default_spread(value) if isinstance(value, str) else value

    @field_validator("roles", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("kubeconfig", "world", mode="before")
    @classmethod
    def _path(cls, value: Any) -> Any:
        return value or None

    @field_validator("cluster_endpoint")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if value and not re.match(r"https?://[^/]", value):
            raise ValueError(f"not an absolute URL: {value!r}")
        return value

    @field_validator("gates", "aws_gates", mode="before")
    @classmethod
    def _gates(cls, value: Any, info: ValidationInfo) -> Any:
        """Unnamed gates keep their defaults, unknown ones are ignored (OPS-1)."""
        if not isinstance(value, str):
            return value
        gates = dict(GATES if info.field_name == "gates" else AWS_GATES)
        for part in filter(None, value.split(",")):
            name, mark, state = part.partition("=")
            if not mark or state.lower() not in {"true", "false"}:
                raise ValueError(f"not Name=true or Name=false: {part!r}")
            if name.strip() in gates:
                gates[name.strip()] = state.lower() == "true"
        return gates


def read_settings(environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """The settings of this process; overrides come from the command line and win."""
    source = os.environ if environment is None else environment
    names = {field.alias for field in Settings.model_fields.values() if field.alias}
    given: dict[str, Any] = {name: source[name] for name in names if name in source}
    fields = {name: field.alias for name, field in Settings.model_fields.items()}
    given.update({str(fields[name]): value for name, value in overrides.items() if value is not None})
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{first['loc'][0]}: {first['msg']}") from None
