"""Every setting, read from the environment once. The only file that reads it.

Names and defaults are upstream's if it has the setting (OPS-1), so that a chart's values carry over; ours begin with
DOVETAIL_. An unreadable value is an error that names the variable, rather than a default that nobody chose. A cloud's
own settings are a model of its provider, filled here.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from dovetail.model.pods import SpreadConstraint
from dovetail.model.values.setting_texts import MOST_NODE_COST, gates_of, seconds_of
from dovetail.ports.provider import Provider
from dovetail.settings.askers import askers_of
from dovetail.settings.providers import DEFAULT, PROVIDERS, provider_named
from dovetail.settings.scheduler_config import default_spread
from dovetail.termination.timing import OWNER_SHARE

GATES: Final = {
    "NodeRepair": False,
    "ReservedCapacity": True,
    "SpotToSpotConsolidation": False,
    "NodeOverlay": False,
    "StaticCapacity": False,
    "CapacityBuffer": False,
    "PodDeletionCostManagement": False,
    "TerminateFirstDrift": False,
    "TerminateFirstRepair": False,
}

Role = Literal["control", "plan"]
Sampler = Literal[
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
]
M = TypeVar("M", bound=BaseModel)


class SettingsError(ValueError):
    """A setting that cannot be used; the message names its variable."""


class Settings(BaseModel):
    """All settings of a worker and of the CLI. `of_cloud`: only those of the chosen cloud, by its own model."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    cluster: str = Field("", alias="CLUSTER_NAME")
    cloud: str = Field(DEFAULT, alias="DOVETAIL_CLOUD")
    kubeconfig: Path | None = Field(None, alias="KUBECONFIG")
    world: Path | None = Field(None, alias="DOVETAIL_WORLD")  # an embedded world's file, in place of cluster and cloud
    roles: tuple[Role, ...] = Field(("control", "plan"), alias="DOVETAIL_ROLES")
    metrics_port: int = Field(0, alias="METRICS_PORT")  # 0: no endpoint
    health_port: int = Field(0, alias="HEALTH_PROBE_PORT")  # 0: no endpoint
    listen_address: str = Field("127.0.0.1", alias="DOVETAIL_LISTEN_ADDRESS")  # in a pod: *
    api: bool = Field(True, alias="DOVETAIL_API")  # read-only answers
    api_port: int = Field(0, alias="DOVETAIL_API_PORT")  # 0: on the port of the metrics
    api_from: tuple[str, ...] = Field((), alias="DOVETAIL_API_FROM")  # networks and names, besides the API server
    context: str = Field("", alias="DOVETAIL_CONTEXT")  # of the kubeconfig; empty: the current one
    service: str = Field("", alias="DOVETAIL_SERVICE")  # of the workers, as namespace/name:port, for the command line
    unobserved: bool = Field(False, alias="DISABLE_CLUSTER_STATE_OBSERVABILITY")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", alias="LOG_LEVEL")
    log_format: Literal["", "json", "text"] = Field("", alias="LOG_FORMAT")  # empty: text for a terminal, else JSON
    # Where traces and logs are sent, under OpenTelemetry's names; it reads its other variables itself.
    otlp: str = Field("", alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    otlp_traces: str = Field("", alias="OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    otlp_logs: str = Field("", alias="OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
    otlp_metrics: str = Field("", alias="OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
    otlp_protocol: Literal["", "http/protobuf"] = Field("", alias="OTEL_EXPORTER_OTLP_PROTOCOL")
    otlp_off: bool = Field(False, alias="OTEL_SDK_DISABLED")
    traces_exporter: Literal["otlp", "none"] = Field("otlp", alias="OTEL_TRACES_EXPORTER")
    logs_exporter: Literal["otlp", "none"] = Field("otlp", alias="OTEL_LOGS_EXPORTER")
    metrics_exporter: Literal["otlp", "none"] = Field("otlp", alias="OTEL_METRICS_EXPORTER")
    sampler: Sampler = Field("parentbased_always_on", alias="OTEL_TRACES_SAMPLER")
    sampled_share: float = Field(1.0, alias="OTEL_TRACES_SAMPLER_ARG", ge=0, le=1)
    batch_idle: float = Field(1.0, alias="BATCH_IDLE_DURATION", gt=0)
    batch_max: float = Field(10.0, alias="BATCH_MAX_DURATION", gt=0)
    pass_limit: float = Field(10.0, alias="DOVETAIL_PASS_LIMIT", gt=0)
    search_limit: float = Field(60.0, alias="DOVETAIL_SEARCH_LIMIT", gt=0)
    preferences: Literal["Respect", "Ignore"] = Field("Respect", alias="PREFERENCE_POLICY")
    placement_policy: Literal["Default", "Cost"] = Field("Default", alias="PLACEMENT_POLICY")
    cost_seconds: float = Field(1.0, alias="DOVETAIL_COST_SECONDS", gt=0)
    node_cost: float = Field(0.0, alias="DOVETAIL_NODE_COST", ge=0, le=MOST_NODE_COST, allow_inf_nan=False)
    cost_worth: float = Field(0.7, alias="DOVETAIL_COST_WORTH", ge=0.3, le=100, allow_inf_nan=False)
    cost_keep_places: bool = Field(True, alias="DOVETAIL_COST_KEEP_PLACES")
    min_values: Literal["Strict", "BestEffort"] = Field("Strict", alias="MIN_VALUES_POLICY")
    gates: Mapping[str, bool] = Field(default_factory=lambda: dict(GATES), alias="FEATURE_GATES")
    legacy_repair: bool = Field(False, alias="LEGACY_NODE_REPAIR")  # as until 1.14
    ignore_devices: bool = Field(True, alias="IGNORE_DRA_REQUESTS")  # pods with resource claims get no node
    default_spread: tuple[SpreadConstraint, ...] = Field((), alias="SCHEDULER_CONFIG")
    claims_per_pod: int = Field(2, alias="DOVETAIL_CLAIMS_PER_POD", ge=0)
    brake_launches: int = Field(10, alias="DOVETAIL_BRAKE_LAUNCHES", ge=0)
    brake_dollars: float = Field(100.0, alias="DOVETAIL_BRAKE_DOLLARS_PER_HOUR", ge=0)
    owner_share: float = Field(OWNER_SHARE, alias="DOVETAIL_DRAIN_OWNER_SHARE", ge=0, le=1)  # 0: no limit
    moves: bool = Field(False, alias="DOVETAIL_MOVES")  # pods of one replica, by a roll-out of their Deployment
    prometheus: str = Field("", alias="DOVETAIL_PROMETHEUS_URL")  # asked by roll-outs and policies; empty: none
    prometheus_token: Path | None = Field(None, alias="DOVETAIL_PROMETHEUS_TOKEN_FILE")  # read again while we run
    prometheus_ca: Path | None = Field(None, alias="DOVETAIL_PROMETHEUS_CA_FILE")  # empty: the system's
    keep_way_back: bool = Field(False, alias="DOVETAIL_KEEP_WAY_BACK")
    beside_karpenter: bool = Field(False, alias="DOVETAIL_BESIDE_KARPENTER")  # look, answer, and write nothing
    record: str = Field("", alias="DOVETAIL_RECORD")  # a folder or s3://bucket/prefix; empty: Temporal's alone
    flights: str = Field("", alias="DOVETAIL_FLIGHTS")  # likewise, for kept decisions; empty: nowhere
    flight_megabytes: int = Field(500, alias="DOVETAIL_FLIGHTS_MEGABYTES", gt=0)
    namespace: str = Field("kube-system", alias="SYSTEM_NAMESPACE")  # where the ConfigMap of shortages is
    lease_namespace: str = Field("", alias="LEADER_ELECTION_NAMESPACE")  # of a Karpenter that is installed elsewhere
    cluster_endpoint: str = Field("", alias="CLUSTER_ENDPOINT")
    cluster_ca_bundle: str = Field("", alias="CLUSTER_CA_BUNDLE")
    build: str = Field("", alias="TEMPORAL_WORKER_BUILD_ID")
    deployment: str = Field("", alias="TEMPORAL_DEPLOYMENT_NAME")
    heartbeats: Literal["self-hosted", "cloud"] = Field("self-hosted", alias="DOVETAIL_TEMPORAL_HEARTBEATS")
    api_key_file: Path | None = Field(None, alias="DOVETAIL_TEMPORAL_API_KEY_FILE")  # read again while we run
    payload_codec: str = Field("", alias="DOVETAIL_PAYLOAD_CODEC")  # module:factory
    codec_keys: Path | None = Field(None, alias="DOVETAIL_CODEC_KEYS")  # the folder passed to the factory
    temporal_ui: str = Field("", alias="DOVETAIL_TEMPORAL_UI")  # where people read workflows; empty: no link to them
    pod: str = Field("", alias="POD_NAME")  # in the worker's identity, if it is not the host name
    versioning: Literal["pinned", "auto-upgrade"] = Field("pinned", alias="DOVETAIL_VERSIONING")
    of_cloud: Any = Field(default_factory=lambda chosen: provider_named(chosen["cloud"]).settings())

    @field_validator("cluster")
    @classmethod
    def _plain(cls, value: str) -> str:
        if value and not re.fullmatch(r"[^\s/'\"\\%]+", value):
            raise ValueError(f"no name of a cluster: {value!r}; ids and queries hold it: no slash, %, quote or space")
        return value

    @field_validator("cloud")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in PROVIDERS:
            raise ValueError(f"no cloud of that name: {value!r}; there is {', '.join(PROVIDERS)}")
        return value

    @field_validator("batch_idle", "batch_max", "pass_limit", "search_limit", "cost_seconds", mode="before")
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

    @field_validator("api_from", mode="before")
    @classmethod
    def _askers(cls, value: Any) -> Any:
        return askers_of(value)

    @field_validator(
        "kubeconfig", "world", "api_key_file", "codec_keys", "prometheus_token", "prometheus_ca", mode="before"
    )
    @classmethod
    def _path(cls, value: Any) -> Any:
        return value or None

    @field_validator("cluster_endpoint", "temporal_ui")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if value and not re.match(r"https?://[^/]", value):
            raise ValueError(f"not an absolute URL: {value!r}")
        return value

    @field_validator("prometheus")
    @classmethod
    def _asked(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", value):
            raise ValueError("not an http or https URL without user, question mark and fragment")
        return value

    @field_validator("record", "flights")
    @classmethod
    def _place(cls, value: str) -> str:
        if value and not re.fullmatch(r"/.+|s3://[a-z0-9][a-z0-9.-]+(/[\w./-]*)?", value):
            raise ValueError(f"neither an absolute path nor s3://bucket/prefix: {value!r}")
        return value

    @field_validator("deployment")
    @classmethod
    def _with_build(cls, value: str, info: ValidationInfo) -> str:
        if value and not info.data.get("build"):
            raise ValueError("set without TEMPORAL_WORKER_BUILD_ID; a worker that is versioned needs both")
        return value

    @field_validator("gates", mode="before")
    @classmethod
    def _gates(cls, value: Any) -> Any:
        return gates_of(value, GATES)

    @property
    def repairs_by_disruption(self) -> bool:
        """Whether repair is a disruption. The previous version could not carry out such a plan."""
        return self.gates["NodeRepair"] and not self.legacy_repair and not self.keep_way_back

    @property
    def asked_at(self) -> int:
        """The port of the read-only answers; 0: none."""
        return self.api_port or self.metrics_port

    @property
    def listens_on(self) -> str | None:
        """The address for a server's socket; None: every address, of both families."""
        return None if self.listen_address == "*" else self.listen_address

    @property
    def sends_traces(self) -> bool:
        """Whether a collector is named for them."""
        return bool(self.otlp or self.otlp_traces) and self.traces_exporter == "otlp" and not self.otlp_off

    @property
    def sends_logs(self) -> bool:
        """Whether a collector is named for them."""
        return bool(self.otlp or self.otlp_logs) and self.logs_exporter == "otlp" and not self.otlp_off

    @property
    def sends_metrics(self) -> bool:
        """Whether a collector is named for them."""
        return bool(self.otlp or self.otlp_metrics) and self.metrics_exporter == "otlp" and not self.otlp_off

    @property
    def traces_kept(self) -> float:
        if self.sampler.endswith("always_off"):
            return 0.0
        return self.sampled_share if self.sampler.endswith("traceidratio") else 1.0

    @property
    def provider(self) -> Provider[Any]:
        return provider_named(self.cloud)


def settings_models() -> list[type[BaseModel]]:
    """The models whose aliases are all the variables: the worker's, and those of each cloud."""
    return [Settings, *[provider_named(name).settings for name in PROVIDERS]]


def environment_with(flags: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process, with the flags that win over it."""
    return {**os.environ, **flags}


def read_settings(
    environment: Mapping[str, str] | None = None, *, with_cloud: bool = True, **overrides: Any
) -> Settings:
    """The settings of this process and of its cloud; overrides come from the command line and win. `with_cloud`: False
    for commands that ask only Temporal, and then load no cloud's library."""
    source = os.environ if environment is None else environment
    fields = {name: field.alias for name, field in Settings.model_fields.items() if field.alias}
    given: dict[str, Any] = _given(Settings, source)
    given.update({fields[name]: value for name, value in overrides.items() if value is not None})
    if not with_cloud:
        return _checked(Settings, {**given, "of_cloud": None})
    settings = _checked(Settings, given)
    model: type[BaseModel] = settings.provider.settings
    return settings.model_copy(update={"of_cloud": _checked(model, _given(model, source))})


def _given(model: type[BaseModel], source: Mapping[str, str]) -> dict[str, Any]:
    """The environment's values for a model's fields. Empty means not set, as in Karpenter's charts."""
    names = [field.alias for field in model.model_fields.values() if field.alias]
    return {name: source[name] for name in names if source.get(name)}


def _checked(model: type[M], given: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{first['loc'][0]}: {first['msg']}") from None
