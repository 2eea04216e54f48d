"""Steps under the names of Karpenter's controllers and queues; calls to the API server."""

import re
from pathlib import Path

import pytest

import dovetail.activities
from dovetail.activities.shared.every_step.step_health import LOOPS
from dovetail.telemetry.metrics.karpenters import api_calls, reconciles
from dovetail.telemetry.metrics.karpenters.api_calls import subject_of
from dovetail.telemetry.metrics.karpenters.controllers import CONTROLLERS, controller_of
from dovetail.telemetry.metrics.karpenters.reconciles import WAITS, Run
from tests.metrics.test_lifecycle import Meter


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    made = Meter()
    for name in ("RECONCILES", "QUEUES", "ROUNDS"):
        monkeypatch.setattr(reconciles, name, getattr(reconciles, name).on(made.provider.get_meter("test")))
    monkeypatch.setattr(api_calls, "INSTRUMENTS", api_calls.INSTRUMENTS.on(made.provider.get_meter("test")))
    return made


def kept(meter: Meter, name: str) -> list[tuple[float, dict[str, object]]]:
    return [(value, labels) for found, value, labels in meter.kept if found == name]


def test_a_step_is_a_reconcile_of_its_controller(meter: Meter) -> None:
    reconciles.started("launch_instance", 2, 0.5)
    reconciles.ended("launch_instance", 3.0)
    reconciles.ended("launch_instance", 1.0, failed=True, for_good=True)

    lifecycle = {"controller": "nodeclaim.lifecycle"}
    assert kept(meter, "controller_runtime_reconcile_time_seconds") == [(4.0, lifecycle)]
    assert kept(meter, "controller_runtime_reconcile_total") == [
        (1, {**lifecycle, "result": "success"}),
        (1, {**lifecycle, "result": "error"}),
    ]
    assert kept(meter, "controller_runtime_reconcile_errors_total") == [(1, lifecycle)]
    assert kept(meter, "controller_runtime_terminal_reconcile_errors_total") == [(1, lifecycle)]
    queue = {**lifecycle, "name": "nodeclaim.lifecycle"}
    assert kept(meter, "workqueue_queue_duration_seconds") == [(0.5, queue)]
    assert kept(meter, "workqueue_retries_total") == [(1, queue)]


def test_a_wait_is_counted_and_not_timed_and_a_round_is_timed(meter: Meter) -> None:
    """A drain of an hour is no slow reconcile."""
    reconciles.ended("drain_node", 3600.0)
    reconciles.round_ended("disruption", 0.25)

    assert kept(meter, "controller_runtime_reconcile_time_seconds") == [(0.25, {"controller": "disruption"})]
    totals = kept(meter, "controller_runtime_reconcile_total")
    assert {labels["controller"] for _, labels in totals} == {"node.termination", "disruption"}
    assert kept(meter, "dovetail_round_duration_seconds") == [(0.25, {"loop": "disruption"})]


def test_what_runs_now_is_shown_by_step_and_tries() -> None:
    runs = [Run("drain_node", 1, 0.0), Run("launch_instance", 5, 90.0), Run("launch_instance", 2, 95.0)]
    lines = [*reconciles.running_lines(runs, 100.0)]
    assert 'controller_runtime_active_workers{controller="nodeclaim.lifecycle"} 2' in lines
    assert 'dovetail_steps_running{step="launch_instance",attempts="4+"} 1' in lines
    assert 'dovetail_steps_running{step="drain_node",attempts="1"} 1' in lines
    name = 'controller="nodeclaim.lifecycle",name="nodeclaim.lifecycle"'
    assert f"workqueue_unfinished_work_seconds{{{name}}} 15" in lines
    assert f"workqueue_longest_running_processor_seconds{{{name}}} 10" in lines


def test_every_step_has_a_controller_of_upstreams() -> None:
    """A step that is added here is named there."""
    steps = _steps_of_the_product()
    assert steps == set(CONTROLLERS)
    assert steps >= WAITS and steps >= set(LOOPS)
    assert controller_of("something_new") == "something_new"


def _steps_of_the_product() -> set[str]:
    folder = Path(next(iter(dovetail.activities.__path__)))
    found: set[str] = set()
    for source in folder.rglob("*.py"):
        found.update(re.findall(r"@activity\.defn\n\s+async def (\w+)", source.read_text()))
    return found


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        ("/api/v1/nodes/n1", ("", "v1", "nodes", "")),
        ("/api/v1/namespaces/default/pods/p/eviction", ("", "v1", "pods", "eviction")),
        ("/api/v1/namespaces/kube-system", ("", "v1", "namespaces", "")),
        ("/apis/karpenter.sh/v1/nodeclaims/c/status", ("karpenter.sh", "v1", "nodeclaims", "status")),
        ("/version", ("", "", "", "")),
    ],
)
def test_a_request_is_known_by_its_kind_and_not_by_its_name(path: str, subject: tuple[str, str, str, str]) -> None:
    found = subject_of(path)
    assert (found["group"], found["version"], found["kind"], found["subresource"]) == subject


def test_a_request_without_an_answer_is_counted_too(meter: Meter) -> None:
    api_calls.called("GET", "/api/v1/nodes", 0, 5.0)
    api_calls.called("GET", "/api/v1/nodes", 409, 0.1)
    assert kept(meter, "client_go_request_total") == [
        (1, {"method": "GET", "code": "<error>"}),
        (1, {"method": "GET", "code": "409"}),
    ]
