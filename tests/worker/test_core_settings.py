"""The settings that Karpenter's core has too (OPS-1, OPS-2): names, defaults, and what is no value."""

import pytest

from dovetail.settings.settings import GATES, SettingsError, read_settings


def test_without_settings_the_defaults_of_the_core_are_upstreams() -> None:
    """OPS-1; but no port is opened that was not named."""
    found = read_settings({})

    assert (found.batch_max, found.batch_idle) == (10.0, 1.0)
    assert (found.preferences, found.min_values, found.log_level) == ("Respect", "Strict", "info")
    assert (found.default_spread, found.unobserved) == ((), False)
    assert (found.metrics_port, found.health_port) == (0, 0)
    assert [gate for gate, is_open in found.gates.items() if is_open] == ["ReservedCapacity"]


def test_settings_of_the_core_are_read_by_upstreams_names() -> None:
    found = read_settings(
        {
            "BATCH_MAX_DURATION": "1m30s",
            "BATCH_IDLE_DURATION": "500ms",
            "PREFERENCE_POLICY": "Ignore",
            "MIN_VALUES_POLICY": "BestEffort",
            "METRICS_PORT": "8080",
            "HEALTH_PROBE_PORT": "8081",
            "LOG_LEVEL": "debug",
            "DISABLE_CLUSTER_STATE_OBSERVABILITY": "true",
        }
    )

    assert (found.batch_max, found.batch_idle) == (90.0, 0.5)
    assert (found.preferences, found.min_values, found.log_level) == ("Ignore", "BestEffort", "debug")
    assert (found.metrics_port, found.health_port, found.unobserved) == (8080, 8081, True)


def test_gates_that_are_not_named_keep_their_defaults_and_unknown_ones_are_ignored() -> None:
    """OPS-1, BEH-115."""
    found = read_settings({"FEATURE_GATES": "NodeRepair=true,Unheard=true"})

    assert found.gates == {**GATES, "NodeRepair": True}


@pytest.mark.parametrize("gates", ["NodeRepair", "NodeRepair=", "NodeRepair=perhaps", "=true,NodeRepair"])
def test_a_gate_that_cannot_be_read_ends_the_start(gates: str) -> None:
    """OPS-1, BEH-115."""
    with pytest.raises(SettingsError, match="FEATURE_GATES"):
        read_settings({"FEATURE_GATES": gates})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BATCH_MAX_DURATION", "soon"),
        ("BATCH_IDLE_DURATION", "0s"),
        ("METRICS_PORT", "many"),
        ("LOG_LEVEL", "loud"),
        ("PREFERENCE_POLICY", "Sometimes"),
        ("DISABLE_CLUSTER_STATE_OBSERVABILITY", "perhaps"),
    ],
)
def test_a_value_of_the_core_that_cannot_be_read_ends_the_start(name: str, value: str) -> None:
    """OPS-2: upstream takes its default instead."""
    with pytest.raises(SettingsError, match=name):
        read_settings({name: value})


def test_the_command_line_wins_over_the_environment() -> None:
    """OPS-2."""
    assert read_settings({"CLUSTER_NAME": "environment"}, cluster="line").cluster == "line"
    assert read_settings({"CLUSTER_NAME": "environment"}, cluster=None).cluster == "environment"
