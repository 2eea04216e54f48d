"""Settings by upstream's names (AWS-157): read, checked, and handed to the adapter."""

import pytest

from dovetail.adapters.aws.environment import aws_settings
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.disruption.settings import DisruptionSettings
from dovetail.settings.deciding import disruption_settings, placement_settings
from dovetail.settings.settings import Settings, SettingsError, read_settings
from dovetail.wiring.world import shared_settings

GIVEN = {
    "CLUSTER_NAME": "c",
    "AWS_REGION": "eu-west-1",
    "ISOLATED_VPC": "true",
    "VM_MEMORY_OVERHEAD_PERCENT": "0.05",
    "INTERRUPTION_QUEUE": "q",
    "RESERVED_ENIS": "2",
    "DISABLE_DRY_RUN": "true",
    "ENABLE_ZONAL_SHIFT": "true",
    "AMI_REFRESH_INTERVAL": "5m",
    "SUBNET_REFRESH_INTERVAL": "90s",
    "SECURITY_GROUP_REFRESH_INTERVAL": "2m",
    "AWS_FEATURE_GATES": "NodeClassCEL=true,Unheard=true",
    "FEATURE_GATES": "ReservedCapacity=false",
    "MIN_VALUES_POLICY": "BestEffort",
}


def adapters_settings(settings: Settings) -> AwsSettings:
    """What AWS's adapter is given of the worker's settings."""
    return aws_settings(settings.of_cloud, shared_settings(settings))


def test_every_setting_of_the_provider_reaches_the_adapter_by_upstreams_name() -> None:
    """AWS-157."""
    found = adapters_settings(read_settings(GIVEN))

    assert (found.cluster, found.region, found.interruption_queue) == ("c", "eu-west-1", "q")
    assert (found.isolated_vpc, found.disable_dry_run, found.enable_zonal_shift) == (True, True, True)
    assert (found.memory_overhead, found.reserved_enis) == (0.05, 2)
    assert (found.image_refresh, found.subnet_refresh, found.security_group_refresh) == (300.0, 90.0, 120.0)
    assert (found.expressions, found.reserved_capacity, found.best_effort_min_values) == (True, False, True)


def test_without_settings_the_defaults_are_upstreams() -> None:
    """AWS-157, AWS-158."""
    found = adapters_settings(Settings())

    assert (found.isolated_vpc, found.disable_dry_run, found.enable_zonal_shift, found.expressions) == (False,) * 4
    assert (found.memory_overhead, found.reserved_enis, found.interruption_queue) == (0.075, 0, "")
    assert (found.image_refresh, found.subnet_refresh, found.security_group_refresh) == (60.0, 60.0, 60.0)
    assert found.reserved_capacity


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AMI_REFRESH_INTERVAL", "30s"),
        ("SUBNET_REFRESH_INTERVAL", "often"),
        ("SECURITY_GROUP_REFRESH_INTERVAL", "59s"),
        ("VM_MEMORY_OVERHEAD_PERCENT", "-0.1"),
        ("RESERVED_ENIS", "-1"),
        ("CLUSTER_ENDPOINT", "cluster.example"),
        ("AWS_FEATURE_GATES", "NodeClassCEL"),
        ("ISOLATED_VPC", "perhaps"),
        ("CLUSTER_NAME", "mine/claim"),
        ("CLUSTER_NAME", "mine' OR WorkflowId STARTS_WITH 'theirs"),
    ],
)
def test_a_value_that_cannot_be_used_is_an_error_that_names_the_variable(name: str, value: str) -> None:
    """AWS-157: a silent default is one that no operator chose."""
    with pytest.raises(SettingsError, match=name):
        read_settings({"CLUSTER_NAME": "c", name: value})


def test_the_policy_of_placement_is_handed_on() -> None:
    """PLQ-34."""
    given = {
        "CLUSTER_NAME": "c",
        "PLACEMENT_POLICY": "Cost",
        "DOVETAIL_NODE_COST": "0.02",
        "DOVETAIL_COST_SECONDS": "3s",
        "DOVETAIL_COST_WORTH": "0.35",
        "DOVETAIL_COST_KEEP_PLACES": "false",
    }
    cost = placement_settings(read_settings(given)).cost
    disruption = disruption_settings(read_settings(given))
    assert (disruption.cost.everywhere, disruption.cost.node_cost) == (True, 0.02)
    assert (cost.everywhere, cost.node_cost, cost.seconds) == (True, 0.02, 3.0)
    assert (cost.spot_chance, disruption.worth, disruption.cheaper_seconds) == (0.5, 0.35, 5.0)
    plain = read_settings({"CLUSTER_NAME": "c"})
    assert not cost.keep_places and placement_settings(plain).cost.keep_places
    assert disruption_settings(plain).worth == DisruptionSettings().worth == 0.7


@pytest.mark.parametrize(
    "wrong",
    [
        {"PLACEMENT_POLICY": "Cheap"},
        {"DOVETAIL_NODE_COST": "-1"},
        {"DOVETAIL_NODE_COST": "2e6"},
        {"DOVETAIL_COST_WORTH": "0.2"},
        {"DOVETAIL_COST_WORTH": "nan"},
    ],
)
def test_a_policy_or_node_cost_that_cannot_be_read_is_named(wrong: dict[str, str]) -> None:
    [name] = wrong
    with pytest.raises(SettingsError, match=name):
        read_settings({"CLUSTER_NAME": "c", **wrong})
