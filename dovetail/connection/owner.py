"""Which cluster the workflows under this cluster's name belong to: compared before a worker serves, and as long as it
does.

Two clusters may have one name: EKS names are unique only within one account and region, and a rebuilt cluster has its
predecessor's name. In one namespace of Temporal they would share task queues and ids. The Scheduler's memo says which
cluster it belongs to, by the UID of the namespace kube-system; its last run says so even after it has ended, until the
retention has passed. Every step repeats it in its header.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from temporalio.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    StartWorkflowInput,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.identity.cluster_header import HEADER, with_header
from dovetail.activities.identity.trace_header import HEADER as TRACE_HEADER
from dovetail.activities.identity.trace_header import header_of, of_running_step
from dovetail.messages.workflow_ids import caretaker_id, interruptions_id, scheduler_id

LastRuns = Mapping[str, WorkflowExecutionDescription | None]  # the last run of each; None where there is none


class OtherCluster(Exception):
    """What runs under this cluster's name belongs to another cluster."""


class _Starts(Interceptor):
    """Puts the headers into every start of a workflow: the cluster's, and that of the trace."""

    def __init__(self, cluster_uid: str) -> None:
        self.cluster_uid = cluster_uid

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Outbound(next, self.cluster_uid)


class _Outbound(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, cluster_uid: str) -> None:
        super().__init__(next)
        self.cluster_uid = cluster_uid

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        headers, trace = with_header(input.headers, self.cluster_uid), of_running_step.get()
        if trace is not None:
            headers = {**headers, TRACE_HEADER: header_of(trace)}
        return await super().start_workflow(replace(input, headers=headers))


def client_of(client: Client, cluster_uid: str) -> Client:
    """The client on the same connection, on which every workflow starts as this cluster's."""
    config = client.config()
    config["interceptors"] = [*config["interceptors"], _Starts(cluster_uid)]
    return Client(**config)


def singletons_of(cluster: str) -> tuple[str, ...]:
    """The ids of all singletons; the Scheduler's first."""
    return scheduler_id(cluster), caretaker_id(cluster), interruptions_id(cluster)


async def owner_of(described: WorkflowExecutionDescription | None) -> str:
    """The cluster that a singleton belongs to; empty where it does not say, or is none."""
    return "" if described is None else str(await described.memo_value(HEADER, "", type_hint=str))


async def check_owner(client: Client, cluster: str, cluster_uid: str) -> LastRuns:
    """What is known of the singletons; OtherCluster where one belongs to another cluster."""
    found: dict[str, WorkflowExecutionDescription | None] = {}
    for identity in singletons_of(cluster):
        found[identity] = described = await described_or_none(client, identity)
        owner = await owner_of(described) if is_running(described) or identity == scheduler_id(cluster) else ""
        if owner and owner != cluster_uid:
            raise OtherCluster(refusal(client, cluster, (owner, cluster_uid)))
    return found


def is_running(described: WorkflowExecutionDescription | None) -> bool:
    """Whether the workflow has not ended."""
    return described is not None and described.status == WorkflowExecutionStatus.RUNNING


def refusal(client: Client, cluster: str, uids: tuple[str, str]) -> str:
    theirs, ours = uids
    return (
        f"another cluster is called {cluster} in the Temporal namespace {client.namespace}: its workflows belong to "
        f"the cluster with the UID {theirs}, and this one's is {ours} (of the namespace kube-system). Give this one "
        "another CLUSTER_NAME or a Temporal namespace of its own; or, where it has taken the other's place: "
        f"dovetail take-over --cluster {cluster} --from {theirs}"
    )


async def described_or_none(client: Client, identity: str) -> WorkflowExecutionDescription | None:
    """The last run of a workflow; None where there is none, or its retention has passed."""
    try:
        return await client.get_workflow_handle(identity).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise
