"""The check of `dovetail doctor` on whose workflows run under the cluster's name."""

from dataclasses import dataclass
from typing import Final

from temporalio.client import Client

from dovetail.answers.doctor.findings import Check, failed, fine, skipped
from dovetail.connection.owner import OtherCluster, check_owner, described_or_none, owner_of
from dovetail.messages.workflow_ids import scheduler_id

NAME: Final = "identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSeen:
    """What the checks of Temporal need to know of the cluster."""

    cluster_uid: str = ""  # empty: no cluster to ask
    reads_queue: bool = False  # workers with these settings read the cloud's queue of warnings


NO_CLUSTER: Final = ClusterSeen()


async def identity_check(client: Client, cluster: str, cluster_uid: str) -> Check:
    """Whether they are this cluster's."""
    if not cluster_uid:
        return skipped(NAME, "there is no cluster to compare with")
    try:
        await check_owner(client, cluster, cluster_uid)
    except OtherCluster as error:
        return failed(NAME, str(error), "no worker starts here before that, and none takes a step of the other's")
    if not await owner_of(await described_or_none(client, scheduler_id(cluster))):
        return skipped(NAME, f"no Scheduler of {cluster} has run yet")
    return fine(NAME, f"the workflows of {cluster} belong to this cluster ({cluster_uid})")
