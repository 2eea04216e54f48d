"""Settings as flags, by Karpenter's names, and what a worker says of its settings when it starts (OPS-1, OPS-2)."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.settings.deciding import disruption_settings
from dovetail.settings.flags import flag_of, flags_of, known_flags, words_of
from dovetail.settings.settings import SettingsError, read_settings, settings_models
from dovetail.settings.without_effect import WITHOUT_EFFECT
from dovetail.telemetry.log.line import bounded
from dovetail.worker.start_report import start_report

# Karpenter's flags, of its core and of its AWS provider: a fact, as its reference of settings has them.
# fmt: off
UPSTREAMS = [
    "ami-refresh-interval", "aws-feature-gates", "batch-idle-duration", "batch-max-duration", "cluster-ca-bundle",
    "cluster-endpoint", "cluster-name", "cpu-requests", "disable-cluster-state-observability",
    "disable-controller-warmup", "disable-dry-run", "disable-leader-election", "eks-control-plane",
    "enable-profiling", "enable-zonal-shift", "feature-gates", "health-probe-port", "ignore-dra-requests",
    "interruption-queue", "isolated-vpc", "karpenter-service", "kube-client-burst", "kube-client-qps",
    "leader-election-name", "leader-election-namespace", "log-error-output-paths", "log-level", "log-output-paths",
    "memory-limit", "metrics-port", "min-values-policy", "preference-policy", "reserved-enis", "scheduler-config",
    "subnet-refresh-interval", "vm-memory-overhead-percent",
]
# fmt: on


@pytest.mark.parametrize("flag", UPSTREAMS)
def test_every_flag_of_karpenter_is_taken_and_is_its_variables(flag: str) -> None:
    variable, _ = known_flags()[f"--{flag}"]
    assert variable == flag.upper().replace("-", "_")


def test_flags_are_read_as_go_reads_them_and_win_over_the_environment() -> None:
    flags = flags_of(["--isolated-vpc", "--batch-max-duration=30s", "--log-level", "debug", "--disable-dry-run=false"])
    found = read_settings({"CLUSTER_NAME": "c", "LOG_LEVEL": "error", "DISABLE_DRY_RUN": "true", **flags})
    assert (found.log_level, found.batch_max) == ("debug", 30.0)
    assert (found.of_cloud.isolated_vpc, found.of_cloud.disable_dry_run) == (True, False)


def test_a_setting_of_ours_has_a_flag_without_the_prefix() -> None:
    assert flags_of(["--claims-per-pod", "4"]) == {"DOVETAIL_CLAIMS_PER_POD": "4"}


def test_no_two_variables_share_a_flag() -> None:
    variables = [field.alias for model in settings_models() for field in model.model_fields.values() if field.alias]
    variables += [one.variable for one in WITHOUT_EFFECT]
    assert len({flag_of(variable) for variable in variables}) == len(variables)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--batch-max-durations", "1s"], "--batch-max-durations: .* did you mean --batch-max-duration"),
        (["stray"], "stray: there is no such flag"),
        (["--log-level"], "--log-level: a value is missing"),
    ],
)
def test_a_flag_that_is_none_is_named(words: list[str], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        flags_of(words)


def test_the_command_takes_flags_and_names_the_one_that_is_wrong() -> None:
    command = [sys.executable, "-m", "dovetail.cli.main", "worker", "--cluster", "c", "--log-level", "loud"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "LOG_LEVEL" in done.stderr


def report(**source: str) -> list[tuple[int, str]]:
    given = {"CLUSTER_NAME": "c", **source}
    return list(start_report(read_settings(given), given))


def besides(said: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """What is said of other things than the values of settings."""
    return [line for line in said if not line[1].startswith("settings: ")]


def test_the_settings_in_effect_are_in_the_log_with_every_value_and_nothing_is_cut() -> None:
    given = {"INTERRUPTION_QUEUE": "q", "BATCH_MAX_DURATION": "1m", "CLUSTER_CA_BUNDLE": "x" * 900}
    long = dict.fromkeys(("DOVETAIL_RECORD", "DOVETAIL_FLIGHTS"), "/" + "v" * 78)
    said = [line for line in report(**given, **long) if line[1].startswith("settings: ")]

    assert len(said) > 1 and {level for level, _ in said} == {logging.INFO}
    assert all(bounded(text) == text for _, text in said)
    words = {word for _, text in said for word in text.split()}
    assert {"CLUSTER_NAME=c", "INTERRUPTION_QUEUE=q", "BATCH_MAX_DURATION=60"} <= words
    assert {f"{name}={value}" for name, value in long.items()} <= words
    assert any("CLUSTER_CA_BUNDLE=<900 characters>" in text for _, text in said)


def test_a_gate_that_nobody_knows_is_warned_about() -> None:
    said = report(FEATURE_GATES="NodeRepiar=true,NodeRepair=true", AWS_FEATURE_GATES="Drift=true")
    warnings = [text for level, text in said if level == logging.WARNING]
    assert warnings == [
        "FEATURE_GATES: there is no gate 'NodeRepiar', it has no effect; did you mean NodeRepair?",
        (
            "AWS_FEATURE_GATES: there is no gate 'Drift', it has no effect; "
            "there are LaunchGroups, NodeClassCEL, RebootForRepair"
        ),
    ]


def test_a_gate_of_karpenters_that_does_nothing_here_is_known_and_loud_where_it_is_open() -> None:
    """Karpenter 1.15's chart writes all of them into its Deployment, closed."""
    core = "ReservedCapacity=true,TerminateFirstDrift=false,TerminateFirstRepair=false"
    said = besides(report(FEATURE_GATES=core, AWS_FEATURE_GATES="DRANVIDIAGPU=false,DRAEFA=true"))
    levels = {text.partition(" has no effect: ")[0]: level for level, text in said}
    assert levels == {
        "AWS_FEATURE_GATES: DRANVIDIAGPU=false": logging.INFO,
        "AWS_FEATURE_GATES: DRAEFA=true": logging.WARNING,
    }


