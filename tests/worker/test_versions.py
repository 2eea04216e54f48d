"""What a worker tells Temporal of its version, and when it makes a new one known."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.api.deployment.v1 import RoutingConfig
from temporalio.api.enums.v1 import RoutingConfigUpdateState
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentResponse
from temporalio.client import Client
from temporalio.common import VersioningBehavior
from temporalio.service import RPCError, RPCStatusCode

from dovetail.settings.settings import Settings, SettingsError, read_settings
from dovetail.worker.versions import deployment_of, poke_for_new_version

VERSIONED = {"TEMPORAL_DEPLOYMENT_NAME": "dovetail", "TEMPORAL_WORKER_BUILD_ID": "two"}


@pytest.mark.parametrize(
    ("given", "behaviour"),
    [
        ({}, VersioningBehavior.PINNED),
        ({"DOVETAIL_VERSIONING": "pinned"}, VersioningBehavior.PINNED),
        ({"DOVETAIL_VERSIONING": "auto-upgrade"}, VersioningBehavior.AUTO_UPGRADE),
    ],
)
def test_a_worker_with_a_version_says_how_its_workflows_move(
    given: dict[str, str], behaviour: VersioningBehavior
) -> None:
    found = deployment_of(read_settings({**VERSIONED, **given}))

    assert (found.use_worker_versioning, found.default_versioning_behavior) == (True, behaviour)
    assert found.version.to_canonical_string() == "dovetail.two"


def test_a_worker_with_a_build_alone_is_not_versioned() -> None:
    found = deployment_of(read_settings({"TEMPORAL_WORKER_BUILD_ID": "two"}))

    assert (found.use_worker_versioning, found.version.build_id) == (False, "two")
    assert found.default_versioning_behavior == VersioningBehavior.UNSPECIFIED


def test_a_deployment_without_a_build_is_an_error_that_names_both() -> None:
    with pytest.raises(SettingsError, match=r"TEMPORAL_DEPLOYMENT_NAME: .*TEMPORAL_WORKER_BUILD_ID"):
        read_settings({"TEMPORAL_DEPLOYMENT_NAME": "dovetail"})


class Server:
    """A singleton whose last task was a build's, the routing of a deployment, and the signals that were taken."""

    namespace, identity = "default", "worker"

    def __init__(self, info: WorkflowExecutionInfo, routing: RoutingConfig | RPCError | None = None) -> None:
        self.info, self.routing = info, routing
        self.taken: set[tuple[str, str]] = set()
        self.asked = 0
        self.state = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_COMPLETED
        self.workflow_service = self

    async def describe_worker_deployment(self, request: Any) -> DescribeWorkerDeploymentResponse:
        if isinstance(self.routing, RPCError):
            raise self.routing
        found = DescribeWorkerDeploymentResponse()
        found.worker_deployment_info.routing_config.CopyFrom(self.routing or RoutingConfig())
        found.worker_deployment_info.routing_config_update_state = self.state
        return found

    def singletons(self) -> Any:
        raw = SimpleNamespace(workflow_execution_info=self.info)
        return {"c/scheduler": SimpleNamespace(id="c/scheduler", run_id="run", raw_description=raw)}

    async def signal_workflow_execution(self, request: Any) -> None:
        assert request.signal_name == "poke"
        self.asked += 1
        self.taken.add((request.workflow_execution.run_id, request.request_id))


def last_on(build: str, *, versioned: bool) -> WorkflowExecutionInfo:
    info = WorkflowExecutionInfo()
    info.most_recent_worker_version_stamp.build_id = build
    if versioned:
        info.versioning_info.deployment_version.deployment_name = "dovetail"
        info.versioning_info.deployment_version.build_id = build
    return info


NOW = 1_700_000_000


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the workers' clock shows, ten seconds after most of the changes."""
    shown = [NOW + 10.0]
    monkeypatch.setattr(time, "time", lambda: shown[0])
    return shown


def current(build: str, since: int = 1) -> RoutingConfig:
    routing = RoutingConfig()
    routing.current_deployment_version.build_id = build
    routing.current_version_changed_time.seconds = NOW + since
    return routing


def ramping(build: str, percentage: float, since: int = 1) -> RoutingConfig:
    routing = current("one")
    routing.ramping_deployment_version.build_id = build
    routing.ramping_version_percentage = percentage
    routing.ramping_version_percentage_changed_time.seconds = NOW + since
    return routing


async def poked(server: Server, **settings: str) -> int:
    """How many signals the server has taken after a look."""
    deployment = deployment_of(Settings(**settings))
    await poke_for_new_version(cast(Client, server), deployment, server.singletons(), set())
    return len(server.taken)


