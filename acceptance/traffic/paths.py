"""API paths of objects, and the collections that must be empty before the next case."""

from typing import Final

from dovetail.model.values.json import Json

NODE_CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
NODE_POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
NODE_CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
NODE_OVERLAYS: Final = "/apis/karpenter.sh/v1alpha1/nodeoverlays"
NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/namespaces/default/pods"
EVENTS: Final = "/api/v1/events"

# In this order: what would create others is removed first.
CLEARED: Final = (
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/replicasets",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    NODE_POOLS,
    NODE_OVERLAYS,
    "/api/v1/pods",
    NODE_CLAIMS,
    NODES,
    NODE_CLASSES,
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/api/v1/events",
)
# Kept objects of ours that a case must not inherit from the one before.
FORGOTTEN: Final = "/api/v1/namespaces/kube-system/configmaps"
NAMESPACED: Final = {"Pod", "PodDisruptionBudget", "Deployment", "ReplicaSet", "PersistentVolumeClaim", "Service"}
_PLURALS: Final = {"EC2NodeClass": "ec2nodeclasses", "StorageClass": "storageclasses"}


def collection_of(body: Json) -> str:
    """Where to create it."""
    version, kind = str(body["apiVersion"]), str(body["kind"])
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = (body.get("metadata") or {}).get("namespace") or ("default" if kind in NAMESPACED else "")
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"


def item_path(collection: str, body: Json) -> str:
    """Where an item of a listed collection lives; a list over all namespaces is no path to an item."""
    metadata = body["metadata"]
    namespace = metadata.get("namespace")
    if namespace and "/namespaces/" not in collection:
        base, _, plural = collection.rpartition("/")
        return f"{base}/namespaces/{namespace}/{plural}/{metadata['name']}"
    return f"{collection}/{metadata['name']}"