@pytest.mark.parametrize("static", [True, False])
def test_a_node_leaves_first_only_where_static_pools_are_filled_and_a_gate_without_that_is_loud(static: bool) -> None:
    """Else each static NodePool at its limit loses a node for good."""
    gates = f"TerminateFirstDrift=true,TerminateFirstRepair=true,StaticCapacity={str(static).lower()}"
    found = disruption_settings(read_settings({"CLUSTER_NAME": "c", "FEATURE_GATES": gates})).terminates_first

    assert found == ({DisruptionReason.DRIFTED, DisruptionReason.UNHEALTHY} if static else frozenset())
    loud = [text.partition(" needs ")[0] for level, text in report(FEATURE_GATES=gates) if level == logging.WARNING]
    gated = [f"FEATURE_GATES: {name}=true" for name in ("TerminateFirstDrift", "TerminateFirstRepair")]
    assert loud == ([] if static else gated)


def test_repair_is_a_disruption_unless_the_way_until_1_14_is_asked_for_or_to_be_kept() -> None:
    def of(**given: str) -> bool:
        return read_settings({"FEATURE_GATES": "NodeRepair=true", **given}).repairs_by_disruption

    assert (of(), of(LEGACY_NODE_REPAIR="true"), of(DOVETAIL_KEEP_WAY_BACK="true")) == (True, False, False)
    assert not of(FEATURE_GATES="NodeRepair=false")


def test_a_variable_without_effect_is_named_with_its_reason_and_loudly_where_it_asks_for_something() -> None:
    said = report(MEMORY_LIMIT="-1", KUBE_CLIENT_QPS="200", LOG_OUTPUT_PATHS="")
    levels = {text.partition("=")[0]: level for level, text in besides(said)}
    assert levels == {
        "MEMORY_LIMIT": logging.INFO,
        "KUBE_CLIENT_QPS": logging.WARNING,
    }
    assert all(" has no effect: " in text for _, text in besides(said))


@pytest.mark.parametrize(
    ("address", "profile", "advised"),
    [
        ("dovetail.a1b2c.tmprl.cloud:7233", "", True),
        ("dovetail.a1b2c.tmprl.cloud:7233", "self-hosted", False),
        ("temporal.example:7233", "", False),
    ],
)
def test_the_profile_for_temporal_cloud_is_advised_where_none_is_chosen(
    address: str, profile: str, advised: bool
) -> None:
    said = report(TEMPORAL_ADDRESS=address, **({"DOVETAIL_TEMPORAL_HEARTBEATS": profile} if profile else {}))
    assert [text for _, text in besides(said) if "DOVETAIL_TEMPORAL_HEARTBEATS" in text] == said_of(advised)


def said_of(advised: bool) -> list[str]:
    why = "Temporal Cloud bills each heartbeat, and `cloud` sends few"
    return [f"DOVETAIL_TEMPORAL_HEARTBEATS is not set: {why}"] if advised else []


def test_nothing_is_said_of_what_is_not_set() -> None:
    assert besides(report()) == []


def test_an_empty_variable_is_not_set() -> None:
    assert read_settings({"CLUSTER_NAME": "c", "METRICS_PORT": "", "LOG_LEVEL": ""}).log_level == "info"


def test_every_setting_has_its_words() -> None:
    for model in settings_models():
        assert set(words_of(model)) == {field.alias for field in model.model_fields.values() if field.alias}


def test_the_settings_can_be_listed_in_the_terminal() -> None:
    command = [sys.executable, "-m", "dovetail.cli.main", "worker", "--list-settings"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert "--batch-idle-duration  (BATCH_IDLE_DURATION)" in done.stdout
    assert "--interruption-queue  (INTERRUPTION_QUEUE)" in done.stdout
