"""What a node advertises beyond its instance type: devices of plugins, which in AWS a NodeOverlay can only promise.

The recorded clusters' nodes had the capacity of their NodeClaim's status. A node here has what its own kubelet counts,
and of the claim's status only the extended resources that nothing else would bring.
"""

from testbed.cloud.json_object import Json
from testbed.cloud.kubelets.clients import Cluster, UnreachableError

NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
CLAIM_TAG = "karpenter.sh/nodeclaim"


def advertised(cluster: Cluster, instance: Json) -> dict[str, str]:
    """Extended resources of the claim that the instance was launched for; none where there is no claim."""
    name = instance["tags"].get(CLAIM_TAG)
    status, claim = cluster.ask("GET", f"{NODE_CLAIMS}/{name}") if name else (404, {})
    if status != 200 or "deletionTimestamp" in claim["metadata"]:
        return {}
    said = claim.get("status") or {}
    if said.get("providerID") != instance["providerID"]:
        raise UnreachableError(f"NodeClaim {name} does not name {instance['id']} yet; waiting")
    return {key: amount for key, amount in (said.get("capacity") or {}).items() if "/" in key}


def add(node: Json, resources: dict[str, str]) -> None:
    """To both lists of a Node; what it counts itself stays."""
    for key in ("capacity", "allocatable"):
        node["status"][key] = {**resources, **node["status"][key]}
