"""DaemonSets, PDBs, volumes, namespaces and the owners of pods become dovetail.model objects.

Each raises UnreadableObject naming the object and the field.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS, blame
from dovetail.adapters.kubernetes_json.parsing.reading import name_of, number_of, text_of
from dovetail.adapters.kubernetes_json.parsing.requests import pod_requests
from dovetail.adapters.kubernetes_json.parsing.selectors import (
    equality_selector,
    parse_expressions,
    parse_label_selector,
    parse_node_terms,
    parse_owners,
)
from dovetail.adapters.kubernetes_json.parsing.shapes import parse_shape
from dovetail.model.names import MOVE, PAUSE_ANNOTATIONS
from dovetail.model.objects.workloads import (
    CsiNode,
    DaemonSet,
    Namespace,
    PodDisruptionBudget,
    SelectorSource,
    StorageClass,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from dovetail.model.pods import Expression, Pod
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.time import optional_time

Built = TypeVar("Built")

# PLC-27: in-tree volume plugins that live on as CSI drivers.
IN_TREE_DRIVERS: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}


def _read(kind: str, raw: ReadOnlyJson, build: Callable[[ReadOnlyJson], Built]) -> Built:
    try:
        return build(raw)
    except RAW_FAULTS:
        raise blame(kind, raw, {"metadata": lambda o: name_of(o["metadata"]), "spec": build}) from None


def _namespace(raw: ReadOnlyJson) -> str:
    return raw["metadata"].get("namespace") or "default"


def _daemon_set(raw: ReadOnlyJson) -> DaemonSet:
    metadata, template = raw["metadata"], raw["spec"]["template"]
    namespace = _namespace(raw)
    spec = template.get("spec") or {}
    template_metadata = {**(template.get("metadata") or {}), "namespace": namespace}
    pod = Pod(
        name=f"{name_of(metadata)}-template",
        uid="",
        shape=parse_shape(template_metadata, spec),
        requests=pod_requests({"spec": spec}, limits_as_requests=True),
    )
    created = optional_time(metadata.get("creationTimestamp")) or 0.0
    return DaemonSet(
        name=name_of(metadata), namespace=namespace, uid=metadata.get("uid") or "", pod=pod, created=created
    )


def parse_daemon_set(raw: ReadOnlyJson) -> DaemonSet:
    return _read("DaemonSet", raw, _daemon_set)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _pdb(raw: ReadOnlyJson) -> PodDisruptionBudget:
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    return PodDisruptionBudget(
        name=name_of(raw["metadata"]),
        namespace=_namespace(raw),
        selector=parse_label_selector(spec.get("selector")),
        disruptions_allowed=number_of(status.get("disruptionsAllowed") or 0),
        max_unavailable=_text(spec.get("maxUnavailable")),
        min_available=_text(spec.get("minAvailable")),
        always_allow_unhealthy=spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
        disrupted_pods=tuple(sorted(status.get("disruptedPods") or ())),
    )


def parse_pdb(raw: ReadOnlyJson) -> PodDisruptionBudget:
    return _read("PodDisruptionBudget", raw, _pdb)


def _volume_claim(raw: ReadOnlyJson) -> VolumeClaim:
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    return VolumeClaim(
        name=name_of(metadata),
        namespace=_namespace(raw),
        uid=metadata.get("uid") or "",
        volume_name=spec.get("volumeName") or "",
        storage_class=spec.get("storageClassName"),
        phase=(raw.get("status") or {}).get("phase") or "",
        deleting=bool(metadata.get("deletionTimestamp")),
        bind_completed="pv.kubernetes.io/bind-completed" in annotations,
        many_nodes=any(mode in ("ReadWriteMany", "ReadOnlyMany") for mode in spec.get("accessModes") or ()),
        single_pod="ReadWriteOncePod" in (spec.get("accessModes") or ()),
        selected_node="" if spec.get("volumeName") else annotations.get("volume.kubernetes.io/selected-node") or "",
    )


def parse_volume_claim(raw: ReadOnlyJson) -> VolumeClaim:
    return _read("PersistentVolumeClaim", raw, _volume_claim)


def _driver(spec: ReadOnlyJson) -> str:
    """PLC-27: the CSI driver, or the one that took over an in-tree EBS volume; anything else is not counted."""
    if spec.get("csi"):
        return str(spec["csi"].get("driver") or "")
    return IN_TREE_DRIVERS["kubernetes.io/aws-ebs"] if spec.get("awsElasticBlockStore") else ""


def _volume(raw: ReadOnlyJson) -> Volume:
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    return Volume(
        name=name_of(metadata),
        claim_uid=(spec.get("claimRef") or {}).get("uid") or "",
        deleting=bool(metadata.get("deletionTimestamp")),
        driver=_driver(spec),
        local=bool(spec.get("local") or spec.get("hostPath")),
        node_terms=parse_node_terms((spec.get("nodeAffinity") or {}).get("required")),
    )


def parse_volume(raw: ReadOnlyJson) -> Volume:
    return _read("PersistentVolume", raw, _volume)


def _topology(term: ReadOnlyJson) -> tuple[Expression, ...]:
    entries = term.get("matchLabelExpressions") or ()
    return parse_expressions({"key": e["key"], "operator": "In", "values": e.get("values")} for e in entries)


def _storage_class(raw: ReadOnlyJson) -> StorageClass:
    provisioner = raw.get("provisioner") or ""
    return StorageClass(
        name=name_of(raw["metadata"]),
        provisioner=IN_TREE_DRIVERS.get(provisioner, provisioner),
        immediate=raw.get("volumeBindingMode") != "WaitForFirstConsumer",
        topologies=tuple([_topology(term) for term in raw.get("allowedTopologies") or ()]),
    )


def parse_storage_class(raw: ReadOnlyJson) -> StorageClass:
    return _read("StorageClass", raw, _storage_class)


def _csi_node(raw: ReadOnlyJson) -> CsiNode:
    drivers = (raw.get("spec") or {}).get("drivers") or ()
    counts = {d["name"]: (d.get("allocatable") or {}).get("count") for d in drivers}
    return CsiNode(
        name=name_of(raw["metadata"]),
        limits={name: number_of(count) for name, count in counts.items() if count is not None},
    )


def parse_csi_node(raw: ReadOnlyJson) -> CsiNode:
    return _read("CSINode", raw, _csi_node)


def _attachment(raw: ReadOnlyJson) -> VolumeAttachment:
    spec = raw.get("spec") or {}
    return VolumeAttachment(
        name=name_of(raw["metadata"]),
        node_name=spec.get("nodeName") or "",
        volume_name=(spec.get("source") or {}).get("persistentVolumeName") or "",
        deleting=bool(raw["metadata"].get("deletionTimestamp")),
    )


def parse_volume_attachment(raw: ReadOnlyJson) -> VolumeAttachment:
    return _read("VolumeAttachment", raw, _attachment)


def parse_namespace(raw: ReadOnlyJson) -> Namespace:
    return _read("Namespace", raw, _namespace_object)


def _namespace_object(raw: ReadOnlyJson) -> Namespace:
    metadata = raw["metadata"]
    annotations = metadata.get("annotations") or {}
    return Namespace(
        name=name_of(metadata),
        labels=dict(metadata.get("labels") or {}),
        uid=metadata.get("uid") or "",
        resource_version=metadata.get("resourceVersion") or "",
        annotations={
            key: text_of(annotations[key]) for key in (*PAUSE_ANNOTATIONS, MOVE) if annotations.get(key) is not None
        },
    )


def parse_selector_source(kind: str, raw: ReadOnlyJson) -> SelectorSource:
    """A Service or ReplicationController (selector by equality), a ReplicaSet or StatefulSet (label selector)."""
    by_equality = kind in ("Service", "ReplicationController")

    def build(o: ReadOnlyJson) -> SelectorSource:
        spec = o.get("spec") or {}
        selector, replicas = spec.get("selector"), spec.get("replicas", 1)
        return SelectorSource(
            kind=kind,
            name=name_of(o["metadata"]),
            namespace=_namespace(o),
            uid=o["metadata"].get("uid") or "",
            selector=equality_selector(selector) if by_equality else parse_label_selector(selector),
            owners=parse_owners(o["metadata"]),
            replicas=None if kind == "Service" or replicas is None else number_of(replicas),
        )

    return _read(kind, raw, build)
