"""The version of this worker, and how the singletons move to it.

A worker with a deployment and a build is versioned: Temporal hands it only tasks of its own version. Workflows are
pinned to the version that they began on, or move with each task (`DOVETAIL_VERSIONING`). Singletons move when they
continue as new, which they do as soon as they see that another version is meant for them. They may sleep for up to an
hour, so they are poked whenever a version gets a share of the work or another share, and again after 1, 3, 7, 15 …
minutes until they have moved: a poke that is answered before the server's queues know of the change achieves nothing.
Where Temporal knows no version, they are poked once for each build.
"""

import logging
import math
import time
import uuid
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.deployment.v1 import RoutingConfig
from temporalio.api.enums.v1 import RoutingConfigUpdateState
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest, SignalWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.common import VersioningBehavior
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig, WorkerDeploymentVersion

from dovetail.connection.owner import LastRuns
from dovetail.settings.settings import Settings
from dovetail.telemetry.log.start import product_version

BEHAVIOURS: Final = {"pinned": VersioningBehavior.PINNED, "auto-upgrade": VersioningBehavior.AUTO_UPGRADE}
UNVERSIONED_NAME: Final = "dovetail"
POKE: Final = "poke"
SPREAD_SECONDS: Final = 60.0  # the server tells all its queues of a change in less, where nothing is wrong

_log = logging.getLogger(__name__)


def deployment_of(settings: Settings) -> WorkerDeploymentConfig:
    """What this worker reports to Temporal about its version."""
    versioned = bool(settings.deployment and settings.build)
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(
            deployment_name=settings.deployment or UNVERSIONED_NAME, build_id=settings.build or product_version()
        ),
        use_worker_versioning=versioned,
        default_versioning_behavior=BEHAVIOURS[settings.versioning] if versioned else VersioningBehavior.UNSPECIFIED,
    )


async def poke_for_new_version(
    client: Client, deployment: WorkerDeploymentConfig, singletons: LastRuns, poked: set[tuple[str, str]]
) -> None:
    """Poke the singletons that have not run on this version yet, where it is meant for them.

    `poked` has the runs and occasions that this worker has poked for already.
    """
    try:
        occasion = await occasion_of(client, deployment)
    except RPCError as error:
        _log.info("cannot read how work is shared among versions: %s", error)
        return
    for described in singletons.values() if occasion else ():
        if described is None or has_run_on(described, deployment) or (described.run_id, occasion) in poked:
            continue
        try:
            await _poke(client, described, occasion)
            poked.add((described.run_id, occasion))
        except RPCError as error:
            _log.debug("cannot poke workflow %s: %s", described.id, error)


async def occasion_of(client: Client, deployment: WorkerDeploymentConfig) -> str:
    """What names this version and its share of the work; empty while it has no share.

    A version is started first and given work afterwards, all at once or by a ramp. Its share of the singletons cannot
    be asked for, so each change of the share is an occasion, and the passing time makes further ones. There is none
    before all queues know of the change, because a singleton that is poked sooner learns nothing; but a server that
    does not report so after a minute is not waited for.
    """
    version = deployment.version
    if not deployment.use_worker_versioning:
        return version.build_id
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=version.deployment_name)
    try:
        known = (await client.workflow_service.describe_worker_deployment(request)).worker_deployment_info
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:  # no worker of it has polled yet
            return ""
        raise
    routing = known.routing_config
    if not has_share(version, routing):
        return ""
    changed = last_change(routing)
    age = max(0.0, time.time() - changed.ToNanoseconds() / 1e9)
    spreading = known.routing_config_update_state == RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS
    if spreading and age < SPREAD_SECONDS:
        return ""
    again = f", time {times_due(age) + 1}" if times_due(age) else ""
    return f"{version.build_id} since {changed.ToJsonString()}{again}"


def has_share(version: WorkerDeploymentVersion, routing: RoutingConfig) -> bool:
    """Whether all new workflows, or a part of them, begin on it."""
    if routing.current_deployment_version.build_id == version.build_id:
        return True
    return routing.ramping_deployment_version.build_id == version.build_id and routing.ramping_version_percentage > 0


def last_change(routing: RoutingConfig) -> Timestamp:
    """When a share was last changed. A ramp's end gives the current version back what it had, so each change counts."""
    changes = (
        routing.current_version_changed_time,
        routing.ramping_version_changed_time,
        routing.ramping_version_percentage_changed_time,
    )
    return max(changes, key=Timestamp.ToNanoseconds)


def times_due(age_seconds: float) -> int:
    """How often a singleton that has not moved should have been poked again by now: after 1, 3, 7, 15 … minutes.

    All workers of a version count alike, so that their pokes have one id.
    """
    return int(math.log2(1 + age_seconds / 60))


def has_run_on(described: WorkflowExecutionDescription, deployment: WorkerDeploymentConfig) -> bool:
    """Whether the last task of this run was a task of that version; a run without any has nothing to learn."""
    info, version = described.raw_description.workflow_execution_info, deployment.version
    if deployment.use_worker_versioning:
        found = info.versioning_info.deployment_version
        return (found.deployment_name, found.build_id) == (version.deployment_name, version.build_id)
    build = info.most_recent_worker_version_stamp.build_id
    return not build or build == version.build_id


async def _poke(client: Client, described: WorkflowExecutionDescription, occasion: str) -> None:
    """Signal this run. All workers of a version may: the server takes one signal of an id in each run."""
    request = SignalWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=described.id, run_id=described.run_id),
        signal_name=POKE,
        identity=client.identity,
        request_id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{described.id} {occasion}")),
    )
    await client.workflow_service.signal_workflow_execution(request)
    _log.info("poked %s for version %s", described.id, occasion)
