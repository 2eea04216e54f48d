"""Workers with a version: the singletons follow it, what was begun ends on the version that it began on; and back."""

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from dovetail.messages.workflow_ids import caretaker_id, claim_owner_id, scheduler_id
from dovetail.worker.versions import times_due
from tests.system.beside import beside
from tests.system.histories import replay_all
from tests.waiting import until_answered, until_version_is_known
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal

# A worker that looks after the singletons every two seconds instead of every minute; nothing else is changed.
WATCHFUL = """
from dovetail.worker import singletons
assert singletons.LOOK_SECONDS == 60.0
singletons.LOOK_SECONDS = 2.0
from dovetail.cli.main import run
run()
"""
BOOT_SECONDS = 600.0  # a launch is under way until it is hastened, however long the singletons take to follow
OPERATOR = "operator"
SIGNALED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED


@dataclass
class Versions:
    """The versions of a stage's workers, and what Temporal says of them."""

    stage: Stage
    client: Client

    @property
    def name(self) -> str:
        """Deployments belong to a namespace, which stages share."""
        return f"dovetail-{self.stage.cluster}"

    def start(self, build: str, versioned: bool = True) -> "subprocess.Popen[bytes]":
        """A worker of that build."""
        version = {"TEMPORAL_WORKER_BUILD_ID": build, **({"TEMPORAL_DEPLOYMENT_NAME": self.name} if versioned else {})}
        return self.stage.start_installed([sys.executable, "-c", WATCHFUL], "worker.log", **version)

    async def set_current(self, build: str) -> None:
        """As an operator or the controller does, once the version's workers poll."""
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=self.client.namespace, deployment_name=self.name, build_id=build, identity=OPERATOR
        )
        await until_version_is_known(
            lambda: self.client.workflow_service.set_worker_deployment_current_version(request)
        )

    async def ramp(self, build: str, percentage: float) -> None:
        """Give it a share of what is begun."""
        request = SetWorkerDeploymentRampingVersionRequest(
            namespace=self.client.namespace,
            deployment_name=self.name,
            build_id=build,
            percentage=percentage,
            identity=OPERATOR,
        )
        await until_version_is_known(
            lambda: self.client.workflow_service.set_worker_deployment_ramping_version(request)
        )

    @property
    def singletons(self) -> tuple[str, str]:
        """Those that run without an interruption queue."""
        return scheduler_id(self.stage.cluster), caretaker_id(self.stage.cluster)

    async def singletons_are_on(self, build: str) -> None:
        """Both, without a hand's help. A task handed to a poll that has just ended is given anew after a minute,
        and on a busy machine the next one may meet such a poll as well."""
        for identity in self.singletons:
            try:
                await until_answered(partial(self.is_on, identity, build), 240, f"{identity} is on {build}")
            except AssertionError as error:
                error.add_note(await self.what_happened(identity))
                raise

    async def what_happened(self, identity: str) -> str:
        """What explains a singleton that did not come: its last events, the routing, and the ends of the logs."""
        request = DescribeWorkerDeploymentRequest(namespace=self.client.namespace, deployment_name=self.name)
        routing = await self.client.workflow_service.describe_worker_deployment(request)
        history = await self.client.get_workflow_handle(identity).fetch_history()
        events = [f"{e.event_time.ToJsonString()} {EventType.Name(e.event_type)}" for e in history.events[-20:]]
        lines = (self.stage.folder / "worker.log").read_text().splitlines()[-20:]
        alive = [worker.poll() for worker in self.stage.workers]
        return "\n".join([str(routing.worker_deployment_info), *events, *lines, f"workers' exit codes: {alive}"])

    async def is_on(self, identity: str, build: str) -> bool:
        return await self.build_of(identity) == build

    async def build_of(self, identity: str) -> str:
        """The version that the workflow is on; empty where it is not there yet."""
        try:
            described = await self.client.get_workflow_handle(identity).describe()
        except RPCError:
            return ""
        found = described.raw_description.workflow_execution_info.versioning_info.deployment_version
        return str(found.build_id)

    async def builds_of_tasks(self, identity: str) -> list[str]:
        """The builds that carried out the tasks of the workflow's run, each repetition once."""
        history = await self.client.get_workflow_handle(identity).fetch_history()
        builds = [
            event.workflow_task_completed_event_attributes.deployment_version.build_id
            for event in history.events
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        ]
        return list(dict.fromkeys(builds))

    async def runs(self) -> dict[str, str]:
        """The run of each singleton."""
        return {each: (await self.client.get_workflow_handle(each).describe()).run_id for each in self.singletons}

    async def pokes(self, runs: dict[str, str]) -> list[int]:
        """How often each of these runs was poked."""
        found = [await self.client.get_workflow_handle(i, run_id=run).fetch_history() for i, run in runs.items()]
        signals = [
            [e.workflow_execution_signaled_event_attributes.signal_name for e in h.events if e.event_type == SIGNALED]
            for h in found
        ]
        return [names.count("poke") for names in signals]


