"""The version of this worker, and how the singletons come to it.

A worker with a deployment and a build is versioned: Temporal hands it the tasks of its own version alone. Workflows are
pinned to the version that they began on, or move with each of their tasks (`DOVETAIL_VERSIONING`); the singletons move
when they begin as new, which they do as soon as they see that another version is meant for them. They wait for up to an
hour, so they are poked: once for each version, and once more when its share of the work is changed. Without a version
in Temporal the same poke comes once for each build.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import RoutingConfigUpdateState
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest, SignalWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.common import VersioningBehavior
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig, WorkerDeploymentVersion

from dovetail.activities.identity.judge_version import Findings, nobody_looks
from dovetail.worker.absence.presence import TemporalPresence
from dovetail.worker.settings import Settings
from dovetail.worker.telemetry import product_version
from dovetail.worker.wiring import World

BEHAVIOURS: Final = {"pinned": VersioningBehavior.PINNED, "auto-upgrade": VersioningBehavior.AUTO_UPGRADE}
UNVERSIONED_NAME: Final = "dovetail"
POKE: Final = "poke"

FindingsOf = Callable[[Settings, World, TemporalPresence], Findings]

_log = logging.getLogger(__name__)


def unjudged(settings: Settings, world: World, presence: TemporalPresence) -> Findings:
    """Of a worker whose version passes no gate: what would judge it was not handed in."""
    return nobody_looks


def deployment_of(settings: Settings) -> WorkerDeploymentConfig:
    """What this worker tells Temporal of its version."""
    versioned = bool(settings.deployment and settings.build)
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(
            deployment_name=settings.deployment or UNVERSIONED_NAME, build_id=settings.build or product_version()
        ),
        use_worker_versioning=versioned,
        default_versioning_behavior=BEHAVIOURS[settings.versioning] if versioned else VersioningBehavior.UNSPECIFIED,
    )


async def poke_for_new_version(
    client: Client, deployment: WorkerDeploymentConfig, singletons: Sequence[str]
) -> list[str]:
    """Poke the singletons that have not run on this version yet, where it is meant for them; which they are."""
    poked: list[str] = []
    try:
        occasion = await occasion_of(client, deployment)
    except RPCError as error:
        _log.info("how the work is shared among versions cannot be read: %s", error)
        return poked
    for identity in singletons if occasion else ():
        try:
            described = await client.get_workflow_handle(identity).describe()
            if not has_run_on(described, deployment):
                await _poke(client, described, occasion)
                poked.append(identity)
        except RPCError as error:
            _log.debug("%s was not looked at: %s", identity, error)
    return poked


async def occasion_of(client: Client, deployment: WorkerDeploymentConfig) -> str:
    """What names this version and its share of the work; empty while it has no share.

    A version is started first and given work afterwards, all at once or by a ramp. What its share of the singletons is
    cannot be asked, so each change of it is an occasion. It is none before all queues know of the change: a singleton
    that is poked sooner learns nothing, and is not poked again.
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
    if known.routing_config_update_state == RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS:
        return ""
    return share_of(version, known.routing_config)


def share_of(version: WorkerDeploymentVersion, routing: Any) -> str:
    """This version's share, with the moment since which it has it; empty where it has none."""
    if routing.current_deployment_version.build_id == version.build_id:
        return f"{version.build_id} since {routing.current_version_changed_time.ToJsonString()}"
    if routing.ramping_deployment_version.build_id == version.build_id and routing.ramping_version_percentage > 0:
        changed = routing.ramping_version_percentage_changed_time.ToJsonString()
        return f"{version.build_id} at {routing.ramping_version_percentage} % since {changed}"
    return ""


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
    _log.info("%s is told of version %s", described.id, occasion)
