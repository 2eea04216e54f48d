"""Which cluster a person's order is for: named in the answer, and compared before anything is written.

The kubeconfig leads to one cluster and CLUSTER_NAME to the workflows of one; a person who works on several has soon
mixed them up. The UID of the namespace kube-system says which cluster the API server is of, and the Scheduler says to
which it belongs. Where the two differ nothing is done. Where Temporal cannot be asked the order is carried out all the
same, because an order is given when something is amiss; its answer names the UID in any case. So it is for a person who
may annotate a NodePool or a NodeClaim and not read that Namespace: then the answer says so.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.model import names
from dovetail.ports.failures import Forbidden

if TYPE_CHECKING:
    from dovetail.settings.settings import Settings
    from dovetail.wiring.orders import ClusterObjects


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster of the kubeconfig."""

    cluster: str  # CLUSTER_NAME, else the context of the kubeconfig; empty where there is neither
    uid: str  # empty where this person may not read it

    @property
    def words(self) -> str:
        """For the answer to the person."""
        name = f"cluster {self.cluster}" if self.cluster else "cluster"
        known = f"UID {self.uid} of kube-system" if self.uid else "its UID may not be read: not compared"
        return f"{name} ({known})"


async def uid_of(objects: "ClusterObjects") -> str:
    """The UID by which clusters are told apart."""
    found = await objects.namespaces.read(names.SYSTEM_NAMESPACE)
    if found is None:
        raise CommandFailed(f"there is no Namespace {names.SYSTEM_NAMESPACE}, whose UID tells clusters apart")
    return found.uid


async def checked_target(settings: "Settings | None", objects: "ClusterObjects", context: str = "") -> Target:
    """The cluster of these objects; OtherCluster where the workflows of CLUSTER_NAME belong to another one."""
    cluster = settings.cluster if settings is not None else ""
    try:
        uid = await uid_of(objects)
    except Forbidden:
        return Target(cluster=cluster or context, uid="")
    if settings is not None and cluster:
        from dovetail.cli.compared import compare

        await compare(settings, uid)
    return Target(cluster=cluster or context, uid=uid)
