"""What the EBS driver does for a StatefulSet: it makes a volume where the kube-scheduler chose, and attaches it."""

import asyncio
from contextlib import suppress
from typing import Final

from dovetail.model.values.json import Json
from worlds.cluster.ground import Ground

DRIVER: Final = "ebs.csi.aws.com"
ZONE: Final = "topology.ebs.csi.aws.com/zone"
STATEFUL_SETS: Final = "/apis/apps/v1/namespaces/default/statefulsets"
CLAIMS: Final = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"
CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"
ATTACHMENTS: Final = "/apis/storage.k8s.io/v1/volumeattachments"
_SELECTED: Final = "volume.kubernetes.io/selected-node"
_LOOK_SECONDS: Final = 0.2


def storage_class(name: str, zone: str) -> Json:
    """Volumes of that zone alone, made once a pod has a node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [places(zone)],
    }


def places(*zones: str) -> Json:
    """A term of a class."""
    return {"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}


def volume_claim(name: str, of_class: str, *, once: bool = False) -> Json:
    """A claim for a volume. `once`: one pod alone may have it."""
    modes = ["ReadWriteOncePod" if once else "ReadWriteOnce"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": modes,
            "storageClassName": of_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def stateful_set(name: str, of_class: str) -> Json:
    """One pod with one volume of its own."""
    labels = {"app": name}
    container = {
        "name": name,
        "image": f"{name}:1",
        "resources": {"requests": {"cpu": "1", "memory": "512Mi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    asked = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": of_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": asked}],
        },
    }


class Driver:
    """Its provisioner and its attacher, while the context is open; then every volume is gone."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._api = ground.api
        self._work: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Driver":
        self._work = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            for path in (STATEFUL_SETS, CLAIMS, VOLUMES, CLASSES):
                for body in await self._listed(path):
                    await self._api.delete(f"{path}/{body['metadata']['name']}", {"propagationPolicy": "Background"})
            await self._ground.until(self._gone, 60, "the volumes are gone")
        finally:
            assert self._work is not None
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work

    async def _gone(self) -> bool:
        return not [body for path in (CLAIMS, VOLUMES, ATTACHMENTS) for body in await self._listed(path)]

    async def _listed(self, path: str) -> list[Json]:
        answer = await self._api.get(path)
        assert answer.status == 200, f"{path}: {answer.status} {answer.text[:300]}"
        found: list[Json] = answer.body.get("items") or []
        return found

    async def _serve(self) -> None:
        while True:
            for claim in await self._listed(CLAIMS):
                if not claim["spec"].get("volumeName") and _SELECTED in (claim["metadata"].get("annotations") or {}):
                    await self._provision(claim)
            for attachment in await self._listed(ATTACHMENTS):
                if not (attachment.get("status") or {}).get("attached"):
                    name = attachment["metadata"]["name"]
                    await self._api.patch(f"{ATTACHMENTS}/{name}/status", {"status": {"attached": True}})
            await asyncio.sleep(_LOOK_SECONDS)

    async def _provision(self, claim: Json) -> None:
        """In the zone that the driver's own label has on the node that the kube-scheduler selected."""
        metadata = claim["metadata"]
        node = await self._api.get(f"/api/v1/nodes/{metadata['annotations'][_SELECTED]}")
        zone = {"key": ZONE, "operator": "In", "values": [node.body["metadata"]["labels"][ZONE]]}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": f"pvc-{metadata['uid']}",
                "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER},
            },
            "spec": {
                "accessModes": claim["spec"]["accessModes"],
                "capacity": claim["spec"]["resources"]["requests"],
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    **{key: metadata[key] for key in ("namespace", "name", "uid")},
                },
                "csi": {"driver": DRIVER, "volumeHandle": "vol-" + metadata["uid"].replace("-", "")[:17]},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": claim["spec"]["storageClassName"],
            },
        }
        answer = await self._api.post(VOLUMES, volume)
        assert answer.status in {201, 409}, f"{answer.status} {answer.text[:300]}"
