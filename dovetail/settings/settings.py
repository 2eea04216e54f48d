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
    """required; the cluster's name in every tag, launch template, instance profile and workflow id"""
    cloud: str = Field(DEFAULT, alias="DOVETAIL_CLOUD")
    """the cloud in which nodes are launched; the settings of another cloud are its own"""
    kubeconfig: Path | None = Field(None, alias="KUBECONFIG")
    """the cluster's kubeconfig; without it the pod's service account"""
    world: Path | None = Field(None, alias="DOVETAIL_WORLD")
    """a simulated world's file, in place of a cluster and its cloud (`dovetail demo`)"""
    roles: tuple[Role, ...] = Field(("control", "plan"), alias="DOVETAIL_ROLES")
    """which queues this worker serves: `plan` decides, `control` acts"""
    metrics_port: int = Field(0, alias="METRICS_PORT")
    """where `/metrics` is served; `0`: nowhere. The chart sets 8080"""
    health_port: int = Field(0, alias="HEALTH_PROBE_PORT")
    """where `/healthz` and `/readyz` are served; `0`: nowhere. The chart sets 8081"""
    listen_address: str = Field("127.0.0.1", alias="DOVETAIL_LISTEN_ADDRESS")
    """the address of all of them; `*`: every address, of IPv4 and IPv6. The chart sets it"""
    api: bool = Field(True, alias="DOVETAIL_API")
    """`false`: no questions are answered under `/api/v1`"""
    api_port: int = Field(0, alias="DOVETAIL_API_PORT")
    """where `/api/v1` is served; `0`: on the port of the metrics. The chart sets 8082"""
    api_from: tuple[str, ...] = Field((), alias="DOVETAIL_API_FROM")
    """who may ask there besides the API server's proxy and this machine: networks such as `10.0.0.0/8`, and names of
    hosts by which a browser may call a worker; `0.0.0.0/0,::/0`: everybody"""
    context: str = Field("", alias="DOVETAIL_CONTEXT")
    """for commands: the context of the kubeconfig; without it the current one"""
    service: str = Field("", alias="DOVETAIL_SERVICE")
    """for commands: the workers' Service, as `NAMESPACE/NAME:PORT`"""
    unobserved: bool = Field(False, alias="DISABLE_CLUSTER_STATE_OBSERVABILITY")
    """`true`: leave out the gauges of nodes, pods and conditions"""
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", alias="LOG_LEVEL")
    """`debug`, `info`, `warning` or `error`"""
    log_format: Literal["", "json", "text"] = Field("", alias="LOG_FORMAT")
    """`json` or `text`; without it text where standard output is a terminal, else JSON"""
    # Where traces and logs are sent, under OpenTelemetry's names; it reads its other variables itself.
    otlp: str = Field("", alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    """a collector, to which traces, metrics and the log are sent; needs the extra `otlp`"""
    otlp_traces: str = Field("", alias="OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    """the same for traces alone: the whole address"""
    otlp_logs: str = Field("", alias="OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
    """the same for lines of the log alone: the whole address"""
    otlp_metrics: str = Field("", alias="OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
    """the same for metrics alone: the whole address"""
    otlp_protocol: Literal["", "http/protobuf"] = Field("", alias="OTEL_EXPORTER_OTLP_PROTOCOL")
    """`http/protobuf`, the only one that there is"""
    otlp_off: bool = Field(False, alias="OTEL_SDK_DISABLED")
    """`true`: nothing is sent to a collector"""
    traces_exporter: Literal["otlp", "none"] = Field("otlp", alias="OTEL_TRACES_EXPORTER")
    """`none`: no traces are sent although a collector is named"""
    logs_exporter: Literal["otlp", "none"] = Field("otlp", alias="OTEL_LOGS_EXPORTER")
    """`none`: no lines of the log are sent although a collector is named"""
    metrics_exporter: Literal["otlp", "none"] = Field("otlp", alias="OTEL_METRICS_EXPORTER")
    """`none`: no metrics are sent although a collector is named"""
    sampler: Sampler = Field("parentbased_always_on", alias="OTEL_TRACES_SAMPLER")
    """which traces are kept: `…always_on`, `…always_off`, or by `…traceidratio` a share"""
    sampled_share: float = Field(1.0, alias="OTEL_TRACES_SAMPLER_ARG", ge=0, le=1)
    """that share"""
    batch_idle: float = Field(1.0, alias="BATCH_IDLE_DURATION", gt=0)
    """pods are placed once no further pending pod has come for this long"""
    batch_max: float = Field(10.0, alias="BATCH_MAX_DURATION", gt=0)
    """how long to wait for further pending pods at most"""
    pass_limit: float = Field(10.0, alias="DOVETAIL_PASS_LIMIT", gt=0)
    """how long one pass may place pods; it answers with what it has, and the next begins with the pods not reached.
    What places pods for an answer (`plan`, `explain pod`, the page) ends by it too, and says what was not reached"""
    search_limit: float = Field(60.0, alias="DOVETAIL_SEARCH_LIMIT", gt=0)
    """how long one round, or one answer to a question, may search for nodes to disrupt"""
    preferences: Literal["Respect", "Ignore"] = Field("Respect", alias="PREFERENCE_POLICY")
    """`Ignore`: preferences of pods do not count"""
    placement_policy: Literal["Default", "Cost"] = Field("Default", alias="PLACEMENT_POLICY")
    """`Cost`: cheaper nodes are looked for after each pass ([cost](../cost.md))"""
    cost_seconds: float = Field(1.0, alias="DOVETAIL_COST_SECONDS", gt=0)
    """how long to look for them, in processor time, for each thousand pods begun"""
    node_cost: float = Field(0.0, alias="DOVETAIL_NODE_COST", ge=0, le=MOST_NODE_COST, allow_inf_nan=False)
    """dollars an hour that a node costs beside its instance, for that policy"""
    cost_worth: float = Field(0.7, alias="DOVETAIL_COST_WORTH", ge=0.3, le=100, allow_inf_nan=False)
    """for it: percent of a NodePool's price to save for each percent of the pool that is moved"""
    cost_keep_places: bool = Field(True, alias="DOVETAIL_COST_KEEP_PLACES")
    """pods are nominated for the nodes that the policy `Cost` makes for them"""
    min_values: Literal["Strict", "BestEffort"] = Field("Strict", alias="MIN_VALUES_POLICY")
    """`BestEffort`: minimum values give way where nothing else fits"""
    gates: Mapping[str, bool] = Field(default_factory=lambda: dict(GATES), alias="FEATURE_GATES")
    """`Name=true,Name=false`; gates that are not named keep their defaults, unknown ones are warned about.
    `ReservedCapacity=false`: reservations are neither used nor opted out of. `PodDeletionCostManagement=true`:
    ReplicaSets that shrink give up pods on nodes first that disruption would take next (it takes the right of
    deletion-costs.yaml)"""
    legacy_repair: bool = Field(False, alias="LEGACY_NODE_REPAIR")
    """`true`, with the gate NodeRepair: unhealthy nodes are deleted at once, as until Karpenter 1.14, whatever budgets
    and pods say; else they are replaced first, as a disruption"""
    ignore_devices: bool = Field(True, alias="IGNORE_DRA_REQUESTS")
    """`false`: pods with resource claims are placed by their devices (docs/guides/devices.md); else they get no node"""
    default_spread: tuple[SpreadConstraint, ...] = Field((), alias="SCHEDULER_CONFIG")
    """the kube-scheduler's default spread constraints, as YAML or JSON in Karpenter's form"""
    claims_per_pod: int = Field(2, alias="DOVETAIL_CLAIMS_PER_POD", ge=0)
    """how many NodeClaims are made within an hour for one pod that runs on none of their nodes; `0`: any number"""
    brake_launches: int = Field(10, alias="DOVETAIL_BRAKE_LAUNCHES", ge=0)
    """after how many launches within an hour that came to nothing launching stops for an owner, a namespace or a
    NodePool; `0`: never"""
    brake_dollars: float = Field(100.0, alias="DOVETAIL_BRAKE_DOLLARS_PER_HOUR", ge=0)
    """the same in dollars an hour added within ten minutes; `0`: never"""
    owner_share: float = Field(OWNER_SHARE, alias="DOVETAIL_DRAIN_OWNER_SHARE", ge=0, le=1)
    """the share of one owner's pods (a ReplicaSet's, a StatefulSet's) that drains may have on their way at once,
    without any PodDisruptionBudget; `0`: no limit"""
    moves: bool = Field(False, alias="DOVETAIL_MOVES")
    """`true`: a Deployment of one replica that says `dovetail.sh/move: restart` is rolled out anew where its pod must
    leave, so that another is available first; needs `deploy/kubernetes/moves.yaml`"""
    prometheus: str = Field("", alias="DOVETAIL_PROMETHEUS_URL")
    """the Prometheus, or what speaks its API, that gates of roll-outs and the health of policies ask; without it they
    are Unknown, and hold"""
    prometheus_token: Path | None = Field(None, alias="DOVETAIL_PROMETHEUS_TOKEN_FILE")
    """a file with the bearer token for it, read again at each question"""
    prometheus_ca: Path | None = Field(None, alias="DOVETAIL_PROMETHEUS_CA_FILE")
    """a file with the certificates by which it is known, in place of the system's"""
    keep_way_back: bool = Field(False, alias="DOVETAIL_KEEP_WAY_BACK")
    """`true` during the first step of an upgrade: workflows begin no change that the previous version does not know"""
    beside_karpenter: bool = Field(False, alias="DOVETAIL_BESIDE_KARPENTER")
    """`true`: this worker looks, plans and answers questions, and writes nothing: not to the cluster, the cloud or
    Temporal, whether a Karpenter runs or not"""
    record: str = Field("", alias="DOVETAIL_RECORD")
    """where the record of launches, disruptions and terminations is kept beyond Temporal's retention: a folder that all
    workers share, or `s3://bucket/prefix`; without it Temporal's record is all that there is"""
    flights: str = Field("", alias="DOVETAIL_FLIGHTS")
    """where the inputs of decisions are kept, for `dovetail replay` and `explain … --at`: a folder that all workers
    share, or `s3://bucket/prefix`; without it nowhere"""
    flight_megabytes: int = Field(500, alias="DOVETAIL_FLIGHTS_MEGABYTES", gt=0)
    """how large they may grow together; the oldest are deleted"""
    namespace: str = Field("kube-system", alias="SYSTEM_NAMESPACE")
    """the workers' own namespace, where the ConfigMap of shortages of capacity is"""
    lease_namespace: str = Field("", alias="LEADER_ELECTION_NAMESPACE")
    """the namespace of Karpenter's Lease where it is neither `karpenter`, `kube-system` nor the workers' own: no step
    is taken while the Lease `karpenter-leader-election` is held in one of these, and in no other does it count. Who may
    write Leases there stops every worker"""
    cluster_endpoint: str = Field("", alias="CLUSTER_ENDPOINT")
    """where new nodes find the API server, an absolute URL; without it the cloud is asked"""
    cluster_ca_bundle: str = Field("", alias="CLUSTER_CA_BUNDLE")
    """the certificate by which new nodes know the API server, base64; without it the worker's own. Part of a
    NodeClass's hash: a change drifts every node"""
    build: str = Field("", alias="TEMPORAL_WORKER_BUILD_ID")
    """the worker's version for Temporal's worker deployments: the image's digest or tag"""
    deployment: str = Field("", alias="TEMPORAL_DEPLOYMENT_NAME")
    """the deployment that this version belongs to: one name per cluster, always the same"""
    heartbeats: Literal["self-hosted", "cloud"] = Field("self-hosted", alias="DOVETAIL_TEMPORAL_HEARTBEATS")
    """`cloud`: waits send so few heartbeats that an idle cluster costs less than one action a minute"""
    api_key_file: Path | None = Field(None, alias="DOVETAIL_TEMPORAL_API_KEY_FILE")
    """a file with the API key that is read again while the worker runs; comes before `TEMPORAL_API_KEY`"""
    payload_codec: str = Field("", alias="DOVETAIL_PAYLOAD_CODEC")
    """`module:factory` that encodes what Temporal keeps; workers and commands need the same"""
    codec_keys: Path | None = Field(None, alias="DOVETAIL_CODEC_KEYS")
    """the folder of keys that the factory is given"""
    temporal_ui: str = Field("", alias="DOVETAIL_TEMPORAL_UI")
    """the address of Temporal's Web UI as people open it, to which the web page links workflows"""
    pod: str = Field("", alias="POD_NAME")
    """the worker's name in Temporal's lists where its host name is not its own (`hostNetwork`)"""
    versioning: Literal["pinned", "auto-upgrade"] = Field("pinned", alias="DOVETAIL_VERSIONING")
    """for a worker with a version: `pinned` workflows end on the version that they began on, `auto-upgrade` ones move
    with their next task"""
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