@beside
async def test_the_singletons_follow_the_version_and_a_launch_ends_on_the_one_that_it_began_on(stage: Stage) -> None:
    """Forward, and back again."""
    versions = Versions(stage, await stage.client())
    versions.start("one")
    await versions.set_current("one")
    await versions.singletons_are_on("one")
    stage.apply_pool()
    stage.world.set_boot_delay(BOOT_SECONDS)
    stage.deploy(1)
    await stage.until(lambda: stage.world.live_instances(), 60, "an instance boots")
    [claim] = stage.claims()
    owner = claim_owner_id(stage.cluster, claim["metadata"]["name"])
    first_runs = await versions.runs()

    versions.start("two")
    changed = time.time()
    await versions.set_current("two")
    await versions.singletons_are_on("two")
    occasions = 1 + times_due(time.time() - changed)
    under_way = (await versions.client.get_workflow_handle(owner).describe()).status
    stage.world.set_boot_delay(0.2)
    stage.world.hasten()
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 120, "the pod runs")
    await versions.client.get_workflow_handle(owner).result()
    stage.deploy(1, "later")
    await stage.until(lambda: stage.running_pods() == 2 and stage.initialised(2), 120, "the later pod runs")
    [later] = [c["metadata"]["name"] for c in stage.claims() if c["metadata"]["name"] != claim["metadata"]["name"]]

    assert under_way == WorkflowExecutionStatus.RUNNING, "the launch ended before it could be left behind"
    assert await versions.builds_of_tasks(owner) == ["one"]
    assert await versions.builds_of_tasks(claim_owner_id(stage.cluster, later)) == ["two"]
    pokes = await versions.pokes(first_runs)
    assert all(1 <= count <= occasions for count in pokes), f"told {pokes} times, with {occasions} occasions"

    await versions.set_current("one")
    await versions.singletons_are_on("one")
    stage.deploy(1, "back")
    await stage.until(lambda: stage.running_pods() == 3 and stage.initialised(3), 120, "a pod runs after the way back")
    await replay_all(versions.client, stage.cluster)


@beside
async def test_a_version_without_a_share_takes_nothing(stage: Stage) -> None:
    versions = Versions(stage, await stage.client())
    versions.start("one")
    await versions.set_current("one")
    await versions.singletons_are_on("one")
    runs = await versions.runs()

    versions.start("two")
    await versions.ramp("two", 0.0)
    await asyncio.sleep(6)  # three looks of each worker
    untouched, pokes = await versions.runs(), await versions.pokes(runs)
    await versions.set_current("two")
    await versions.singletons_are_on("two")

    assert untouched == runs and pokes == [0, 0]


@beside
async def test_without_versions_in_temporal_a_new_build_pokes_once_whichever_of_its_workers_is_first(
    stage: Stage,
) -> None:
    """Both serve together for a while, as in a rolling update."""
    versions = Versions(stage, await stage.client())
    versions.start("one", versioned=False)
    for identity in versions.singletons:
        await until_answered(lambda identity=identity: waits_twice(versions.client, identity), 60, f"{identity} waits")  # type: ignore[misc]
    runs = await versions.runs()

    versions.start("two", versioned=False)
    versions.start("two", versioned=False)

    async def all_poked() -> bool:
        return min(await versions.pokes(runs)) >= 1

    await until_answered(all_poked, 60, "both are told of the new build")
    await asyncio.sleep(8)  # several looks of all three
    assert await versions.pokes(runs) == [1, 1]


async def waits_twice(client: Client, identity: str) -> bool:
    """Whether both loops of a singleton wait."""
    try:
        described = await client.get_workflow_handle(identity).describe()
    except RPCError:
        return False
    return len(described.raw_description.pending_activities) == 2


@pytest.mark.soak
@beside
async def test_a_ramp_moves_the_singletons_and_its_end_takes_them_back(stage: Stage) -> None:
    """At 100 per cent every workflow is in the ramp, at none nobody."""
    versions = Versions(stage, await stage.client())
    versions.start("one")
    await versions.set_current("one")
    await versions.singletons_are_on("one")

    versions.start("two")
    await versions.ramp("two", 100.0)
    await versions.singletons_are_on("two")
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 120, "a pod runs")
    [claim] = stage.claims()
    owner = claim_owner_id(stage.cluster, claim["metadata"]["name"])
    assert await versions.builds_of_tasks(owner) == ["two"]

    await versions.ramp("two", 0.0)
    await versions.singletons_are_on("one")
    await replay_all(versions.client, versions.stage.cluster)
