"""Which cluster a person's order is for: named in the answer, and compared before anything is written.

The kubeconfig leads to one cluster and CLUSTER_NAME to the workflows of one; a person who works on several has soon
mixed them up. The UID of the namespace kube-system says which cluster the API server is of, and the Scheduler says to
which it belongs. Where the two differ nothing is done. Where Temporal cannot be asked the order is carried out all the
same, because an order is given when something is amiss; its answer names the UID in any case. So it is for a person who
may annotate a NodePool or a NodeClaim and not read that Namespace: then the answer says so.
"""

import asyncio
import contextlib
from dataclasses import dataclass

from temporalio.service import RPCError

from dovetail.answers.failures import CommandFailed
from dovetail.connection.configuration import TemporalUnusable
from dovetail.connection.owner import check_owner
from dovetail.connection.temporal import ANSWER_SECONDS, connect
from dovetail.model import names
from dovetail.ports.failures import Forbidden
from dovetail.settings.settings import Settings
from dovetail.wiring.world import ClusterObjects


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster of the kubeconfig."""

    cluster: str  # CLUSTER_NAME; empty where it is not set
    uid: str  # empty where this person may not read it

    @property
    def words(self) -> str:
        """For the answer to the person."""
        name = f"cluster {self.cluster}" if self.cluster else "cluster"
        known = f"UID {self.uid} of kube-system" if self.uid else "its UID may not be read: not compared"
        return f"{name} ({known})"


async def uid_of(objects: ClusterObjects) -> str:
    """The UID by which clusters are told apart."""
    found = await objects.namespaces.read(names.SYSTEM_NAMESPACE)
    if found is None:
        raise CommandFailed(f"there is no Namespace {names.SYSTEM_NAMESPACE}, whose UID tells clusters apart")
    return found.uid


async def checked_target(settings: Settings, objects: ClusterObjects) -> Target:
    """The cluster of these objects; OtherCluster where the workflows of CLUSTER_NAME belong to another one."""
    try:
        uid = await uid_of(objects)
    except Forbidden:
        return Target(cluster=settings.cluster, uid="")
    if settings.cluster:
        await _compare(settings, uid)
    return Target(cluster=settings.cluster, uid=uid)


async def _compare(settings: Settings, uid: str) -> None:
    """Where Temporal says in time whose the workflows are."""
    with contextlib.suppress(TemporalUnusable, TimeoutError, RPCError):
        client = await connect(settings)
        async with asyncio.timeout(ANSWER_SECONDS):
            await check_owner(client, settings.cluster, uid)
