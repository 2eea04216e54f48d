"""Every setting, read from the environment once. The only file that reads it.

Names and defaults are upstream's where it has the setting (OPS-1), so that a chart's values carry over; ours begin with
DOVETAIL_. A value that cannot be read is an error that names the variable, rather than a default that was not chosen.
A cloud's own settings are a model of its provider, filled here.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from dovetail.model.pods import SpreadConstraint
from dovetail.model.setting_texts import gates_of, seconds_of
from dovetail.ports.provider import Provider
from dovetail.termination.timing import OWNER_SHARE
from dovetail.worker.providers import DEFAULT, PROVIDERS, provider_named
from dovetail.worker.scheduler_config import default_spread

GATES: Final = {
    "NodeRepair": False,
    "ReservedCapacity": True,
    "SpotToSpotConsolidation": False,
    "NodeOverlay": False,
    "StaticCapacity": False,
    "CapacityBuffer": False,
}

Role = Literal["control", "plan"]
M = TypeVar("M", bound=BaseModel)


class SettingsError(ValueError):
    """A setting that cannot be used; the message names its variable."""


class Settings(BaseModel):
    """All settings of a worker and of the CLI. `of_cloud`: those of the chosen cloud alone, by its own model."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    cluster: str = Field("", alias="CLUSTER_NAME")
    cloud: str = Field(DEFAULT, alias="DOVETAIL_CLOUD")
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
    pass_limit: float = Field(10.0, alias="DOVETAIL_PASS_LIMIT", gt=0)
    search_limit: float = Field(60.0, alias="DOVETAIL_SEARCH_LIMIT", gt=0)
    preferences: Literal["Respect", "Ignore"] = Field("Respect", alias="PREFERENCE_POLICY")
    min_values: Literal["Strict", "BestEffort"] = Field("Strict", alias="MIN_VALUES_POLICY")
    gates: Mapping[str, bool] = Field(default_factory=lambda: dict(GATES), alias="FEATURE_GATES")
    default_spread: tuple[SpreadConstraint, ...] = Field((), alias="SCHEDULER_CONFIG")
    claims_per_pod: int = Field(2, alias="DOVETAIL_CLAIMS_PER_POD", ge=0)
    brake_launches: int = Field(10, alias="DOVETAIL_BRAKE_LAUNCHES", ge=0)
    brake_dollars: float = Field(100.0, alias="DOVETAIL_BRAKE_DOLLARS_PER_HOUR", ge=0)
    owner_share: float = Field(OWNER_SHARE, alias="DOVETAIL_DRAIN_OWNER_SHARE", ge=0, le=1)  # 0: no limit
    max_history: int = Field(0, alias="DOVETAIL_MAX_HISTORY")  # tests: renew the Scheduler this often
    namespace: str = Field("kube-system", alias="SYSTEM_NAMESPACE")  # where the ConfigMap of shortages is
    cluster_endpoint: str = Field("", alias="CLUSTER_ENDPOINT")
    cluster_ca_bundle: str = Field("", alias="CLUSTER_CA_BUNDLE")
    build: str = Field("", alias="TEMPORAL_WORKER_BUILD_ID")
    deployment: str = Field("", alias="TEMPORAL_DEPLOYMENT_NAME")
    of_cloud: Any = Field(default_factory=lambda chosen: provider_named(chosen["cloud"]).settings())

    @field_validator("cloud")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in PROVIDERS:
            raise ValueError(f"no cloud of that name: {value!r}; there is {', '.join(PROVIDERS)}")
        return value

    @field_validator("batch_idle", "batch_max", "pass_limit", "search_limit", mode="before")
    @classmethod
    def _duration(cls, value: Any) -> Any:
        return seconds_of(value)

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

    @field_validator("gates", mode="before")
    @classmethod
    def _gates(cls, value: Any) -> Any:
        return gates_of(value, GATES)

    @property
    def provider(self) -> Provider[Any]:
        """The cloud that was chosen."""
        return provider_named(self.cloud)


def read_settings(environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """The settings of this process and of its cloud; overrides come from the command line and win."""
    source = os.environ if environment is None else environment
    fields = {name: field.alias for name, field in Settings.model_fields.items() if field.alias}
    given: dict[str, Any] = _given(Settings, source)
    given.update({fields[name]: value for name, value in overrides.items() if value is not None})
    settings = _checked(Settings, given)
    model: type[BaseModel] = settings.provider.settings
    return settings.model_copy(update={"of_cloud": _checked(model, _given(model, source))})


def _given(model: type[BaseModel], source: Mapping[str, str]) -> dict[str, Any]:
    """What the environment says of a model's fields."""
    names = [field.alias for field in model.model_fields.values() if field.alias]
    return {name: source[name] for name in names if name in source}


def _checked(model: type[M], given: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{first['loc'][0]}: {first['msg']}") from None
