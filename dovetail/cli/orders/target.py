"""Which cluster a person's order is for: named in the answer, and compared before anything is written.

The kubeconfig leads to one cluster and CLUSTER_NAME names one; a person who works on several easily mixes them up. The
workers behind the kubeconfig say which name they serve. If settings are loaded anyway, the UID of the namespace
kube-system identifies the API server's cluster, and the Scheduler says to which it belongs. If the two differ nothing
is done. If nobody can be asked the order is carried out all the same, because orders are given when something is wrong;
the answer names the UID in any case. The same holds for a person who may annotate a NodePool or a NodeClaim but not
read that Namespace: then the answer says so.
"""

import argparse
import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.cli.orders.written_on import context_of
from dovetail.cli.remote.asking import where_of
from dovetail.model import names
from dovetail.ports.failures import Forbidden

if TYPE_CHECKING:
    from dovetail.settings.settings import Settings
    from dovetail.wiring.orders import ClusterObjects


ASK_SECONDS: Final = 3.0  # to wait for a worker that says which cluster it serves


class OtherWorkers(CommandFailed):
    """The workers of this kubeconfig serve another cluster than the named one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    cluster: str  # CLUSTER_NAME, else the context of the kubeconfig; empty if there is neither
    uid: str  # empty if this person may not read it

    @property
    def words(self) -> str:
        """The cluster's name and UID for the answer."""
        name = f"cluster {self.cluster}" if self.cluster else "cluster"
        known = f"UID {self.uid} of kube-system" if self.uid else "its UID may not be read: not compared"
        return f"{name} ({known})"


async def uid_of(objects: "ClusterObjects") -> str:
    """The UID that tells clusters apart."""
    found = await objects.namespaces.read(names.SYSTEM_NAMESPACE)
    if found is None:
        raise CommandFailed(f"there is no Namespace {names.SYSTEM_NAMESPACE}, whose UID tells clusters apart")
    return found.uid


async def checked_target(
    settings: "Settings | None", objects: "ClusterObjects", given: argparse.Namespace | None = None
) -> Target:
    """The cluster of these objects; OtherWorkers or OtherCluster if the name belongs to another one."""
    cluster = settings.cluster if settings is not None else _named(given)
    name = cluster or (context_of(given) if given is not None else "")
    if settings is None and given is not None and cluster:
        await asyncio.to_thread(_check_workers, given, cluster)
    try:
        uid = await uid_of(objects)
    except Forbidden:
        return Target(cluster=name, uid="")
    if settings is not None and cluster:
        from dovetail.cli.orders.compared import compare

        await compare(settings, uid)
    return Target(cluster=name, uid=uid)


def _named(given: argparse.Namespace | None) -> str:
    return getattr(given, "cluster", None) or os.environ.get("CLUSTER_NAME", "")


def _check_workers(given: argparse.Namespace, cluster: str) -> None:
    """Ask for the trend, which costs a worker no look."""
    from dovetail.cli.remote.workers import Workers

    try:
        workers = Workers(where_of(given), ASK_SECONDS)
        try:
            served = str(workers.document("trend")["cluster"])
        finally:
            workers.close()
    except CommandFailed:
        return
    if served and served != cluster:
        raise OtherWorkers(f"the cluster is named {cluster}, and the workers of this kubeconfig serve {served}")
