"""The profile of heartbeats is put into the steps that a workflow asks for, and into nothing else."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.worker import StartActivityInput, WorkflowInboundInterceptor, WorkflowInterceptorClassInput

from dovetail.settings.settings import SettingsError, read_settings
from dovetail.workflows.heartbeat_profile import PROFILES, HeartbeatProfile
from dovetail.workflows.options import ending, launching, planning, quick, waiting, watching

GIVEN = WorkflowInterceptorClassInput(unsafe_extern_functions={})


def asked_with(profile: str, timeout: timedelta | None) -> timedelta | None:
    """The heartbeat timeout with which a step is asked for under that profile."""
    asked: list[Any] = []
    made = HeartbeatProfile(profile).workflow_interceptor_class(GIVEN)
    assert made is not None
    inner = SimpleNamespace(init=asked.append)
    made(cast(WorkflowInboundInterceptor, inner)).init(cast(Any, SimpleNamespace(start_activity=asked.append)))
    [outbound] = asked
    outbound.start_activity(cast(StartActivityInput, SimpleNamespace(heartbeat_timeout=timeout)))
    found: timedelta | None = asked[1].heartbeat_timeout
    return found


def test_a_server_of_one_s_own_gets_what_the_workflows_say() -> None:
    assert HeartbeatProfile("self-hosted").workflow_interceptor_class(GIVEN) is None


@pytest.mark.parametrize("options", [planning("c"), ending("c")])
def test_on_temporal_cloud_idle_waits_may_be_silent_for_ten_minutes(options: Any) -> None:
    assert asked_with("cloud", options["heartbeat_timeout"]) == timedelta(minutes=10)


@pytest.mark.parametrize("options", [waiting("c"), watching("c")])
def test_there_a_killed_worker_s_drain_is_taken_up_after_forty_seconds(options: Any) -> None:
    assert asked_with("cloud", options["heartbeat_timeout"]) == timedelta(seconds=40)


@pytest.mark.parametrize("options", [quick("c"), launching("c")])
def test_what_acts_is_taken_up_as_fast_as_everywhere(options: Any) -> None:
    assert asked_with("cloud", options["heartbeat_timeout"]) == options["heartbeat_timeout"]


def test_a_step_without_heartbeats_stays_without() -> None:
    assert asked_with("cloud", None) is None


def test_the_setting_knows_the_profiles_and_no_others() -> None:
    for name in PROFILES:
        assert read_settings({"DOVETAIL_TEMPORAL_HEARTBEATS": name}).heartbeats == name
    with pytest.raises(SettingsError, match="DOVETAIL_TEMPORAL_HEARTBEATS"):
        read_settings({"DOVETAIL_TEMPORAL_HEARTBEATS": "rare"})