async def test_a_new_build_is_made_known_once_however_many_workers_look_how_often() -> None:
    server = Server(last_on("one", versioned=False))

    assert [await poked(server, build="two") for _ in range(3)] == [1, 1, 1]
    assert await poked(server, build="one") == 1, "it has run on this one"


async def test_a_version_is_made_known_when_it_is_given_work_and_when_its_share_changes() -> None:
    server = Server(last_on("one", versioned=True), current("one"))
    versioned = {"deployment": "dovetail", "build": "two"}
    found = [await poked(server, **versioned)]
    for routing in (
        ramping("two", 0),
        ramping("two", 10),
        ramping("two", 10),
        ramping("two", 50, 2),
        current("two", 3),
    ):
        server.routing = routing
        found.append(await poked(server, **versioned))
    server.info = last_on("two", versioned=True)
    found.append(await poked(server, **versioned))

    assert found == [0, 0, 1, 1, 2, 3, 3]


@pytest.mark.parametrize("routing", [ramping("two", 100), current("two")])
async def test_nobody_is_poked_before_all_queues_know_of_the_change(routing: RoutingConfig) -> None:
    """Too early it would teach nothing."""
    server = Server(last_on("one", versioned=True), routing)
    server.state = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS
    early = await poked(server, deployment="dovetail", build="two")
    server.state = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_COMPLETED

    assert (early, await poked(server, deployment="dovetail", build="two")) == (0, 1)


async def test_a_server_that_never_says_that_its_queues_know_is_waited_for_a_minute(clock: list[float]) -> None:
    server = Server(last_on("one", versioned=True), current("two", 0))
    server.state = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS
    found = []
    for seconds in (0.0, 59.0, 61.0):
        clock[0] = NOW + seconds
        found.append(await poked(server, deployment="dovetail", build="two"))

    assert found == [0, 0, 1]


async def test_a_singleton_that_does_not_come_is_poked_again_ever_more_rarely(clock: list[float]) -> None:
    """Its answer may have come before the queue knew. By two workers each minute of four hours, eight pokes come."""
    server = Server(last_on("one", versioned=True), current("two", 0))
    minutes = []
    for minute in range(240):
        clock[0] = NOW + 60.0 * minute + 1
        before = len(server.taken)
        for _ in range(2):
            taken = await poked(server, deployment="dovetail", build="two")
        if taken > before:
            minutes.append(minute)
    server.info = last_on("two", versioned=True)
    clock[0] = NOW + 1e6

    assert minutes == [0, 1, 3, 7, 15, 31, 63, 127]
    assert await poked(server, deployment="dovetail", build="two") == 8, "it has come"


async def test_the_end_of_a_ramp_is_an_occasion_for_the_version_that_stayed_current() -> None:
    """It is current since long, and the singletons came from the version that ramped."""
    server = Server(last_on("two", versioned=True), ramping("two", 100, 2))
    before = await poked(server, deployment="dovetail", build="one")
    server.routing = ramping("two", 0, 5)

    assert (before, await poked(server, deployment="dovetail", build="one")) == (1, 2)


async def test_a_worker_tells_a_run_of_an_occasion_once() -> None:
    server, told = Server(last_on("one", versioned=True), current("two")), set[tuple[str, str]]()
    deployment = deployment_of(Settings(deployment="dovetail", build="two"))
    for _ in range(3):
        await poke_for_new_version(cast(Client, server), deployment, server.singletons(), told)

    assert server.asked == 1


async def test_a_version_that_returns_is_made_known_again() -> None:
    """Rolled back, and then forward again, while one run of a singleton lasts."""
    server = Server(last_on("one", versioned=True), current("two", 1))
    versioned = {"deployment": "dovetail", "build": "two"}
    first = await poked(server, **versioned)
    server.routing = current("two", 9)

    assert (first, await poked(server, **versioned)) == (1, 2)


@pytest.mark.parametrize(
    "status", [RPCStatusCode.NOT_FOUND, RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAVAILABLE]
)
async def test_where_the_share_cannot_be_read_nobody_is_poked(status: RPCStatusCode) -> None:
    server = Server(last_on("one", versioned=True), RPCError("no", status, b""))

    assert await poked(server, deployment="dovetail", build="two") == 0


async def test_a_run_that_no_build_has_taken_up_yet_has_nothing_to_learn() -> None:
    assert await poked(Server(WorkflowExecutionInfo()), build="two") == 0
